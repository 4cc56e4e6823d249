// Overview.
import { Page } from "../../ui/parts.tsx";

export const OverviewScreen = () => <Page title="Overview">…</Page>;
