// What rollouts and update policies tell.
import { z } from "zod";
import { event, hint } from "../kit/event.ts";
import { DeviceId, FleetId, id } from "../kit/ids.ts";
import { ROLLOUT_REASONS, RolloutCounts, RolloutStatus } from "./rollout.ts";

const PolicyEvent = z.object({ updatePolicyId: id("upl"), name: z.string() });
const RolloutEvent = z.object({
  rolloutId: id("rlt"),
  name: z.string(),
  fleetId: FleetId,
  targetVersion: z.string(),
  status: RolloutStatus,
  phase: z.int(),
  counts: RolloutCounts,
});
const Stopped = RolloutEvent.extend({ reason: z.enum(ROLLOUT_REASONS).nullable(), text: z.string().nullable() });

export const rolloutEvents = {
  policyCreated: event("update_policy.created", PolicyEvent, "An update policy was created"),
  policyUpdated: event("update_policy.updated", PolicyEvent, "An update policy was changed"),
  policyDeleted: event("update_policy.deleted", PolicyEvent, "An update policy was deleted"),
  created: event("rollout.created", RolloutEvent, "A rollout was created"),
  awaitingApproval: event("rollout.awaiting_approval", RolloutEvent, "A rollout, or its next phase, waits for a person's approval"),
  started: event("rollout.started", RolloutEvent, "A rollout has frozen its devices and begun"),
  phaseCompleted: event("rollout.phase_completed", RolloutEvent, "A phase of a rollout has passed, its soak included"),
  paused: event("rollout.paused", Stopped, "A rollout was paused, by a person or because too many devices failed"),
  resumed: event("rollout.resumed", RolloutEvent, "A person resumed a rollout"),
  completed: event("rollout.completed", RolloutEvent, "A rollout has come to its end"),
  failed: event("rollout.failed", Stopped, "A rollout has failed"),
  aborted: event("rollout.aborted", Stopped, "A rollout was aborted"),
  rolledBack: event("rollout.rolled_back", RolloutEvent, "The devices of a rollout have gone back to what they ran before"),
  followGivenUp: event("rollout.follow_given_up", RolloutEvent, "Three rollouts to new devices failed in a row, so devices that join get no more of them"),
  progressed: hint("rollout.progressed", RolloutEvent, "The figures of a rollout have changed"),
  deviceFailed: event(
    "rollout.device_failed",
    z.object({
      rolloutId: id("rlt"),
      deviceId: DeviceId,
      code: z.string(),
      message: z.string().nullable(),
      more: z.boolean().describe("`true`: further failures get no event."),
    }),
    "A device failed in a rollout. The first 100 of a rollout get an event",
  ),
};
