// The words that people read where a program reads an identifier: `alertRules` is "alert rules", `past_due` is "past due".

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
  alertRules: "alert rules",
  bulkTargets: "devices in one bulk operation",
  eventRetentionDays: "days of events",
  auditRetentionDays: "days of audit records",
  traceRetentionDays: "days of traces",
  spansPerDay: "spans a day",
  exportsPerDay: "exports a day",
  requestsPerMinute: "requests a minute",
} as const;
export type PlanResource = keyof typeof PLAN_RESOURCES;

const isPlanResource = (name: string): name is PlanResource => Object.hasOwn(PLAN_RESOURCES, name);
const IDENTIFIER = /^[A-Za-z][A-Za-z\d]*(?:_[A-Za-z\d]+)*$/;

/** An identifier in words. Text that is none stays, such as a sentence, a single word or an id. */
export const inWords = (text: string): string => {
  if (isPlanResource(text)) return PLAN_RESOURCES[text];
  if (!IDENTIFIER.test(text)) return text;
  if (text === text.toUpperCase()) return text.includes("_") ? text.toLowerCase().replaceAll("_", " ") : text;
  return text
    .replaceAll(/([a-z\d])([A-Z])(?=[a-z])/g, (_, before: string, letter: string) => `${before} ${letter.toLowerCase()}`)
    .replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ");
};
