// Alerts: rules over what devices report and what happens, alerts for people to act on, silences, and channels that tell of alerts.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { AlertId, AlertRuleId, DeviceId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import { alertChannelOperations, alertSilenceOperations } from "../records/alert-channels.ts";
import { alertRuleOperations } from "../records/alert-rules.ts";
import { Alert, AlertChannel, AlertCounts, AlertPreview, AlertRule, AlertSeverity, AlertSilence, AlertStatus, AlertTarget } from "../records/alerts.ts";

const Note = z.string().trim().min(1).max(500).optional();
const oneAlert = z.strictObject({ alertId: ref("alr") });

const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "alert:read" } as const;
const act = { ...people, permission: "alert:acknowledge" } as const;

const AlertEvent = z.object({
  alertId: AlertId,
  ruleId: AlertRuleId,
  type: z.string(),
  severity: AlertSeverity,
  title: z.string(),
  occurrences: z.int(),
  deviceId: DeviceId.optional().describe("Of an alert about one device."),
});

export const alerts = group({
  tag: "Alerts",
  records: { Alert, AlertTarget, AlertCounts, AlertRule, AlertSilence, AlertChannel, AlertPreview },
  operations: {
    list: query({
      ...read,
      summary: "List alerts",
      rest: ["GET /alerts"],
      list: "page",
      input: listQuery({
        sort: ["startedAt", "lastSeenAt"],
        by: "-startedAt",
        filters: {
          status: z.array(AlertStatus).max(3).optional().describe("Only alerts in one of these states."),
          severity: z.array(AlertSeverity).max(3).optional().describe("Only alerts of one of these severities."),
          ruleId: ref("arl").optional(),
          deviceId: ref("dev").optional().describe("Only alerts that this device is or was part of."),
        },
      }),
      output: paged(named(Alert)),
    }),
    summary: query({ ...read, summary: "Count open alerts by severity", rest: ["GET /alerts/summary"], input: z.strictObject({}), output: AlertCounts }),
    get: query({ ...read, summary: "Get an alert", rest: ["GET /alerts/{alertId}"], input: oneAlert, output: named(Alert), errors: ["ALERT_NOT_FOUND"] }),
    listTargets: query({
      ...read,
      summary: "List what an alert is about",
      rest: ["GET /alerts/{alertId}/targets"],
      list: "page",
      input: listQuery({
        sort: ["startedAt"],
        by: "startedAt",
        filters: { alertId: ref("alr"), active: z.boolean().optional().describe("Only those for which the condition holds now, or only the others.") },
      }),
      output: paged(AlertTarget),
      errors: ["ALERT_NOT_FOUND"],
    }),
    acknowledge: mutation({
      ...act,
      summary: "Acknowledge an alert",
      rest: ["POST /alerts/{alertId}/acknowledge"],
      input: oneAlert.extend({ note: Note }),
      output: Alert,
      errors: ["ALERT_NOT_FOUND", "ALERT_ALREADY_RESOLVED"],
    }),
    resolve: mutation({
      ...act,
      summary: "Resolve an alert",
      rest: ["POST /alerts/{alertId}/resolve"],
      input: oneAlert.extend({ note: Note }),
      output: Alert,
      errors: ["ALERT_NOT_FOUND", "ALERT_ALREADY_RESOLVED"],
    }),
    snooze: mutation({
      ...act,
      summary: "Snooze an alert",
      rest: ["POST /alerts/{alertId}/snooze"],
      input: oneAlert.extend({ until: Moment.describe("At most 30 days ahead. A time that is over ends the snooze.") }),
      output: Alert,
      errors: ["ALERT_NOT_FOUND", "ALERT_ALREADY_RESOLVED"],
    }),
    ...alertRuleOperations,
    ...alertSilenceOperations,
    ...alertChannelOperations,
  },
  events: {
    opened: event("alert.opened", AlertEvent, "An alert opened, or opened again"),
    acknowledged: event("alert.acknowledged", AlertEvent.extend({ actor: z.string() }), "Somebody acknowledged an alert"),
    resolved: event("alert.resolved", AlertEvent.extend({ actor: z.string().describe("A person or a key, or `auto`.") }), "An alert is over"),
  },
});
