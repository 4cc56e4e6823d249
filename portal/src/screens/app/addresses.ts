// Where an app answers, which loads beside its page.
import { lazy } from "react";

export const AppAddresses = lazy(async () => ({ default: (await import("../../parts/network/app-addresses.tsx")).AppAddresses }));
