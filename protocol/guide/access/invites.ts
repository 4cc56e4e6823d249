// Guide to invites.
import type { Guide } from "../guide.ts";
import { AT, IDS, shownWithActors } from "../records.ts";

const inviteId = "inv_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const expiresAt = "2026-11-28T09:30:00.000Z";
const token = "Wm9vbV9pbl9hbmRfc2VlX3RoYXRfaXRfaXNfbm90";
const invite = {
  inviteId,
  tenantId: IDS.tenantId,
  email: "sam@example.com",
  roleId: "operator",
  selector: null,
  status: "pending",
  invitedBy: `user:${IDS.userId}`,
  message: "Welcome aboard!",
  expiresAt,
  acceptedAt: null,
  acceptedBy: null,
  declinedAt: null,
  revokedAt: null,
  sendCount: 1,
  lastSentAt: AT,
  delivery: { status: "sent", attempts: 1, lastError: null },
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};

export const invites: Guide<"invites"> = {
  list: {
    description: "Lists the tenant's invites, newest first.",
    input: { status: "pending", page: 1, pageSize: 20 },
    output: { items: [shownWithActors(invite)], total: 1 },
  },
  get: { description: "`delivery` tells what became of the newest mail.", input: { inviteId }, output: shownWithActors(invite) },
  create: {
    description:
      "Sends a link to the address. The link works once, and only for a signed-in user whose verified email address is the invited one. Send `emails` to invite up to 20 people; each has its own entry in `results`, and the response is an error only if nobody could be invited. Members and pending invites together count against the plan. A tenant may invite 20 people an hour. `selector` limits the new member to some devices. If the installation has no mail server, the response contains the link, and you hand it over yourself.",
    input: { email: "sam@example.com", roleId: "operator", selector: null, message: "Welcome aboard!", expiresInDays: 7 },
    output: invite,
  },
  resend: {
    description: "Makes a new link with a new expiry and sends it; the old link stops working. An invite can be sent again five times.",
    input: { inviteId, expiresInDays: 7 },
    output: { ...invite, sendCount: 2 },
  },
  revoke: { description: "The link stops working at once.", input: { inviteId } },
  lookup: {
    description: "What a page shows to the person who opens the link. Reading an invite does not use it up.",
    input: { token },
    output: { tenantName: "Acme", inviter: "kim@example.com", roleId: "operator", email: "s***@example.com", message: "Welcome aboard!", expiresAt },
  },
  accept: {
    description:
      "Makes the caller a member. The caller's token must carry the invited address in `email` and `email_verified: true`. The inviter must still be allowed to grant the role.",
    input: { token },
    output: { inviteId, tenantId: IDS.tenantId, memberId: "mem_01J9ZR3E8W6Y2V7K4M5N6P7Q8R", roleId: "operator" },
  },
  decline: { description: "Whoever holds the link may decline; no account is needed.", input: { token } },
};
