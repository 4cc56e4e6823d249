// Guide to impersonations.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER } from "../records.ts";

const { tenantId, userId } = IDS;
const impersonationId = "imp_01J9ZQE4X6A8C0E2G4J6M8P0R2";
const reason = "Ticket 4711: the backups of two devices fail";
const open = {
  impersonationId,
  tenantId,
  userId,
  adminId: "ops@example.org",
  reason,
  readOnly: true,
  startedAt: AT,
  expiresAt: "2026-11-21T09:45:00.000Z",
  endedAt: null,
  endedBy: null,
};
const over = { ...open, endedAt: LATER, endedBy: `user:${userId}` };
const page = { items: [open], total: 1 };

export const impersonations: Guide<"impersonations"> = {
  start: {
    description:
      "Gives a token with which you see what the member sees. It works in this tenant only, for at most an hour, and needs a sign-in of the last ten minutes. Without `readOnly: false` every change is refused. Never allowed are changes of the member's own account, secrets, keys, invites, roles and members, shell commands, approvals, exports, webhooks, and what concerns plan and ownership: each of these would outlast the impersonation, or show what nobody but the tenant should see. Each change names both of you in the audit log and in the history of the record: `admin:{adminId}:user:{userId}`. The tenant's owners are told by mail, and the event `impersonation.started` goes to its webhooks.",
    input: { tenantId, reason, minutes: 15 },
    output: { ...open, token: "simp_Jq0Y6w0d3oC6v2kq9m8b7n5x4z1a2s3d4f5g6h7j8k9" },
  },
  listAll: { description: "Open ones and those that ended within the last 400 days.", output: page },
  get: { description: "Never shows the token.", input: { impersonationId }, output: open },
  endAny: {
    description:
      "The next call with its token is refused with 401, on every node, and its live streams end within two seconds. Ending it again changes nothing.",
    input: { impersonationId },
    output: { ...over, endedBy: "user:ops@example.org" },
  },
  list: { description: "Who has acted in the name of the tenant's members, with the reason, and whether it goes on.", output: page },
  end: {
    description: "Puts the administrator out: the next call with its token is refused with 401, on every node. Ending it again changes nothing.",
    input: { impersonationId },
    output: over,
  },
};
