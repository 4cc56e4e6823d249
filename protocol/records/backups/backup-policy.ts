// Backup policies, their runs, and the preview of one.
import { z } from "zod";
import { Tag } from "../../kit/device-selector.ts";
import { event } from "../../kit/event.ts";
import { AppId, BackupDestinationId, BackupId, BackupPolicyId, BackupRunId, DeviceId, ref, TenantId } from "../../kit/ids.ts";
import { BackupMode, BackupStatus, BackupType, VerifyMode } from "./backup.ts";

const Timestamp = z.iso.datetime();
export const Schedule = z
  .string()
  .trim()
  .min(1)
  .max(120)
  .describe("A cron expression of five fields (minute, hour, day of the month, month, day of the week), or `@hourly`, `@daily`, `@weekly` or `@monthly`.");
const Count = z.int().min(-1_000_000).max(1_000_000).nullable();
const rules = {
  keepLast: Count.describe("The newest so many."),
  keepHourly: Count.describe("The newest of each of the newest so many hours that have one."),
  keepDaily: Count.describe("The same for days."),
  keepWeekly: Count.describe("The same for weeks, from Monday."),
  keepMonthly: Count.describe("The same for months."),
  keepYearly: Count.describe("The same for years."),
  keepWithin: z.string().max(40).nullable().describe("All that are at most so much older than the newest one, such as `30d` or `1y6m2d12h`."),
  maxAgeDays: Count.describe("None that is so many days older than the newest one, whatever other rules say."),
  maxTotalGB: z
    .number()
    .min(-1e9)
    .max(1e9)
    .nullable()
    .describe("The oldest go until the rest restores to at most so many gigabytes, whatever other rules say."),
};
export const Retention = z.object(rules);
export type Retention = z.output<typeof Retention>;
export const GivenRetention = z
  .strictObject(rules)
  .partial()
  .describe("A backup stays if one of the `keep` rules keeps it. Only good backups count, per app and destination, and the newest good one always stays.");

const target = {
  appIds: z.array(ref("app")).max(1_000),
  deviceIds: z.array(ref("dev")).max(100),
  fleetIds: z.array(ref("flt")).max(50),
  tags: z.array(Tag).max(50).describe("Devices with one of these tags."),
};
export const GivenTarget = z
  .strictObject({
    appIds: target.appIds.default([]),
    deviceIds: target.deviceIds.default([]),
    fleetIds: target.fleetIds.default([]),
    tags: target.tags.default([]),
  })
  .describe("These apps, and all apps of these devices, of these fleets and of devices with these tags, as they are when the policy runs.");
export const PolicyTarget = z.object(target);
export type PolicyTarget = z.output<typeof PolicyTarget>;

export const VerifyPlan = z.object({ schedule: Schedule, mode: VerifyMode });
export const PolicyConsistency = z
  .enum(["template", ...BackupMode.options])
  .describe("`template`: as each app's template says. Otherwise this mode instead, without hooks.");
export const MissedRun = z
  .enum(["skip", "run_once"])
  .describe("What happens when the gateway was away at the time, or a device is offline: nothing, or one run as soon as possible.");

export const RunStatus = z.enum(["scheduled", "running", "completed", "partially_failed", "failed", "skipped"]);
export type RunStatus = z.output<typeof RunStatus>;

