// Invites: an administrator names an address and a role, and the person with that address accepts or declines by a link that works once.
import { z } from "zod";
import { DeviceSelector } from "../../kit/device-selector.ts";
import { event } from "../../kit/event.ts";
import { id, ref, TenantId } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";
import { listQuery, paged } from "../../kit/page.ts";
import { named } from "../../records/actor.ts";

const InviteId = id("inv");
const MemberId = id("mem");
const Timestamp = z.iso.datetime();
const STATUSES = ["pending", "accepted", "declined", "expired", "revoked"] as const;
const RoleId = z.string().min(1).max(64).describe("The role's id, or the key of a built-in role, such as `viewer`.");
const Email = z.email().max(254).toLowerCase();

export const Invite = z.object({
  inviteId: InviteId,
  tenantId: TenantId,
  email: z.string().describe("In lower case."),
  roleId: z.string(),
  selector: DeviceSelector.nullable().describe("The only devices that the member will see. `null`: all."),
  status: z.enum(STATUSES),
  invitedBy: z.string(),
  message: z.string().nullable(),
  expiresAt: Timestamp,
  acceptedAt: Timestamp.nullable(),
  acceptedBy: z.string().nullable(),
  declinedAt: Timestamp.nullable(),
  revokedAt: Timestamp.nullable(),
  sendCount: z.int(),
  lastSentAt: Timestamp,
  delivery: z
    .object({ status: z.enum(["queued", "sent", "failed"]), attempts: z.int(), lastError: z.string().nullable() })
    .nullable()
    .describe("What became of the newest mail. `null`: none was sent, because the installation has no mail server, or its record is over."),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Invite = z.infer<typeof Invite>;

const Link = z.string().optional().describe("Only if the installation has no mail server: the link to hand over. It is shown only in this response.");
const WithLink = Invite.extend({ link: Link });
const Result = z.object({ email: z.string(), invite: Invite.nullable(), link: Link, code: z.string().nullable(), message: z.string().nullable() });
const Created = WithLink.extend({
  results: z
    .array(Result)
    .optional()
    .describe(
      "Only for `emails`: for each address in order the invite, or the error that refused it. The fields beside it are those of the first invite made.",
    ),
});
const toOneOrMany = ({ email, emails }: { email?: unknown; emails?: unknown }): boolean => (email === undefined) !== (emails === undefined);

const one = z.strictObject({ inviteId: ref("inv") });
const Token = z.string().min(1).max(128).describe("From the link.");
const InviteEvent = z.object({ inviteId: InviteId, roleId: z.string() });
const byToken = { limit: "invite.token", tenancy: "none" } as const;

// Only signed-in users invite: a key that could invite people would outlive its own revocation.
export const invites = group({
  tag: "Invites",
  records: { Invite },
  operations: {
    list: query({
      summary: "List invites",
      rest: ["GET /invites"],
      auth: ["user"],
      permission: "invite:read",
      list: "page",
      input: listQuery({
        sort: ["createdAt", "email", "expiresAt"],
        by: "-createdAt",
        filters: { status: z.enum(STATUSES).optional().describe("Only invites with this status.") },
      }),
      output: paged(named(Invite)),
    }),
    get: query({
      summary: "Get an invite",
      rest: ["GET /invites/{inviteId}"],
      auth: ["user"],
      permission: "invite:read",
      input: one,
      output: named(Invite),
      errors: ["INVITE_NOT_FOUND"],
    }),
    create: mutation({
      summary: "Invite one person or several",
      rest: ["POST /invites"],
      auth: ["user"],
      permission: "invite:write",
      status: 201,
      location: "/invites/{inviteId}",
      input: z
        .strictObject({
          email: Email.optional(),
          emails: z.array(Email).min(1).max(20).optional(),
          roleId: RoleId,
          selector: DeviceSelector.nullable().default(null).describe("Limits the new member to some devices. `null`: all."),
          message: z.string().trim().max(500).nullable().default(null).describe("Shown to the invited person."),
          expiresInDays: z.int().min(1).max(30).default(7),
        })
        .refine(toOneOrMany, { path: ["email"], message: "send either email or emails" }),
      output: Created,
      errors: [
        "INVITE_ALREADY_PENDING",
        "ALREADY_MEMBER",
        "PRIVILEGE_ESCALATION",
        "PLAN_LIMIT_EXCEEDED",
        "ROLE_NOT_FOUND",
        "DEVICE_NOT_FOUND",
        "FLEET_NOT_FOUND",
      ],
    }),
    resend: mutation({
      summary: "Send an invite again",
      rest: ["POST /invites/{inviteId}/resend"],
      auth: ["user"],
      permission: "invite:write",
      input: one.extend({ expiresInDays: z.int().min(1).max(30).default(7) }),
      output: WithLink,
      errors: [
        "INVITE_NOT_FOUND",
        "INVITE_RESENT_TOO_OFTEN",
        "INVALID_STATE_TRANSITION",
        "PRIVILEGE_ESCALATION",
        "ROLE_NOT_FOUND",
        "DEVICE_NOT_FOUND",
        "FLEET_NOT_FOUND",
      ],
    }),
    revoke: mutation({
      summary: "Revoke an invite",
      rest: ["DELETE /invites/{inviteId}"],
      auth: ["user"],
      permission: "invite:write",
      status: 204,
      input: one,
      output: z.null(),
      errors: ["INVITE_NOT_FOUND", "INVALID_STATE_TRANSITION", "PRIVILEGE_ESCALATION"],
    }),
    lookup: query({
      ...byToken,
      summary: "Read an invite by its link",
      rest: ["GET /invites/lookup"],
      auth: ["public"],
      permission: "public",
      input: z.strictObject({ token: Token }),
      output: z.object({
        tenantName: z.string(),
        inviter: z.string().nullable(),
        roleId: RoleId,
        email: z.string().describe("Masked: its first letter and its domain."),
        message: z.string().nullable(),
        expiresAt: Timestamp,
      }),
      errors: ["INVITE_NOT_FOUND", "INVITE_EXPIRED", "INVITE_ALREADY_USED"],
    }),
    accept: mutation({
      ...byToken,
      summary: "Accept an invite",
      rest: ["POST /invites/accept"],
      auth: ["user"],
      permission: "self",
      input: z.strictObject({ token: Token }),
      output: z.object({ inviteId: InviteId, tenantId: TenantId, memberId: MemberId, roleId: RoleId }),
      errors: [
        "INVITE_NOT_FOUND",
        "INVITE_EXPIRED",
        "INVITE_ALREADY_USED",
        "INVITE_EMAIL_MISMATCH",
        "ALREADY_MEMBER",
        "PRIVILEGE_ESCALATION",
        "TENANT_SUSPENDED",
      ],
    }),
    decline: mutation({
      ...byToken,
      summary: "Decline an invite",
      rest: ["POST /invites/decline"],
      auth: ["public"],
      permission: "public",
      idempotency: "none",
      status: 204,
      input: z.strictObject({ token: Token }),
      output: z.null(),
      errors: ["INVITE_NOT_FOUND", "INVITE_EXPIRED", "INVITE_ALREADY_USED"],
    }),
  },
  events: {
    created: event("invite.created", InviteEvent, "A person was invited"),
    accepted: event("invite.accepted", InviteEvent.extend({ userId: z.string(), invitedBy: z.string() }), "An invited person accepted"),
    declined: event("invite.declined", InviteEvent.extend({ invitedBy: z.string() }), "An invited person declined"),
    revoked: event("invite.revoked", InviteEvent, "An invite was revoked"),
    expired: event("invite.expired", InviteEvent, "An invite expired"),
    joined: event("member.joined", z.object({ memberId: MemberId, userId: z.string(), roleId: z.string() }), "A person became a member"),
  },
});
