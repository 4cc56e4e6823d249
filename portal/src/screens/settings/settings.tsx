// Settings.
import { Page } from "../../ui/parts.tsx";

export const SettingsScreen = () => <Page title="Settings">…</Page>;