export const BackupPolicy = z.object({
  id: BackupPolicyId.describe("The same as `policyId`."),
  policyId: BackupPolicyId,
  tenantId: TenantId,
  name: z.string(),
  enabled: z.boolean().describe("`false`: the policy is paused."),
  schedule: z.string(),
  timezone: z.string(),
  jitterSeconds: z.int().describe("Each device begins so much later at most, always by the same delay."),
  missedRun: MissedRun,
  target: PolicyTarget,
  type: BackupType,
  destinationId: BackupDestinationId.nullable().describe("`null`: the tenant's default destination at the time."),
  retention: Retention,
  consistency: PolicyConsistency,
  timeoutSeconds: z.int(),
  verify: VerifyPlan.nullable().describe("`null`: the policy verifies nothing by itself."),
  beforeUpdates: z.boolean().describe("The apps of the policy are also backed up before each update."),
  lastRunAt: Timestamp.nullable(),
  lastStatus: RunStatus.nullable(),
  nextRunAt: Timestamp.nullable().describe("`null`: the policy is paused."),
  consecutiveFailures: z.int(),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type BackupPolicy = z.output<typeof BackupPolicy>;

const RunBackup = z.object({
  backupId: BackupId.nullable().describe("`null`: the app was skipped before there was a backup."),
  appId: AppId,
  deviceId: DeviceId,
  status: z.union([BackupStatus, z.literal("skipped")]),
  reason: z.string().nullable(),
});
export const BackupRun = z.object({
  runId: BackupRunId,
  policyId: BackupPolicyId,
  scheduledFor: Timestamp,
  startedAt: Timestamp.nullable(),
  endedAt: Timestamp.nullable(),
  status: RunStatus,
  counts: z.object({ total: z.int(), completed: z.int(), partiallyFailed: z.int(), failed: z.int(), skipped: z.int() }),
  backups: z.array(RunBackup).describe("At most 1,000."),
  reason: z.string().nullable().describe("Why it was skipped, or failed as a whole."),
  createdBy: z.string(),
});
export type BackupRun = z.output<typeof BackupRun>;

const PolicyEvent = z.object({ policyId: BackupPolicyId, name: z.string() });
const RunEvent = PolicyEvent.extend({ runId: BackupRunId, scheduledFor: Timestamp, status: RunStatus, counts: BackupRun.shape.counts });

const PlannedRun = z.object({
  at: Timestamp,
  local: z.string().describe("The same moment in the policy's time zone."),
  note: z.string().nullable().describe("Where a change of the clocks moves the run."),
});
const BackupFate = z.object({
  backupId: BackupId,
  appId: AppId,
  createdAt: Timestamp,
  keep: z.boolean(),
  rules: z.array(z.string()).describe("Why it stays, such as `keepDaily`, `newest`, `held` or `in_use`, or why it goes, such as `maxAgeDays`."),
});
export const PolicyPreview = z.object({
  runs: z.array(PlannedRun).describe("The next ten."),
  apps: z.array(z.object({ appId: AppId, deviceId: DeviceId, name: z.string() })).describe("The apps that it would back up now; at most 100 of them."),
  totalApps: z.int(),
  backups: z.array(BackupFate).describe("What its retention would do now to the backups of these apps, newest first; at most 500."),
});

export type PolicyPreview = z.output<typeof PolicyPreview>;

export const policyEvents = {
  created: event("backup_policy.created", PolicyEvent, "A backup policy was created"),
  updated: event("backup_policy.updated", PolicyEvent, "A backup policy was changed"),
  paused: event("backup_policy.paused", PolicyEvent, "A backup policy was paused"),
  resumed: event("backup_policy.resumed", PolicyEvent, "A backup policy was resumed"),
  deleted: event("backup_policy.deleted", PolicyEvent, "A backup policy was deleted"),
  runStarted: event("backup_policy.run_started", RunEvent, "A backup policy began a run"),
  runCompleted: event("backup_policy.run_completed", RunEvent, "All backups of a run are complete"),
  runFailed: event("backup_policy.run_failed", RunEvent, "A run of a backup policy has ended, and backups failed or were skipped"),
  missed: event(
    "backup_policy.missed",
    PolicyEvent.extend({ missed: z.int().describe("Runs whose time passed while the gateway was away."), missedRun: MissedRun }),
    "A backup policy missed runs",
  ),
  retentionApplied: event(
    "backup_policy.retention_applied",
    PolicyEvent.extend({ runId: BackupRunId, deleted: z.int(), kept: z.int() }),
    "A backup policy deleted backups that its retention no longer keeps",
  ),
};
