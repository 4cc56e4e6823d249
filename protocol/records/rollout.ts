// A rollout: one update of the devices of a fleet, in phases, and how it goes on each device.
import { z } from "zod";
import { AppId, CommandId, DeviceId, FleetId, id, TenantId } from "../kit/ids.ts";
import { ShownPhase, UpdateSettings, UpdateSubject } from "./update-policy.ts";

const Timestamp = z.iso.datetime();
const RolloutId = id("rlt");
const count = z.int().min(0);

export const ROLLOUT_STATUSES = [
  "draft",
  "awaiting_approval",
  "scheduled",
  "running",
  "waiting_window",
  "paused",
  "rolling_back",
  "completed",
  "failed",
  "aborted",
  "rolled_back",
] as const;
export const RolloutStatus = z.enum(ROLLOUT_STATUSES);
export type RolloutStatus = z.infer<typeof RolloutStatus>;

export const ROLLOUT_ACTIONS = ["start", "approve", "reject", "pause", "resume", "promote", "abort", "retryFailed", "rollback"] as const;
export type RolloutAction = (typeof ROLLOUT_ACTIONS)[number];

export const ROLLOUT_DEVICE_STATUSES = ["pending", "ordered", "verifying", "succeeded", "failed", "timed_out", "skipped", "aborted"] as const;
export const RolloutDeviceStatus = z.enum(ROLLOUT_DEVICE_STATUSES);
export type RolloutDeviceStatus = z.infer<typeof RolloutDeviceStatus>;

/** Why a rollout that may go on does not. */
export const ROLLOUT_WAITS = ["start", "freezing", "window", "device_elsewhere", "quota", "offline", "approval", "soak", "devices"] as const;
/** Why it has its status. */
export const ROLLOUT_REASONS = [
  "THRESHOLD_EXCEEDED",
  "PHASE_FAILED",
  "PERSON",
  "REJECTED",
  "NO_DEVICES",
  "NOTHING_TO_DO",
  "VERSION_GONE",
  "ROLLOUT_TOO_LARGE",
  "ROLLBACK_INCOMPLETE",
] as const;

export type RolloutReason = (typeof ROLLOUT_REASONS)[number];

export const RolloutCounts = z
  .object({
    total: count,
    pending: count.describe("Not ordered yet; `late` ones among them."),
    ordered: count.describe("Under way: the order is queued or delivered."),
    verifying: count.describe("Under way: the agent says that it is done, and has yet to show it."),
    succeeded: count,
    failed: count,
    timedOut: count,
    skipped: count,
    aborted: count,
    late: count.describe("Devices that were offline in their turn and are waited for."),
  })
  .describe("Devices by state. All but `late` add up to `total`.");
export type RolloutCounts = z.infer<typeof RolloutCounts>;

export const RolloutPhase = z.object({
  phase: z.int().describe("From 1."),
  size: count,
  tag: z.string().nullable(),
  minSuccessPercent: z.int(),
  soakMinutes: z.int(),
  requireApproval: z.boolean(),
  status: z.enum(["pending", "running", "soaking", "awaiting_approval", "passed", "failed"]),
  succeeded: count,
  failed: count.describe("Those that timed out, too."),
  open: count,
  startedAt: Timestamp.nullable(),
  soakUntil: Timestamp.nullable(),
  finishedAt: Timestamp.nullable(),
});
export type RolloutPhase = z.infer<typeof RolloutPhase>;

export const RolloutTarget = z.object({
  version: z.string(),
  contentHash: z.string().nullable().describe("Of the template's content, which is copied at the start. `null` for agents."),
});

