// The records of alerts: rules, alerts, silences and channels.
import { z } from "zod";
import { Tag } from "../kit/device-selector.ts";
import { AlertChannelId, AlertId, AlertRuleId, ref, SilenceId, TenantId } from "../kit/ids.ts";

const Timestamp = z.iso.datetime();

export const AlertSeverity = z.enum(["info", "warning", "critical"]);
export type AlertSeverity = z.infer<typeof AlertSeverity>;
export const AlertStatus = z.enum(["open", "acknowledged", "resolved"]);
export type AlertStatus = z.infer<typeof AlertStatus>;

/** The metrics whose past is stored, so that a rule can be tried on it. */
export const METRICS_WITH_HISTORY = ["device.offline_seconds", "device.cpu", "device.memory", "device.disk"] as const;
const BACKUP_METRICS = ["backup.age_hours", "backup.failed", "backup.verification_failed", "backup.prune_failed"] as const;
export const ALERT_METRICS = [
  ...METRICS_WITH_HISTORY,
  "command.failure_rate",
  "command.queue_depth",
  "certificate.days_left",
  ...BACKUP_METRICS,
  "rollout.stopped",
  "rollout.waiting_seconds",
  "tunnel.down",
  "cost.budget",
  "event",
] as const;
export type AlertMetric = (typeof ALERT_METRICS)[number];
export const AlertMetric = z
  .enum(ALERT_METRICS)
  .describe(
    "`device.cpu`, `.memory` and `.disk` are in percent, as the device last reported. `command.failure_rate`: percent of a device's commands that failed, expired or timed out within `windowSeconds`, once 5 have ended. `command.queue_depth`: a device's open commands. `certificate.days_left`: until the certificate of a custom domain ends; a rule with a scope sees none. `backup.age_hours`: since the last good backup of an app that the last run of an enabled policy names. `backup.failed`: an app's backups that failed since its last good one. `backup.verification_failed`: an app's backups that are damaged, by their last verification. `backup.prune_failed`: a device's repositories whose last prune failed. `rollout.stopped`: 1 while a rollout is paused because too many of its devices failed. `rollout.waiting_seconds`: how long a rollout has waited for anything but its window, its start or its soak. `tunnel.down`: 1 while nothing has been connected to an active tunnel for 15 seconds. `cost.budget`: the threshold of a budget, in percent, that this month has reached, each once. Rules with a scope see no rollouts, no tunnels and no budgets. `event`: how often an event of `eventType` came about the same thing within `windowSeconds`.",
  );
export const AlertOperator = z.enum(["gt", "gte", "lt", "lte", "eq", "ne"]);
export type AlertOperator = z.infer<typeof AlertOperator>;

export const AlertScope = z
  .strictObject({
    deviceIds: z.array(ref("dev")).max(100).default([]),
    tags: z.array(Tag).max(50).default([]),
    fleetIds: z.array(ref("flt")).max(50).default([]),
  })
  .refine(({ deviceIds, tags, fleetIds }) => deviceIds.length + tags.length + fleetIds.length > 0, "must name at least one device, tag or fleet")
  .describe("The devices with one of these ids, those with one of these tags, and those of these fleets.");

export type AlertScope = z.infer<typeof AlertScope>;

