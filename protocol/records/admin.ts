// The records that only the people who run the installation see.
import { z } from "zod";
import { AgentId, DeviceId, TenantId } from "../kit/ids.ts";
import { LIMITS } from "../kit/limits.ts";
import { ROLES } from "../kit/permissions.ts";

const Timestamp = z.iso.datetime();

const BUCKETS: ReadonlySet<string> = new Set(Object.values(LIMITS).flatMap((buckets) => buckets.map(({ name }) => name)));
const Figure = z.int().min(0).max(2_147_483_647).nullable();
const overrides = (name: z.ZodType<string, string>) =>
  z.record(name, Figure).refine((given) => Object.keys(given).length <= 100, "must have at most 100 names");
export const LimitOverrides = overrides(z.string().regex(/^(?:\*|[a-z][A-Za-z]{0,39})$/, "must be a resource of the plan, or *"));
export const RateLimitOverrides = overrides(z.string().refine((name) => name === "*" || BUCKETS.has(name), "must be the name of a bucket, or *"));

export const InstallationStats = z.object({
  at: Timestamp,
  tenants: z.record(z.string(), z.int()).describe("Tenants by status."),
  devices: z.record(z.string(), z.int()).describe("Devices by status."),
  nodes: z.array(z.object({ nodeId: z.string(), connections: z.int(), ready: z.int() })),
  commands: z.object({
    perMinute: z.int().describe("Commands queued in the last minute."),
    open: z.record(z.string(), z.int()).describe("Open commands by status."),
    pastDeadline: z.int(),
  }),
  outbox: z.object({ undispatched: z.int(), oldestSeconds: z.number() }),
});
export type InstallationStats = z.infer<typeof InstallationStats>;

export const AdminUser = z.object({
  userId: z.string(),
  email: z.string().nullable(),
  name: z.string().nullable().describe("As the identity provider told it at the last sign-in."),
  lastSignInAt: Timestamp.nullable().describe("Of a session; `null` for a person who has only used tokens."),
  memberships: z.array(z.object({ tenantId: TenantId, role: z.enum(ROLES) })),
});
export type AdminUser = z.infer<typeof AdminUser>;

export const AdminDevice = z.object({
  deviceId: DeviceId,
  tenantId: TenantId,
  agentId: AgentId,
  fingerprint: z.string(),
  status: z.string(),
  name: z.string().optional(),
  createdAt: Timestamp,
  lastSeen: Timestamp.nullable(),
});
export type AdminDevice = z.infer<typeof AdminDevice>;

export const FeatureFlag = z.object({
  key: z.string(),
  summary: z.string(),
  default: z.boolean(),
  value: z.boolean().describe("For tenants without a value of their own."),
  tenants: z.array(z.object({ tenantId: TenantId, enabled: z.boolean() })).describe("Values for single tenants; at most 100."),
  updatedBy: z.string().optional(),
  updatedAt: Timestamp.optional(),
});
export type FeatureFlag = z.infer<typeof FeatureFlag>;

export const BackgroundJob = z.object({
  name: z.string(),
  everySeconds: z.number(),
  nodes: z
    .array(
      z.object({
        nodeId: z.string(),
        startedAt: Timestamp,
        durationMs: z.number(),
        runs: z.int().describe("Since the node's start."),
        failures: z.int().describe("In a row; 0 after a success."),
        failedSince: Timestamp.optional(),
        error: z.string().optional(),
      }),
    )
    .describe("The last run on each node, as of some seconds ago."),
});
export type BackgroundJob = z.infer<typeof BackgroundJob>;

export const STUCK_KINDS = [
  "command_overdue",
  "command_blocked",
  "outcome_untold",
  "event_undispatched",
  "deletion_overdue",
  "metrics_behind",
  "subscription_overdue",
  "subscription_uncanceled",
  "load_test_lost",
  "mail_failed",
  "mail_late",
  "alert_unsent",
  "webhook_delivery_late",
  "many_step_failing",
  "job_failing",
  "node_silent",
] as const;
export const StuckItem = z.object({
  kind: z.enum(STUCK_KINDS),
  tenantId: TenantId.nullable().describe("`null`: concerns the whole installation."),
  id: z.string().describe("The command, event, tenant, subscription, mail, notification, rollout, bulk operation, job or node."),
  since: Timestamp,
  reason: z.string(),
  whatToDo: z.string(),
  blockedBy: z.string().optional().describe("The command or the device that it waits for."),
});
export type StuckItem = z.infer<typeof StuckItem>;
