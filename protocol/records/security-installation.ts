// The operations of the security group that concern the installation as a whole, and the inputs that they share with those of a tenant.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { ref } from "../kit/ids.ts";
import { mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import {
  BlockedEntity,
  BlockedType,
  SECURITY_ALERT_STATES,
  SECURITY_EVENT_TYPES,
  SECURITY_RESOLUTIONS,
  SecurityAlert,
  SecurityEvent,
  Severity,
} from "./security.ts";

const platform = { auth: ["user"], permission: "platform", tenancy: "none" } as const;

const type = z.enum(SECURITY_EVENT_TYPES).optional().describe("Only this type.");
const severity = Severity.optional().describe("Only this severity.");
const time = Moment.optional();

export const EventsQuery = listQuery({
  sort: ["timestamp"],
  by: "-timestamp",
  filters: {
    type,
    severity,
    from: time.describe("Only events at this time or later."),
    to: time.describe("Only events before this time."),
    entityId: z.string().min(1).max(255).optional().describe("Only events about this address or id."),
  },
});
export const AlertsQuery = listQuery({
  sort: ["createdAt", "lastEventAt"],
  by: "-createdAt",
  filters: { type, severity, status: z.enum(SECURITY_ALERT_STATES).optional().describe("Only alerts in this state.") },
});
export const BlockedQuery = listQuery({
  sort: ["createdAt"],
  by: "-createdAt",
  filters: { entityType: BlockedType.optional().describe("Only this type.") },
});

export const oneAlert = z.strictObject({ alertId: ref("sal") });
export const oneBlock = z.strictObject({ blockedEntityId: ref("bke") });
export const Resolve = oneAlert.extend({ resolution: z.enum(SECURITY_RESOLUTIONS), note: z.string().trim().max(1_000).nullable().default(null) });
export const Block = z.strictObject({
  entityType: BlockedType,
  entityValue: z
    .string()
    .trim()
    .min(1)
    .max(255)
    .describe("An address, a network in CIDR form (IPv4 from /8 on, IPv6 from /16 on), or the id of a user, a device or a key."),
  reason: z.string().trim().min(1).max(500).nullable().default(null),
  expiresAt: z.iso.datetime({ offset: true }).nullable().default(null).describe("When the block ends by itself, within ten years."),
});

export const BLOCK_ERRORS = ["ENTITY_ALREADY_BLOCKED", "CANNOT_BLOCK_SELF", "SECURITY_LIMIT_REACHED", "PRIVILEGE_ESCALATION"] as const;

export const ofInstallation = {
  installationEvents: query({
    ...platform,
    summary: "List the security events that belong to no tenant",
    rest: ["GET /admin/security/events"],
    list: "page",
    input: EventsQuery,
    output: paged(SecurityEvent),
  }),
  installationAlerts: query({
    ...platform,
    summary: "List the security alerts that belong to no tenant",
    rest: ["GET /admin/security/alerts"],
    list: "page",
    input: AlertsQuery,
    output: paged(SecurityAlert),
  }),
  acknowledgeForInstallation: mutation({
    ...platform,
    summary: "Acknowledge a security alert that belongs to no tenant",
    rest: ["POST /admin/security/alerts/{alertId}/acknowledge"],
    input: oneAlert,
    output: SecurityAlert,
    errors: ["SECURITY_ALERT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
  }),
  resolveForInstallation: mutation({
    ...platform,
    summary: "Resolve a security alert that belongs to no tenant",
    rest: ["POST /admin/security/alerts/{alertId}/resolve"],
    input: Resolve,
    output: SecurityAlert,
    errors: ["SECURITY_ALERT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
  }),
  listBlockedEverywhere: query({
    ...platform,
    summary: "List what is blocked in the whole installation",
    rest: ["GET /admin/security/blocked-entities"],
    list: "page",
    input: BlockedQuery,
    output: paged(BlockedEntity),
  }),
  blockEverywhere: mutation({
    ...platform,
    summary: "Block in the whole installation",
    rest: ["POST /admin/security/blocked-entities"],
    status: 201,
    location: "/admin/security/blocked-entities/{id}",
    input: Block,
    output: BlockedEntity,
    errors: BLOCK_ERRORS,
  }),
  unblockEverywhere: mutation({
    ...platform,
    summary: "Unblock in the whole installation",
    rest: ["DELETE /admin/security/blocked-entities/{blockedEntityId}"],
    status: 204,
    input: oneBlock,
    output: z.null(),
    errors: ["BLOCKED_ENTITY_NOT_FOUND"],
  }),
};
