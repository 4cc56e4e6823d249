// Guide to alerts.
import type { Guide } from "./guide.ts";
import { AT, device, IDS, LATER, shownWithActors, TOMORROW } from "./records.ts";

const { tenantId, deviceId } = IDS;
const createdBy = `user:${IDS.userId}`;
const [alertId, ruleId] = ["alr_01J9ZQD1F3H5K7M9P0R2T4W6Y8", "arl_01J9ZQD2G4J6M8P0R3T5W7Y9A1"];
const [channelId, silenceId] = ["chn_01J9ZQD3H5K7N9Q1S4V6X8Z0B2", "sil_01J9ZQD4J6M8P0R2T5W7Y9A1C3"];

const rule = {
  ruleId,
  tenantId,
  name: "Disk almost full",
  metric: "device.disk",
  eventType: null,
  operator: "gt",
  threshold: 90,
  clearThreshold: 85,
  forSeconds: 300,
  clearForSeconds: 60,
  windowSeconds: 900,
  cooldownSeconds: 300,
  scope: null,
  severity: "warning",
  channelIds: [],
  autoResolve: true,
  enabled: true,
  createdBy,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const target = { kind: "device", id: deviceId, name: device.name };
const alert = {
  alertId,
  tenantId,
  ruleId,
  type: rule.metric,
  severity: "warning",
  status: "open",
  silenced: false,
  flapping: false,
  fingerprint: `${ruleId}:${deviceId}`,
  target,
  targetCount: 1,
  activeCount: 1,
  title: "Disk almost full: attic",
  summary: "device.disk is 93.4",
  value: 93.4,
  startedAt: AT,
  lastSeenAt: LATER,
  acknowledgedAt: null,
  acknowledgedBy: null,
  resolvedAt: null,
  resolvedBy: null,
  snoozedUntil: null,
  note: null,
  occurrences: 1,
  version: 1,
};
const acknowledged = { ...alert, status: "acknowledged", acknowledgedAt: LATER, acknowledgedBy: createdBy, note: "Cleaning up", version: 2 };
const channel = {
  channelId,
  tenantId,
  type: "slack",
  name: "#operations",
  address: "https://hooks.slack.com/…Zx9Q",
  enabled: true,
  isDefault: true,
  sendResolved: true,
  lastSentAt: null,
  lastError: null,
  lastErrorAt: null,
  createdBy,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const silence = {
  silenceId,
  tenantId,
  matchers: [{ name: "tag", value: "site:lisbon", isRegex: false }],
  startsAt: AT,
  endsAt: TOMORROW,
  active: true,
  comment: "The site moves",
  createdBy,
  createdAt: AT,
};

export const alerts: Guide<"alerts"> = {
  list: {
    description:
      "Lists alerts, newest first. Targets of one rule that fire at about the same time share an alert, so 300 devices that fall silent are one alert, and one notification. A caller who is limited to some devices sees the alerts about these, and counts no other target.",
    input: { status: ["open"], severity: ["critical", "warning"] },
    output: { items: [shownWithActors(alert)], total: 1 },
  },
  summary: { description: "Counts the alerts that are not resolved.", input: {}, output: { open: { info: 0, warning: 1, critical: 0 }, acknowledged: 2 } },
  get: { description: "Returns the alert as it is now.", input: { alertId }, output: shownWithActors(alert) },
  listTargets: {
    description: "Lists the devices, or other things, that the alert is about, in the order in which they fired.",
    input: { alertId, active: true },
    output: { items: [{ ...target, tags: device.tags, value: 93.4, active: true, silenced: false, startedAt: AT, clearedAt: null }], total: 1 },
  },
  acknowledge: {
    description:
      "Tells others that somebody is at it; the channels get no more about this alert than that it is over. Acknowledging again changes the note. It reaches all targets, so a caller who does not see all of them gets 403.",
    input: { alertId, note: "Cleaning up" },
    output: acknowledged,
  },
  resolve: {
    description: "Closes the alert although it may still be true. The rule opens another one only after its condition was over and has returned.",
    input: { alertId },
    output: { ...alert, status: "resolved", resolvedAt: LATER, resolvedBy: createdBy, version: 2 },
  },
  snooze: {
    description: "Keeps the channels quiet until then; if the alert is still open, they are told again.",
    input: { alertId, until: TOMORROW },
    output: { ...alert, snoozedUntil: TOMORROW, version: 2 },
  },
  listRules: {
    description: "Lists the rules, newest first. Each tenant begins with three.",
    input: { enabled: true },
    output: { items: [shownWithActors(rule)], total: 1 },
  },
  getRule: { description: "Returns the rule with its margins and channels.", input: { ruleId }, output: shownWithActors(rule) },
  createRule: {
    description:
      "The gateway looks at all rules every 15 seconds. An alert opens when the condition has held for `forSeconds`, and clears when the value has been back to `clearThreshold` for `clearForSeconds`. Devices in maintenance open no alert.",
    input: { name: rule.name, metric: "device.disk", operator: "gt", threshold: 90, forSeconds: 300 },
    output: rule,
  },
  updateRule: {
    description: "Changes only the fields that you send. A rule that you disable resolves its alerts.",
    input: { ruleId, threshold: 95 },
    output: { ...rule, threshold: 95, clearThreshold: 90, version: 2 },
  },
  removeRule: { description: "Deletes the rule; its alerts resolve within seconds and stay in the list.", input: { ruleId } },
  testRule: {
    description:
      "Which devices would have opened an alert by this rule in the last hours, as the preview of a new one. Only rules on `device.offline_seconds`, `device.cpu`, `device.memory` and `device.disk`: the past of other metrics is not stored.",
    input: { ruleId },
    output: { hours: 24, deviceCount: 0, truncated: false, firings: [] },
  },
  preview: {
    description: "Says for which devices a rule would have opened alerts in the last hours, and when, without creating anything.",
    input: { metric: "device.disk", operator: "gt", threshold: 90, hours: 24 },
    output: { hours: 24, deviceCount: 1, truncated: false, firings: [{ deviceId, name: "attic", openedAt: AT, clearedAt: null, value: 93.4 }] },
  },
  listSilences: { description: "Lists the silences, newest first.", input: { active: true }, output: { items: [shownWithActors(silence)], total: 1 } },
  getSilence: { description: "Returns the silence, also one that is over.", input: { silenceId }, output: shownWithActors(silence) },
  createSilence: {
    description: "While it lasts, channels are told nothing of targets that match; alerts are recorded all the same. At most 30 days.",
    input: {
      matchers: [{ name: "tag", value: "site:lisbon" }],
      startsAt: "2099-01-15T09:30:00.000Z",
      endsAt: "2099-01-16T09:30:00.000Z",
      comment: "The site moves",
    },
    output: silence,
  },
  removeSilence: { description: "Ends the silence at once.", input: { silenceId } },
  listChannels: { description: "Lists the channels, newest first, with their last error.", input: {}, output: { items: [shownWithActors(channel)], total: 1 } },
  getChannel: { description: "Returns the channel, without its secrets.", input: { channelId }, output: shownWithActors(channel) },
  createChannel: {
    description:
      "`slack`, `discord`, `teams` and `ntfy` take the URL that the service gave you. A `webhook` gets `{id, type, timestamp, data}`, signed as Standard Webhooks say.",
    input: { type: "slack", name: "#operations", config: { url: "https://hooks.slack.com/services/T000/B000/Zx9Q" } },
    output: channel,
  },
  updateChannel: {
    description: "Changes only the fields that you send.",
    input: { channelId, enabled: false },
    output: { ...channel, enabled: false, version: 2 },
  },
  removeChannel: { description: "Deletes the channel, with what it has not been told yet, and takes it out of all rules.", input: { channelId } },
  testChannel: {
    description: "Sends a message now, and answers what came of it.",
    input: { channelId },
    output: { delivered: true, statusCode: 200, error: null, durationMs: 182 },
  },
};
