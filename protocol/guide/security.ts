// Guide to security events, alerts, rules and blocked entities.
import type { Guide } from "./guide.ts";
import { shownWithActors } from "./records.ts";

const at = "2026-01-15T09:30:00.000Z";
const alertId = "sal_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const ruleId = "srl_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const blockedEntityId = "bke_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const keyId = "key_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const user = "user:ada";

const event = {
  id: "sev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  type: "cross_tenant.attempt",
  severity: "high",
  timestamp: at,
  details: { entityType: "key", entityId: keyId, count: 4, firstAt: at, ipAddress: "203.0.113.7", reason: "tenant_mismatch", operation: "devices.list" },
};
const alert = {
  id: alertId,
  type: "cross_tenant.attempt",
  severity: "high",
  status: "open",
  ruleId,
  entityType: "key",
  entityId: keyId,
  count: 4,
  lastEventAt: at,
  previousAlertId: null,
  createdAt: at,
  acknowledgedAt: null,
  acknowledgedBy: null,
  resolvedAt: null,
  resolvedBy: null,
  resolution: null,
  note: null,
};
const acknowledged = { ...alert, status: "acknowledged", acknowledgedAt: at, acknowledgedBy: user };
const resolving = { alertId, resolution: "mitigated", note: "key revoked" };
const resolved = { ...alert, status: "resolved", resolvedAt: at, resolvedBy: user, resolution: "mitigated", note: "key revoked" };
const own = {
  name: "keys of others",
  type: "cross_tenant.attempt",
  enabled: true,
  conditions: { count: 3, windowSeconds: 600, severity: "critical" },
  actions: { alert: true, block: { entityType: "key", seconds: 3_600 } },
};
const securityRuleId = ruleId;
const rule = { id: ruleId, ...own, builtIn: false, version: 1, createdAt: at, updatedAt: at };
const wanted = { entityType: "ip", entityValue: "203.0.113.0/24", reason: "guesses pairing codes", expiresAt: null };
const blocked = { id: blockedEntityId, ...wanted, createdBy: user, createdAt: at };
const page = { page: 1, pageSize: 20 };

export const security: Guide<"security"> = {
  listEvents: {
    description:
      "One event stands for all that happened to one subject within one minute; `details.count` says how often. Events are kept for 30 days, at most 1,000 of each type a day.",
    input: { type: "cross_tenant.attempt", ...page },
    output: { items: [event], total: 1 },
  },
  listAlerts: {
    description: "A rule has one alert about one subject until somebody resolves it.",
    input: page,
    output: { items: [shownWithActors(alert)], total: 1 },
  },
  getAlert: { description: "Returns the alert and who looked at it.", input: { alertId }, output: shownWithActors(alert) },
  acknowledge: {
    description: "Says that somebody looks at it. Only an open alert can be acknowledged.",
    input: { alertId },
    output: acknowledged,
  },
  resolve: {
    description: "A resolved alert never opens again: what happens afterwards raises a new one, which names it as `previousAlertId`.",
    input: resolving,
    output: resolved,
  },
  metrics: {
    description: "Counts the events of the last hours, and what is open and blocked now.",
    input: { windowHours: 24 },
    output: { totalEvents: 4, openAlerts: 1, blockedEntities: 1, windowHours: 24, byType: [{ type: "cross_tenant.attempt", count: 4 }] },
  },
  listRules: { description: "The built-in rules come first, one for each type, then your own.", output: { items: [rule] } },
  getRule: { description: "Returns a rule of yours or a built-in one.", input: { securityRuleId }, output: rule },
  createRule: {
    description:
      "The rule is applied to new events within seconds. It may block for a while: the address of the last event, or the user, device or key that the event is about. An owner is never blocked by a rule.",
    input: own,
    output: rule,
  },
  updateRule: {
    description: "Built-in rules can be changed and disabled, too. A rule keeps its type.",
    input: { securityRuleId: ruleId, enabled: false },
    output: { ...rule, enabled: false, version: 2 },
  },
  removeRule: { description: "Built-in rules cannot be deleted, but disabled.", input: { securityRuleId: ruleId } },
  listBlocked: { description: "Lists what is refused in your tenant now, newest first.", input: page, output: { items: [shownWithActors(blocked)], total: 1 } },
  block: {
    description:
      "Every node refuses it within two seconds with 403 `ENTITY_BLOCKED`, and closes its open streams and sockets. An address is refused for calls that act in your tenant.",
    input: wanted,
    output: blocked,
  },
  unblock: { description: "Every node serves it again within two seconds.", input: { blockedEntityId } },
  installationEvents: { description: "What cannot be told to a tenant, such as unknown keys.", input: page, output: { items: [event], total: 1 } },
  installationAlerts: { description: "Alerts about callers of whom no tenant is known.", input: page, output: { items: [alert], total: 1 } },
  acknowledgeForInstallation: { description: "Says that an operator looks at it.", input: { alertId }, output: acknowledged },
  resolveForInstallation: { description: "Closes an alert about callers of whom no tenant is known.", input: resolving, output: resolved },
  listBlockedEverywhere: {
    description: "Lists what is refused in the whole installation now.",
    input: page,
    output: { items: [blocked], total: 1 },
  },
  blockEverywhere: { description: "Refuses an address before anything of its calls is read, in every tenant and without one.", input: wanted, output: blocked },
  unblockEverywhere: { description: "Every node serves it again within two seconds.", input: { blockedEntityId } },
};
