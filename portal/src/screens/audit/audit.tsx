// Audit log.
import { Page } from "../../ui/parts.tsx";

export const AuditScreen = () => <Page title="Audit log">…</Page>;
