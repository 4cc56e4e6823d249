// Usage and billing.
import { Page } from "../../ui/parts.tsx";

export const BillingScreen = () => <Page title="Usage and billing">…</Page>;
