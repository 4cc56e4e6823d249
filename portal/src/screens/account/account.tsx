// Account.
import { Page } from "../../ui/parts.tsx";

export const AccountScreen = () => <Page title="Account">…</Page>;
