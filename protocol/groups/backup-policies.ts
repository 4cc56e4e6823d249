// Backup policies: which apps are backed up when, and which of their backups are kept how long.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import { BackupType } from "../records/backups/backup.ts";
import {
  BackupPolicy,
  BackupRun,
  GivenRetention,
  GivenTarget,
  MissedRun,
  PolicyConsistency,
  PolicyPreview,
  policyEvents,
  RunStatus,
  Schedule,
  VerifyPlan,
} from "../records/backups/backup-policy.ts";
import { TimeZone } from "./access/tenants.ts";

const Name = z.string().trim().min(1).max(100);

const body = {
  name: Name,
  schedule: Schedule,
  timezone: TimeZone.optional().describe("Default: the tenant's. An IANA time zone, such as `Europe/Lisbon`."),
  jitterSeconds: z.int().min(0).max(3_600).default(300),
  missedRun: MissedRun.default("run_once"),
  target: GivenTarget,
  type: BackupType.default("full"),
  destinationId: ref("bkd").nullable().default(null).describe("`null`: the tenant's default destination."),
  retention: GivenRetention,
  consistency: PolicyConsistency.default("template"),
  timeoutSeconds: z.int().min(60).max(36_000).default(3_600),
  verify: VerifyPlan.nullable().default(null),
  beforeUpdates: z.boolean().default(false),
};
const allowEmpty = z.boolean().default(false).describe("`true`: the target may have no app now.");
const NewPolicy = z.strictObject({ ...body, enabled: z.boolean().default(true), allowEmpty });

const one = z.strictObject({ policyId: ref("bpl") });
const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "backup_policy:read" } as const;
const write = { ...people, permission: "backup_policy:write" } as const;
const run = { ...people, permission: "backup_policy:run" } as const;
const INVALID = [
  ...["CRON_INVALID", "CRON_TOO_FREQUENT", "RETENTION_INVALID", "TARGET_EMPTY"],
  ...["BACKUP_DESTINATION_NOT_FOUND", "APP_NOT_FOUND", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND"],
] as const;

export const backupPolicies = group({
  tag: "Backup Policies",
  records: { BackupPolicy, BackupRun, PolicyPreview },
  operations: {
    list: query({
      ...read,
      summary: "List backup policies",
      rest: ["GET /backup-policies"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name"],
        by: "-createdAt",
        filters: {
          enabled: z.boolean().optional().describe("Only policies that run, or only paused ones."),
          q: z.string().min(1).max(100).optional().describe("Only policies whose name contains this text."),
        },
      }),
      output: paged(named(BackupPolicy)),
    }),
    get: query({
      ...read,
      summary: "Get a backup policy",
      rest: ["GET /backup-policies/{policyId}"],
      input: one,
      output: named(BackupPolicy),
      errors: ["BACKUP_POLICY_NOT_FOUND"],
    }),
    create: mutation({
      ...write,
      summary: "Create a backup policy",
      rest: ["POST /backup-policies"],
      status: 201,
      location: "/backup-policies/{policyId}",
      input: NewPolicy,
      output: BackupPolicy,
      errors: [...INVALID, "PLAN_LIMIT_EXCEEDED"],
    }),
    change: mutation({
      ...write,
      summary: "Change a backup policy",
      rest: ["PATCH /backup-policies/{policyId}"],
      input: one.extend({
        name: Name.optional(),
        schedule: Schedule.optional(),
        timezone: TimeZone.optional(),
        jitterSeconds: z.int().min(0).max(3_600).optional(),
        missedRun: MissedRun.optional(),
        target: GivenTarget.optional(),
        type: BackupType.optional(),
        destinationId: ref("bkd").nullable().optional().describe("`null`: the tenant's default destination."),
        retention: GivenRetention.optional().describe("Replaces all rules."),
        consistency: PolicyConsistency.optional(),
        timeoutSeconds: z.int().min(60).max(36_000).optional(),
        verify: VerifyPlan.nullable().optional(),
        beforeUpdates: z.boolean().optional(),
        allowEmpty,
        version: Version.optional(),
      }),
      output: BackupPolicy,
      errors: ["BACKUP_POLICY_NOT_FOUND", "VERSION_CONFLICT", ...INVALID],
    }),
    remove: mutation({
      ...write,
      summary: "Delete a backup policy",
      rest: ["DELETE /backup-policies/{policyId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["BACKUP_POLICY_NOT_FOUND"],
    }),
    run: mutation({
      ...run,
      summary: "Run a backup policy now",
      rest: ["POST /backup-policies/{policyId}/run"],
      status: 201,
      input: one,
      output: BackupRun,
      errors: ["BACKUP_POLICY_NOT_FOUND", "BACKUP_IN_PROGRESS", "TARGET_EMPTY"],
    }),
    pause: mutation({
      ...run,
      summary: "Pause a backup policy",
      rest: ["POST /backup-policies/{policyId}/pause"],
      input: one,
      output: BackupPolicy,
      errors: ["BACKUP_POLICY_NOT_FOUND"],
    }),
    resume: mutation({
      ...run,
      summary: "Resume a backup policy",
      rest: ["POST /backup-policies/{policyId}/resume"],
      input: one,
      output: BackupPolicy,
      errors: ["BACKUP_POLICY_NOT_FOUND"],
    }),
    listRuns: query({
      ...read,
      summary: "List the runs of a backup policy, newest first",
      rest: ["GET /backup-policies/{policyId}/runs"],
      list: "page",
      input: listQuery({
        sort: ["scheduledFor"],
        by: "-scheduledFor",
        filters: {
          policyId: ref("bpl"),
          status: z.array(RunStatus).min(1).max(6).optional().describe("Only runs in one of these states, separated by commas."),
        },
      }),
      output: paged(named(BackupRun)),
      errors: ["BACKUP_POLICY_NOT_FOUND"],
    }),
    preview: query({
      ...read,
      summary: "Show when a backup policy would run and what its retention would do",
      rest: ["POST /backup-policies/preview"],
      input: z.strictObject({ ...body, name: Name.optional(), from: Moment.optional().describe("Show the runs after this time. Default: now.") }),
      output: PolicyPreview,
      errors: ["CRON_INVALID", "RETENTION_INVALID", "BACKUP_DESTINATION_NOT_FOUND", "APP_NOT_FOUND", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND"],
    }),
  },
  events: policyEvents,
});
