// The rules that tenants get without asking.
import type { AlertMetric } from "../../../protocol/index.ts";
import { newId } from "../../core/ids.ts";
import { clearThresholdOf } from "./model.ts";
import type { NewRule } from "./store/rules.ts";

const firstRule = (name: string, metric: AlertMetric, more: Pick<NewRule, "threshold" | "forSeconds" | "clearForSeconds" | "severity">): NewRule => ({
  ruleId: newId("arl"),
  name,
  metric,
  eventType: null,
  operator: "gt",
  clearThreshold: clearThresholdOf({ metric, operator: "gt", threshold: more.threshold }),
  windowSeconds: 900,
  cooldownSeconds: 300,
  scope: null,
  channelIds: [],
  autoResolve: true,
  enabled: true,
  createdBy: "system",
  ...more,
});
/** The rules that every tenant begins with, so that nobody has to know of alerts before they are needed. */
export const firstRules = (): readonly NewRule[] => [
  firstRule("Device offline for 10 minutes", "device.offline_seconds", { threshold: 600, forSeconds: 0, clearForSeconds: 0, severity: "critical" }),
  firstRule("Disk almost full", "device.disk", { threshold: 90, forSeconds: 300, clearForSeconds: 60, severity: "warning" }),
  firstRule("No good backup for 26 hours", "backup.age_hours", { threshold: 26, forSeconds: 0, clearForSeconds: 0, severity: "warning" }),
  firstRule("Rollout stopped by failures", "rollout.stopped", { threshold: 0, forSeconds: 0, clearForSeconds: 0, severity: "critical" }),
  firstRule("Rollout waiting for a day", "rollout.waiting_seconds", { threshold: 86_400, forSeconds: 0, clearForSeconds: 0, severity: "warning" }),
];

/** With the first budget. Each threshold that a month reaches is a target of its own. */
export const budgetRule = (): NewRule =>
  firstRule("Budget threshold reached", "cost.budget", { threshold: 0, forSeconds: 0, clearForSeconds: 0, severity: "warning" });
