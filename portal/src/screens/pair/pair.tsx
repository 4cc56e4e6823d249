// Pair.
import { Page } from "../../ui/parts.tsx";

export const PairScreen = () => <Page title="Pair">…</Page>;
