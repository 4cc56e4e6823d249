// Members.
import { Page } from "../../ui/parts.tsx";

export const MembersScreen = () => <Page title="Members">…</Page>;
