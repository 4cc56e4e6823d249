// The root of all routes: the frame, or the sign-in.
import { createRootRoute } from "@tanstack/react-router";
import { Page } from "../../ui/parts.tsx";
import { Gate } from "../gate.tsx";

export const root = createRootRoute({ component: Gate, notFoundComponent: () => <Page title="Unknown page">There is nothing at this address.</Page> });
