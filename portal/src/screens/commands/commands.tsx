// Commands.
import { Page } from "../../ui/parts.tsx";

export const CommandsScreen = () => <Page title="Commands">…</Page>;
