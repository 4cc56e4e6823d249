// Guide to update policies and rollouts.
import type { Guide } from "./guide.ts";
import { AT, actor, IDS, LATER, shownWithActors } from "./records.ts";

const updatePolicyId = "upl_01J9ZQE1F3H5K7M9P1R3T5W7Y9";
const rolloutId = "rlt_01J9ZQE2G4J6M8P0R2T4W6Y8A0";
const fleetId = "flt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const { tenantId, deviceId, commandId, userId } = IDS;
const createdBy = `user:${userId}`;

const phase = (count: number | null, percent: number | null, more: object = {}) => ({
  percent,
  count,
  tag: null,
  minSuccessPercent: 90,
  soakMinutes: 0,
  requireApproval: false,
  ...more,
});
const given = {
  subject: { kind: "agent", channel: "stable" },
  phases: [{ count: 10, tag: "canary", soakMinutes: 60 }, { percent: 30 }, { percent: 70 }],
  maintenanceWindows: [{ cron: "0 2 * * 1-5", durationMinutes: 180, timezone: "Europe/Lisbon" }],
};
const phases = [phase(10, null, { tag: "canary", soakMinutes: 60 }), phase(null, 30), phase(null, 70)];
const settings = {
  ...given,
  targetVersion: null,
  configuration: null,
  phases,
  maxParallel: 50,
  failureThreshold: { percent: 10, count: null, minSample: null },
  onFailure: "pause",
  offlinePolicy: "later",
  offlineWaitHours: 72,
  deviceTimeoutMinutes: 60,
  retries: 1,
  approval: { required: false, byOther: true },
  newDevices: "ignore",
};
const policy = {
  updatePolicyId,
  tenantId,
  name: "Careful",
  description: "",
  enabled: true,
  ...settings,
  warnings: [],
  createdBy,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const target = { version: "1.5.0", contentHash: null };
const counts = { total: 300, pending: 288, ordered: 3, verifying: 0, succeeded: 7, failed: 0, timedOut: 0, skipped: 2, aborted: 0, late: 4 };
const shownPhase = (at: number, size: number, status: string, figures: object) => {
  const { percent: _percent, count: _count, ...rest } = phases[at - 1] ?? phase(null, 100);
  return { ...rest, phase: at, size, status, succeeded: 0, failed: 0, open: 0, startedAt: null, soakUntil: null, finishedAt: null, ...figures };
};
const rollout = {
  rolloutId,
  tenantId,
  name: "agent 1.5.0",
  fleetId,
  updatePolicyId,
  subject: settings.subject,
  settings,
  target,
  status: "running",
  statusReason: null,
  reasonText: null,
  waitingFor: "devices",
  until: null,
  phase: 1,
  phases: [shownPhase(1, 10, "running", { succeeded: 7, open: 3, startedAt: AT }), shownPhase(2, 90, "pending", {}), shownPhase(3, 198, "pending", {})],
  counts,
  failurePercent: 0,
  failurePercentAtLeast: 0,
  actions: ["pause", "promote", "abort"],
  conflicts: "refuse",
  startAt: null,
  startedAt: AT,
  completedAt: null,
  approvedBy: null,
  retryOf: null,
  rollbackOf: null,
  followOf: null,
  lastError: null,
  createdBy,
  version: 5,
  createdAt: AT,
  updatedAt: LATER,
};
const preview = {
  subject: settings.subject,
  target,
  total: 300,
  updates: 298,
  skipped: [{ code: "ALREADY_THERE", count: 2 }],
  offline: 4,
  phases: phases.map((each, at) => ({ ...each, phase: at + 1, size: [10, 90, 198][at] })),
  windows: [{ opensAt: "2026-11-23T02:00:00.000Z", closesAt: "2026-11-23T05:00:00.000Z", local: "2026-11-23T02:00:00+00:00", timezone: "Europe/Lisbon" }],
  conflicts: [],
  warnings: [],
};
const one = { rolloutId };
const stopped = { ...rollout, status: "paused", statusReason: "PERSON", reasonText: "the line is down", waitingFor: null, actions: ["resume", "abort"] };

export const rollouts: Guide<"rollouts"> = {
  listPolicies: {
    description: "Lists the tenant's update policies, newest first.",
    input: { pageSize: 20 },
    output: { items: [shownWithActors(policy)], total: 1 },
  },
  getPolicy: {
    description: "Returns the policy. A rollout keeps a copy, so a change touches no rollout that exists.",
    input: { updatePolicyId },
    output: shownWithActors(policy),
  },
  createPolicy: {
    description:
      "Says how fleets are updated. 422 `CRON_INVALID` names the window that cannot be read, `WINDOW_NEVER_OPENS` means that none opens within 366 days, and `ROLLBACK_NOT_POSSIBLE` that agents cannot go back.",
    input: { name: "Careful", ...given },
    output: policy,
  },
  updatePolicy: {
    description: "Changes only the fields that you send. The subject never changes.",
    input: { updatePolicyId, maxParallel: 50 },
    output: policy,
  },
  removePolicy: { description: "Answers 409 `UPDATE_POLICY_IN_USE` while a fleet names it. Rollouts keep their copies.", input: { updatePolicyId } },
  previewPolicy: {
    description:
      "Writes nothing. Shows the next ten windows by the clock of their zones and, if you name a fleet, the phases in devices and who would be left out and why.",
    input: { policy: given, fleetId },
    output: preview,
  },
  list: {
    description: "A caller who is limited to some devices sees the rollouts that have one of them, with the figures of these.",
    input: { fleetId, status: ["running", "paused"] },
    output: { items: [shownWithActors(rollout)], total: 1 },
  },
  get: {
    description: "`waitingFor` and `until` say why nothing is ordered and until when, `actions` what you may do now.",
    input: one,
    output: shownWithActors(rollout),
  },
  wait: {
    description: "Holds the response until the rollout is in one of these states, or until the timeout.",
    input: { rolloutId, status: ["completed", "paused", "failed", "aborted"], timeout: 30 },
    output: shownWithActors({ ...rollout, status: "completed" }),
  },
  devices: {
    description: "In the order in which they are updated. `progress` is what the open command says now.",
    input: { rolloutId, status: ["failed", "timed_out"] },
    output: {
      items: [
        {
          rolloutId,
          deviceId,
          name: "attic",
          phase: 1,
          position: 3,
          status: "failed",
          late: false,
          code: "SIGNATURE_INVALID",
          message: "it is not signed with the key of this agent",
          attempt: 1,
          commandId,
          progress: null,
          before: { version: "1.4.0", revision: null },
          after: { version: "1.4.0", revision: null },
          orderedAt: AT,
          finishedAt: LATER,
        },
      ],
    },
  },
  failures: {
    description: "The failures by code, the most frequent first, each with its first five devices and what the devices have in common.",
    input: one,
    output: {
      items: [
        {
          code: "SIGNATURE_INVALID",
          count: 1,
          message: "it is not signed with the key of this agent",
          lines: [],
          common: [{ kind: "model", value: "Raspberry Pi 3 Model B", failed: 4, finished: 5 }],
          devices: [{ deviceId, name: "attic", appId: null, commandId }],
        },
      ],
    },
  },
  steps: {
    description: "Every change with who made it, the reason, and the figures at that moment. A caller who is limited to some devices sees none.",
    input: one,
    output: { items: [{ at: AT, by: createdBy, from: "draft", to: "scheduled", event: "start", phase: 0, reason: null, counts, actor }] },
  },
  preview: {
    description: "Takes what `POST /rollouts` takes, writes nothing and says what would happen now.",
    input: { fleetId, updatePolicyId },
    output: preview,
  },
  create: {
    description:
      "Makes a draft, or starts at once with `start`. The devices are frozen when it starts: who joins the fleet later is no member. 409 `ROLLOUT_CONFLICT` names the rollouts that update the same of these devices.",
    input: { fleetId, updatePolicyId, start: true },
    output: { ...rollout, status: "scheduled", waitingFor: "start", phase: 0, phases: [], counts: { ...counts, total: 0 } },
  },
  start: { description: "Goes to `awaiting_approval` if the settings ask for an approval.", input: one, output: { ...rollout, status: "scheduled" } },
  pause: {
    description:
      "From the commit on nothing more is ordered, and orders that no device has got are withdrawn. `counts.ordered` says how many are under way; they run to their end.",
    input: { rolloutId, reason: "the line is down" },
    output: stopped,
  },
  resume: {
    description: "After the threshold was exceeded it takes `acceptFailures`: the failures so far no longer count, so that it does not stop at once again.",
    input: { rolloutId, acceptFailures: true },
    output: rollout,
  },
  approve: {
    description: "Only people approve, never an API key. 409 `APPROVAL_REQUIRED` if it is your own rollout and somebody else has to.",
    input: { rolloutId, note: "tested on the bench" },
    output: { ...rollout, approvedBy: createdBy },
  },
  reject: {
    description: "Refuses the approval and ends the rollout as `aborted`.",
    input: { rolloutId, reason: "not on a Friday" },
    output: { ...stopped, status: "aborted", statusReason: "REJECTED" },
  },
  promote: {
    description: "Ends the soak or the wait for the tail of the current phase. What is under way goes on and counts.",
    input: { rolloutId, reason: "the tail is switched off" },
    output: { ...rollout, phase: 2 },
  },
  abort: {
    description: "Ends the rollout. Orders that no device has got are withdrawn; what is under way runs to its end and is still counted.",
    input: { rolloutId, reason: "the version is broken" },
    output: { ...stopped, status: "aborted" },
  },
  retryFailed: {
    description:
      "In a paused rollout puts the failed devices back, to be ordered after `resume`. Of a rollout that has ended it makes a new one, whose `retryOf` names it.",
    input: { rolloutId, codes: ["DOWNLOAD_FAILED"] },
    output: rollout,
  },
  rollback: {
    description:
      "Makes a rollout that brings each device back to what it ran before, outside of windows unless `inWindow`. Devices that somebody has changed since are left out. Answers 422 `ROLLBACK_NOT_POSSIBLE` for agents, which refuse older releases, and once a newer rollout has updated the fleet.",
    input: { rolloutId, inWindow: false },
    output: { ...rollout, status: "scheduled", rollbackOf: rolloutId },
  },
};
