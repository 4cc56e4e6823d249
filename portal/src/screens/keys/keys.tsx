// API keys.
import { Page } from "../../ui/parts.tsx";

export const KeysScreen = () => <Page title="API keys">…</Page>;
