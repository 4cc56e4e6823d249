// Security: what looks like an attack, the alerts that rules raise from it, and who is blocked.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { id, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import {
  BlockedEntity,
  BlockedType,
  factsOf,
  SECURITY_EVENT_TYPES,
  SECURITY_RESOLUTIONS,
  SecurityActions,
  SecurityAlert,
  SecurityConditions,
  SecurityEvent,
  type SecurityEventType,
  SecurityMetrics,
  SecurityRule,
  Severity,
} from "../records/security.ts";
import { AlertsQuery, BLOCK_ERRORS, Block, BlockedQuery, EventsQuery, ofInstallation, oneAlert, oneBlock, Resolve } from "../records/security-installation.ts";

export * from "../records/security.ts";

const read = { auth: ["user", "apiKey"], permission: "security:read" } as const;
const respond = { auth: ["user", "apiKey"], permission: "security:respond" } as const;
const rules = { auth: ["user", "apiKey"], permission: "security:rules" } as const;
const block = { auth: ["user", "apiKey"], permission: "security:block" } as const;

const oneRule = z.strictObject({ securityRuleId: ref("srl") });
const Name = z.string().trim().min(1).max(100);
const CONDITION = "only `ip` can be blocked for this type: anybody can cause it in another's name";
/** For the checks of create and update. */
export const mayBlock = (of: SecurityEventType, actions: SecurityActions): boolean =>
  actions.block === null || actions.block.entityType === "ip" || factsOf(of).unproven !== true;

const AlertEvent = z.object({
  alertId: id("sal"),
  type: z.enum(SECURITY_EVENT_TYPES),
  severity: Severity,
  ruleId: id("srl"),
  entityType: SecurityAlert.shape.entityType,
  entityId: z.string(),
});
const BlockEvent = z.object({ blockedEntityId: id("bke"), entityType: BlockedType, entityValue: z.string() });

export const security = group({
  tag: "Security",
  records: { SecurityEvent, SecurityAlert, SecurityMetrics, SecurityRule, BlockedEntity },
  operations: {
    listEvents: query({
      ...read,
      summary: "List security events",
      rest: ["GET /security/events"],
      list: "page",
      input: EventsQuery,
      output: paged(SecurityEvent),
    }),
    listAlerts: query({
      ...read,
      summary: "List security alerts",
      rest: ["GET /security/alerts"],
      list: "page",
      input: AlertsQuery,
      output: paged(named(SecurityAlert)),
    }),
    getAlert: query({
      ...read,
      summary: "Get a security alert",
      rest: ["GET /security/alerts/{alertId}"],
      input: oneAlert,
      output: named(SecurityAlert),
      errors: ["SECURITY_ALERT_NOT_FOUND"],
    }),
    acknowledge: mutation({
      ...respond,
      summary: "Acknowledge a security alert",
      rest: ["POST /security/alerts/{alertId}/acknowledge"],
      input: oneAlert,
      output: SecurityAlert,
      errors: ["SECURITY_ALERT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    resolve: mutation({
      ...respond,
      summary: "Resolve a security alert",
      rest: ["POST /security/alerts/{alertId}/resolve"],
      input: Resolve,
      output: SecurityAlert,
      errors: ["SECURITY_ALERT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    metrics: query({
      ...read,
      summary: "Count security events, open alerts and what is blocked",
      rest: ["GET /security/metrics"],
      input: z.strictObject({ windowHours: z.int().min(1).max(720).default(24).describe("Counts the events of so many hours.") }),
      output: SecurityMetrics,
    }),
    listRules: query({
      ...read,
      summary: "List security rules",
      rest: ["GET /security/rules"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(SecurityRule) }),
    }),
    getRule: query({
      ...read,
      summary: "Get a security rule",
      rest: ["GET /security/rules/{securityRuleId}"],
      input: oneRule,
      output: SecurityRule,
      errors: ["SECURITY_RULE_NOT_FOUND"],
    }),
    createRule: mutation({
      ...rules,
      summary: "Create a security rule",
      rest: ["POST /security/rules"],
      status: 201,
      location: "/security/rules/{id}",
      input: z
        .strictObject({
          name: Name,
          type: z.enum(SECURITY_EVENT_TYPES),
          enabled: z.boolean().default(true),
          conditions: SecurityConditions,
          actions: SecurityActions.default({ alert: true, block: null }),
        })
        .refine(({ type: of, actions }) => mayBlock(of, actions), { path: ["actions", "block", "entityType"], message: CONDITION }),
      output: SecurityRule,
      errors: ["SECURITY_LIMIT_REACHED"],
    }),
    updateRule: mutation({
      ...rules,
      summary: "Change a security rule",
      rest: ["PATCH /security/rules/{securityRuleId}"],
      input: oneRule.extend({
        name: Name.optional(),
        enabled: z.boolean().optional(),
        conditions: SecurityConditions.optional(),
        actions: SecurityActions.optional(),
        version: Version.optional(),
      }),
      output: SecurityRule,
      errors: ["SECURITY_RULE_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    removeRule: mutation({
      ...rules,
      summary: "Delete a security rule",
      rest: ["DELETE /security/rules/{securityRuleId}"],
      status: 204,
      input: oneRule,
      output: z.null(),
      errors: ["SECURITY_RULE_NOT_FOUND", "SECURITY_RULE_BUILT_IN"],
    }),
    listBlocked: query({
      ...read,
      summary: "List what is blocked",
      rest: ["GET /security/blocked-entities"],
      list: "page",
      input: BlockedQuery,
      output: paged(named(BlockedEntity)),
    }),
    block: mutation({
      ...block,
      summary: "Block an address, a user, a device or a key",
      rest: ["POST /security/blocked-entities"],
      status: 201,
      location: "/security/blocked-entities/{id}",
      input: Block,
      output: BlockedEntity,
      errors: BLOCK_ERRORS,
    }),
    unblock: mutation({
      ...block,
      summary: "Unblock it",
      rest: ["DELETE /security/blocked-entities/{blockedEntityId}"],
      status: 204,
      input: oneBlock,
      output: z.null(),
      errors: ["BLOCKED_ENTITY_NOT_FOUND", "PRIVILEGE_ESCALATION"],
    }),
    ...ofInstallation,
  },
  events: {
    alertOpened: event("security_alert.opened", AlertEvent, "A rule raised a security alert"),
    alertAcknowledged: event("security_alert.acknowledged", AlertEvent, "Somebody acknowledged a security alert"),
    alertResolved: event("security_alert.resolved", AlertEvent.extend({ resolution: z.enum(SECURITY_RESOLUTIONS) }), "Somebody resolved a security alert"),
    blocked: event(
      "security.entity_blocked",
      BlockEvent.extend({ reason: z.string().nullable(), expiresAt: z.iso.datetime().nullable() }),
      "An address, a user, a device or a key was blocked",
    ),
    unblocked: event(
      "security.entity_unblocked",
      BlockEvent.extend({ cause: z.enum(["person", "expired"]) }),
      "Somebody unblocked an address, a user, a device or a key, or the time of the block was over",
    ),
  },
});
