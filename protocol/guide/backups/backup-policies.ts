// Guide to backup policies.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER, shownWithActors, TOMORROW } from "../records.ts";

const policyId = "bpl_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const backupId = "bak_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const { appId, deviceId, tenantId, userId } = IDS;
const retention = {
  keepLast: null,
  keepHourly: null,
  keepDaily: 7,
  keepWeekly: 4,
  keepMonthly: 12,
  keepYearly: null,
  keepWithin: null,
  maxAgeDays: null,
  maxTotalGB: null,
};
const target = { appIds: [], deviceIds: [], fleetIds: [], tags: ["site:lisbon"] };
const policy = {
  id: policyId,
  policyId,
  tenantId,
  name: "Every night",
  enabled: true,
  schedule: "0 2 * * *",
  timezone: "Europe/Lisbon",
  jitterSeconds: 300,
  missedRun: "run_once",
  target,
  type: "full",
  destinationId: null,
  retention,
  consistency: "template",
  timeoutSeconds: 3_600,
  verify: { schedule: "@weekly", mode: "checksum" },
  beforeUpdates: true,
  lastRunAt: AT,
  lastStatus: "completed",
  nextRunAt: TOMORROW,
  consecutiveFailures: 0,
  createdBy: `user:${userId}`,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const run = {
  runId: "bpr_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  policyId,
  scheduledFor: AT,
  startedAt: AT,
  endedAt: LATER,
  status: "completed",
  counts: { total: 1, completed: 1, partiallyFailed: 0, failed: 0, skipped: 0 },
  backups: [{ backupId, appId, deviceId, status: "completed", reason: null }],
  reason: null,
  createdBy: "system",
};
const given = {
  schedule: "0 2 * * *",
  timezone: "Europe/Lisbon",
  target: { tags: ["site:lisbon"] },
  retention: { keepDaily: 7, keepWeekly: 4, keepMonthly: 12 },
};

export const backupPolicies: Guide<"backupPolicies"> = {
  list: { description: "Lists the policies, newest first.", input: { page: 1, pageSize: 20 }, output: { items: [shownWithActors(policy)], total: 1 } },
  get: { description: "Returns the policy, with its last run and the time of its next one.", input: { policyId }, output: shownWithActors(policy) },
  create: {
    description:
      "Backs up the target's apps by the schedule, a few at a time, each device with a delay of its own. Where a change of the clocks skips a time, the policy runs once, at the shift; where a time comes twice, it runs once. The retention deletes backups only after a run that succeeded, and never the newest good one.",
    input: { name: "Every night", ...given, verify: { schedule: "@weekly", mode: "checksum" }, beforeUpdates: true },
    output: { ...policy, lastRunAt: null, lastStatus: null },
  },
  change: {
    description: "Changes only the fields that you send.",
    input: { policyId, jitterSeconds: 600 },
    output: { ...policy, jitterSeconds: 600, version: 2 },
  },
  remove: { description: "Deletes the policy. The backups that it made stay.", input: { policyId } },
  run: {
    description: "Begins a run at once, without delays of devices. While a run is under way, the answer is 409 `BACKUP_IN_PROGRESS`.",
    input: { policyId },
    output: {
      ...run,
      status: "running",
      endedAt: null,
      counts: { ...run.counts, completed: 0 },
      backups: [{ ...run.backups[0], backupId: null, status: "pending" }],
      createdBy: `user:${userId}`,
    },
  },
  pause: {
    description: "The policy makes no more runs until somebody resumes it. One that is under way goes on.",
    input: { policyId },
    output: { ...policy, enabled: false, nextRunAt: null, version: 2 },
  },
  resume: { description: "The policy runs again, from its next time on.", input: { policyId }, output: policy },
  listRuns: { description: "Lists the runs of the last 90 days, newest first.", input: { policyId }, output: { items: [shownWithActors(run)], total: 1 } },
  preview: {
    description:
      "Changes nothing: shows the next ten runs, the apps that the policy would take now, and what its retention would do to each of their backups, with the rule.",
    input: given,
    output: {
      runs: [{ at: "2026-11-22T02:00:00.000Z", local: "2026-11-22T02:00", note: null }],
      apps: [{ appId, deviceId, name: "notes" }],
      totalApps: 1,
      backups: [{ backupId, appId, createdAt: AT, keep: true, rules: ["keepDaily", "keepWeekly", "keepMonthly", "newest"] }],
    },
  },
};
