// Device.
import { Page } from "../../ui/parts.tsx";

export const DeviceScreen = () => <Page title="Device">…</Page>;