export const AlertRule = z.object({
  ruleId: AlertRuleId,
  tenantId: TenantId,
  name: z.string(),
  metric: AlertMetric,
  eventType: z.string().nullable(),
  operator: AlertOperator,
  threshold: z.number(),
  clearThreshold: z.number().describe("The value has to come back to it before the alert clears."),
  forSeconds: z.int().describe("How long the condition has to hold before an alert opens."),
  clearForSeconds: z.int().describe("How long the condition has to be over before the alert clears."),
  windowSeconds: z.int().describe("What `command.failure_rate` and `event` count in."),
  cooldownSeconds: z.int().describe("If the condition returns within this time, the same alert opens again."),
  scope: AlertScope.nullable().describe("`null`: all devices."),
  severity: AlertSeverity,
  channelIds: z.array(z.string()).describe("Empty: the channels that are default."),
  autoResolve: z.boolean(),
  enabled: z.boolean(),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type AlertRule = z.infer<typeof AlertRule>;

const AlertTargetRef = z.object({
  kind: z.enum(["device", "resource"]),
  id: z.string(),
  name: z.string().nullable(),
});

export const Alert = z.object({
  alertId: AlertId,
  tenantId: TenantId,
  ruleId: AlertRuleId,
  type: z.string().describe("The metric of its rule, or the type of event."),
  severity: AlertSeverity,
  status: AlertStatus,
  silenced: z.boolean().describe("Silences match all targets for which it is still true."),
  flapping: z.boolean().describe("It comes and goes: it stays open, and notifies nobody, until it has been calm for a while."),
  fingerprint: z.string().describe("The rule and the first target."),
  target: AlertTargetRef.nullable().describe("The first target. `null` if the caller does not see it."),
  targetCount: z.int().describe("The targets that the caller sees. Targets of a rule that fire at about the same time share an alert."),
  activeCount: z.int().describe("Those of them for which it is still true."),
  title: z.string(),
  summary: z.string(),
  value: z.number().describe("Of the first target when the alert opened."),
  startedAt: Timestamp,
  lastSeenAt: Timestamp,
  acknowledgedAt: Timestamp.nullable(),
  acknowledgedBy: z.string().nullable(),
  resolvedAt: Timestamp.nullable(),
  resolvedBy: z.string().nullable().describe("A person or a key, or `auto`."),
  snoozedUntil: Timestamp.nullable(),
  note: z.string().nullable(),
  occurrences: z.int().describe("How often it opened."),
  version: z.int(),
});
export type Alert = z.infer<typeof Alert>;

export const AlertTarget = z.object({
  kind: z.enum(["device", "resource"]),
  id: z.string(),
  name: z.string().nullable(),
  tags: z.array(z.string()).describe("As they were when the alert opened."),
  value: z.number(),
  active: z.boolean(),
  silenced: z.boolean(),
  startedAt: Timestamp,
  clearedAt: Timestamp.nullable(),
});
export type AlertTarget = z.infer<typeof AlertTarget>;

export const AlertCounts = z.object({
  open: z.object({ info: z.int(), warning: z.int(), critical: z.int() }),
  acknowledged: z.int(),
});
export type AlertCounts = z.infer<typeof AlertCounts>;

export const MATCHER_NAMES = ["ruleId", "rule", "type", "severity", "deviceId", "device", "tag"] as const;
/** Any text that fits means the same as a regular expression that has to match all of the value; none can take long. */
const SAFE_PATTERN = /^(?:[\w :@/-]|\.\*|\\[.*+?^${}()|[\]\\]|\|)*$/;
const Value = z.string().min(1).max(200);
export const SilenceMatcher = z
  .strictObject({
    name: z.enum(MATCHER_NAMES),
    value: Value.describe(
      "With `isRegex`: literal characters, `.*` for any text, `|` between alternatives, and `\\` before a sign. It has to match the whole value.",
    ),
    isRegex: z.boolean().default(false),
  })
  .refine(({ value, isRegex }) => !isRegex || SAFE_PATTERN.test(value), {
    path: ["value"],
    message: "may only have literal characters, .*, | and escaped signs",
  });
export type SilenceMatcher = z.infer<typeof SilenceMatcher>;

export const AlertSilence = z.object({
  silenceId: SilenceId,
  tenantId: TenantId,
  matchers: z.array(SilenceMatcher).describe("All have to match."),
  startsAt: Timestamp,
  endsAt: Timestamp,
  active: z.boolean(),
  comment: z.string(),
  createdBy: z.string(),
  createdAt: Timestamp,
});
export type AlertSilence = z.infer<typeof AlertSilence>;

export const CHANNEL_TYPES = ["email", "webhook", "slack", "discord", "teams", "ntfy"] as const;
export const ChannelType = z.enum(CHANNEL_TYPES);
export type ChannelType = z.infer<typeof ChannelType>;
export const ChannelConfig = z
  .strictObject({
    to: z.array(z.email().max(254)).min(1).max(10).optional().describe("`email`: the recipients."),
    url: z
      .url()
      .max(2_048)
      .optional()
      .describe("All but `email`: the webhook's URL; for Teams that of the workflow, for ntfy that of the topic. It is never shown again."),
    token: z
      .string()
      .regex(/^[!-~]{1,500}$/)
      .optional()
      .describe("`ntfy`: the access token."),
    secret: z
      .string()
      .regex(/^[!-~]{8,256}$/)
      .optional()
      .describe("`webhook`: signs the messages, as a webhook's `secret` does. Left out, the gateway makes one and shows it once."),
  })
  .describe("How to reach the channel.");
export type ChannelConfig = z.infer<typeof ChannelConfig>;

export const AlertChannel = z.object({
  channelId: AlertChannelId,
  tenantId: TenantId,
  type: ChannelType,
  name: z.string(),
  address: z.string().describe("The recipients, or the masked URL."),
  enabled: z.boolean(),
  isDefault: z.boolean().describe("Rules that name no channel use it."),
  sendResolved: z.boolean().describe("It is also told when an alert is over."),
  lastSentAt: Timestamp.nullable(),
  lastError: z.string().nullable().describe("Of the last attempt; `null` after a success."),
  lastErrorAt: Timestamp.nullable(),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type AlertChannel = z.infer<typeof AlertChannel>;

export const ChannelTest = z.object({
  delivered: z.boolean(),
  statusCode: z.int().nullable().describe("What the other side answered; `null` without an answer, and for email, which is only ordered."),
  error: z.string().nullable(),
  durationMs: z.number(),
});
export type ChannelTest = z.infer<typeof ChannelTest>;

export const AlertPreview = z.object({
  hours: z.int(),
  deviceCount: z.int().describe("Devices for which the rule would have opened an alert."),
  truncated: z.boolean().describe("More devices came near than were tried."),
  firings: z
    .array(
      z.object({
        deviceId: z.string(),
        name: z.string().nullable(),
        openedAt: Timestamp,
        clearedAt: Timestamp.nullable().describe("`null`: it would still be open."),
        value: z.number(),
      }),
    )
    .describe("The newest 500."),
});
export type AlertPreview = z.infer<typeof AlertPreview>;
