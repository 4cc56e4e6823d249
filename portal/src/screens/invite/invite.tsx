// Invite.
import { Page } from "../../ui/parts.tsx";

export const InviteScreen = () => <Page title="Invite">…</Page>;
