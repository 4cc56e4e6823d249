// Nodes.
import { Page } from "../../ui/parts.tsx";

export const NodesScreen = () => <Page title="Nodes">…</Page>;
