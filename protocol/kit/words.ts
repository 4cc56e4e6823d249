// The words that people read where a program reads an identifier: `alertRules` is "alert rules", `past_due` is "past due".
// The console loads it, too.
import { identifierInWords } from "./identifier-words.ts";

/** What a plan limits, in words that fit behind a number. */
export const PLAN_RESOURCES = {
  hosts: "devices",
  deployments: "deployments",
  apps: "apps",
  storageGB: "gigabytes of storage",
  customDomains: "domains of your own",
  members: "members",
  customRoles: "roles of your own",
  tunnels: "tunnels",
  meshRoutes: "mesh routes",
  webhooks: "webhooks",
  apiKeys: "API keys",
  enrollmentTokens: "enrollment tokens",
  backupPolicies: "backup policies",
  minBackupIntervalMinutes: "minutes between backups",
  backupRetentionDays: "days of backups",
  fleets: "fleets",
  updatePolicies: "update policies",
  liveRollouts: "live rollouts",
  alertRules: "alert rules",
  budgets: "budgets",
  bulkTargets: "devices in one bulk operation",
  eventRetentionDays: "days of events",
  auditRetentionDays: "days of audit records",
  traceRetentionDays: "days of traces",
  spansPerDay: "spans a day",
  exportsPerDay: "exports a day",
  requestsPerMinute: "requests a minute",
} as const;
export type PlanResource = keyof typeof PLAN_RESOURCES;

/** What a rule of an alert watches, in words that stand before its value. */
export const ALERT_METRIC_WORDS = {
  "device.offline_seconds": "Seconds offline",
  "device.cpu": "CPU in percent",
  "device.memory": "Memory in percent",
  "device.disk": "Disk in percent",
  "command.failure_rate": "Failed commands in percent",
  "command.queue_depth": "Open commands",
  "certificate.days_left": "Days left of a certificate",
  "backup.age_hours": "Hours since the last good backup",
  "backup.failed": "Failed backups since the last good one",
  "backup.verification_failed": "Damaged backups",
  "backup.prune_failed": "Repositories that were not pruned",
  "rollout.stopped": "Rollout stopped by failures",
  "rollout.waiting_seconds": "Seconds that a rollout waits",
  "cost.budget": "Percent of a budget",
  "tunnel.down": "Tunnel without a connection",
  event: "Events",
} as const;

const isPlanResource = (name: string): name is PlanResource => Object.hasOwn(PLAN_RESOURCES, name);

/** An identifier in words. Text that is none stays, such as a sentence, a single word or an id. */
export const inWords = (text: string): string => (isPlanResource(text) ? PLAN_RESOURCES[text] : identifierInWords(text));

/** The text as the beginning of a sentence. */
export const capitalized = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
