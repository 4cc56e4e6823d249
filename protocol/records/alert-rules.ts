// The operations on alert rules.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { ref } from "../kit/ids.ts";
import { mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "./actor.ts";
import { AlertMetric, AlertOperator, AlertPreview, AlertRule, AlertScope, AlertSeverity, METRICS_WITH_HISTORY } from "./alerts.ts";

const Name = z.string().trim().min(1).max(100);
const Figure = z.number().min(-1e9).max(1e9);
const seconds = (max: number, by: number, min = 0) => z.int().min(min).max(max).default(by);
const ChannelIds = z.array(ref("chn")).max(20);
const EventTypeName = z
  .string()
  .regex(/^[a-z_]+\.[a-z_]+$/)
  .max(100);

const condition = {
  operator: AlertOperator.default("gt"),
  threshold: Figure,
  clearThreshold: Figure.optional().describe("Default: 5 points from the threshold for percentages, otherwise the threshold itself."),
  forSeconds: seconds(86_400, 0),
  clearForSeconds: seconds(86_400, 60),
  scope: AlertScope.nullable().default(null),
};
const NewRule = z.strictObject({
  name: Name,
  metric: AlertMetric,
  eventType: EventTypeName.optional().describe("Only with the metric `event`."),
  ...condition,
  windowSeconds: seconds(3_600, 900, 60),
  cooldownSeconds: seconds(86_400, 300),
  severity: AlertSeverity.default("warning"),
  channelIds: ChannelIds.default([]),
  autoResolve: z.boolean().default(true),
  enabled: z.boolean().default(true),
});

const oneRule = z.strictObject({ ruleId: ref("arl") });
const read = { auth: ["user", "apiKey"], permission: "alert_rule:read" } as const;
const write = { auth: ["user", "apiKey"], permission: "alert_rule:write" } as const;

export const alertRuleOperations = {
  listRules: query({
    ...read,
    summary: "List alert rules",
    rest: ["GET /alert-rules"],
    list: "page",
    input: listQuery({
      sort: ["createdAt", "name"],
      by: "-createdAt",
      filters: { enabled: z.boolean().optional().describe("Only rules that are evaluated, or only the others."), metric: AlertMetric.optional() },
    }),
    output: paged(named(AlertRule)),
  }),
  getRule: query({
    ...read,
    summary: "Get an alert rule",
    rest: ["GET /alert-rules/{ruleId}"],
    input: oneRule,
    output: named(AlertRule),
    errors: ["ALERT_RULE_NOT_FOUND"],
  }),
  createRule: mutation({
    ...write,
    summary: "Create an alert rule",
    rest: ["POST /alert-rules"],
    status: 201,
    location: "/alert-rules/{ruleId}",
    input: NewRule,
    output: AlertRule,
    errors: ["PLAN_LIMIT_EXCEEDED", "CHANNEL_NOT_FOUND", "EVENT_TYPE_UNKNOWN", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND"],
  }),
  updateRule: mutation({
    ...write,
    summary: "Change an alert rule",
    rest: ["PATCH /alert-rules/{ruleId}"],
    input: oneRule.extend({
      name: Name.optional(),
      operator: AlertOperator.optional(),
      threshold: Figure.optional(),
      clearThreshold: Figure.optional(),
      forSeconds: z.int().min(0).max(86_400).optional(),
      clearForSeconds: z.int().min(0).max(86_400).optional(),
      windowSeconds: z.int().min(60).max(3_600).optional(),
      cooldownSeconds: z.int().min(0).max(86_400).optional(),
      scope: AlertScope.nullable().optional(),
      severity: AlertSeverity.optional(),
      channelIds: ChannelIds.optional(),
      autoResolve: z.boolean().optional(),
      enabled: z.boolean().optional(),
      version: Version.optional(),
    }),
    output: AlertRule,
    errors: ["ALERT_RULE_NOT_FOUND", "CHANNEL_NOT_FOUND", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND", "VERSION_CONFLICT"],
  }),
  removeRule: mutation({
    ...write,
    summary: "Delete an alert rule",
    rest: ["DELETE /alert-rules/{ruleId}"],
    status: 204,
    input: oneRule,
    output: z.null(),
    errors: ["ALERT_RULE_NOT_FOUND"],
  }),
  testRule: query({
    ...write,
    summary: "Try an alert rule that is stored",
    rest: ["POST /alert-rules/{ruleId}/test"],
    input: oneRule.extend({ hours: z.int().min(1).max(48).default(24) }),
    output: AlertPreview,
    errors: ["ALERT_RULE_NOT_FOUND"],
  }),
  preview: query({
    ...write,
    summary: "Try an alert rule on stored data",
    rest: ["POST /alert-rules/preview"],
    input: z.strictObject({ metric: z.enum(METRICS_WITH_HISTORY), ...condition, hours: z.int().min(1).max(48).default(24) }),
    output: AlertPreview,
    errors: ["DEVICE_NOT_FOUND", "FLEET_NOT_FOUND"],
  }),
};