export const Rollout = z.object({
  rolloutId: RolloutId,
  tenantId: TenantId,
  name: z.string(),
  fleetId: FleetId,
  updatePolicyId: id("upl").nullable(),
  subject: UpdateSubject,
  settings: UpdateSettings.describe("A copy of the policy, which its changes do not touch."),
  target: RolloutTarget,
  status: RolloutStatus,
  statusReason: z.enum(ROLLOUT_REASONS).nullable(),
  reasonText: z.string().nullable().describe("What the person said who paused, promoted, rejected or aborted it."),
  waitingFor: z
    .enum(ROLLOUT_WAITS)
    .nullable()
    .describe("Why nothing is ordered now: `devices` waits for those under way, `device_elsewhere` for devices that another rollout updates."),
  until: Timestamp.nullable().describe("When the wait ends at the latest, if that is known."),
  phase: z.int().describe("The current one; 0 before the first."),
  phases: z.array(RolloutPhase),
  counts: RolloutCounts,
  failurePercent: z.number().nullable().describe("Failed and timed out of those that have finished. `null`: none has."),
  failurePercentAtLeast: z.number().nullable().describe("The lower bound of the 90 % Wilson interval."),
  actions: z.array(z.enum(ROLLOUT_ACTIONS)).describe("What the caller may do now."),
  conflicts: z.enum(["refuse", "skip"]),
  startAt: Timestamp.nullable(),
  startedAt: Timestamp.nullable(),
  completedAt: Timestamp.nullable(),
  approvedBy: z.string().nullable(),
  retryOf: RolloutId.nullable(),
  rollbackOf: RolloutId.nullable(),
  followOf: RolloutId.nullable().describe("The rollout whose update this one brings to devices that joined the fleet later."),
  lastError: z.string().nullable().describe("What keeps its steps from being taken."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Rollout = z.infer<typeof Rollout>;

const At = z.object({ version: z.string().nullable(), revision: z.int().nullable() });

export const RolloutDevice = z.object({
  rolloutId: RolloutId,
  deviceId: DeviceId,
  name: z.string().nullable(),
  phase: z.int().nullable(),
  position: z.int(),
  status: RolloutDeviceStatus,
  late: z.boolean(),
  code: z.string().nullable().describe("Why it failed, was skipped or waits."),
  message: z.string().nullable(),
  attempt: z.int(),
  commandId: CommandId.nullable(),
  progress: z.string().nullable().describe("The status of its open command, and what the agent says of its progress."),
  before: At.nullable(),
  after: At.nullable(),
  orderedAt: Timestamp.nullable(),
  finishedAt: Timestamp.nullable(),
});
export type RolloutDevice = z.infer<typeof RolloutDevice>;

export const DEVICE_TRAITS = ["tag", "model", "platform", "arch", "osVersion", "agentVersion"] as const;
export const RolloutTrait = z.object({
  kind: z.enum(DEVICE_TRAITS),
  value: z.string(),
  failed: count.describe("Devices with it that failed with this code."),
  finished: count.describe("Devices with it that have finished, however they ended."),
});
export type RolloutTrait = z.infer<typeof RolloutTrait>;

export const RolloutFailure = z.object({
  code: z.string(),
  count,
  message: z.string().nullable().describe("Of the first device."),
  lines: z
    .array(z.string())
    .describe(
      "The last lines that the app of the first device had logged when it failed, with secrets masked. Empty for agents, and for callers without `app:read`.",
    ),
  common: z
    .array(RolloutTrait)
    .describe("What at least four fifths of three or more devices share, and devices that succeeded share less: the most telling first, at most 3."),
  devices: z
    .array(z.object({ deviceId: DeviceId, name: z.string().nullable(), appId: AppId.nullable(), commandId: CommandId.nullable() }))
    .describe("The first 5. `appId`: `null` for agents. `commandId`: of the last order, `null` if there was none."),
});

export type RolloutFailure = z.infer<typeof RolloutFailure>;

export const RolloutStep = z.object({
  at: Timestamp,
  by: z.string(),
  from: RolloutStatus.nullable(),
  to: RolloutStatus,
  event: z.string().describe("What happened, such as `phase_passed`, `paused` or `promoted`."),
  phase: z.int(),
  reason: z.string().nullable(),
  counts: RolloutCounts,
});
export type RolloutStep = z.infer<typeof RolloutStep>;

export const RolloutPreview = z
  .object({
    subject: UpdateSubject,
    target: RolloutTarget,
    total: count.nullable().describe("Devices of the fleet now. `null`: no fleet was named."),
    updates: count.nullable().describe("Those that would be updated."),
    skipped: z.array(z.object({ code: z.string(), count })).describe("Those that would not, by reason."),
    offline: count.nullable(),
    phases: z.array(ShownPhase),
    windows: z
      .array(
        z.object({
          opensAt: Timestamp,
          closesAt: Timestamp,
          local: z.string().describe("The opening by the zone's clock, with its offset."),
          timezone: z.string(),
        }),
      )
      .describe("The next ten."),
    conflicts: z.array(z.object({ rolloutId: RolloutId, devices: count })).describe("Live rollouts that update the same of these devices."),
    warnings: z.array(z.enum(["SINGLE_PHASE", "NO_DEVICES", "NOTHING_TO_DO"])),
  })
  .describe("What a rollout would do now.");
export type RolloutPreview = z.infer<typeof RolloutPreview>;
