// Which rollouts need somebody: those that stopped, and those that wait for a person's word.
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import type { RolloutRow } from "./store/rollout-row.ts";
import { findStopped } from "./store/rollouts.ts";

const lineOf = (row: RolloutRow): Attention => {
  const { rolloutId: id, name, status, statusReason, phase, phases, total, failed, timedOut } = row;
  const isPaused = status === "paused";
  return {
    kind: isPaused ? "rollout_paused" : "rollout_approval",
    // A person who paused it knows of it.
    tone: isPaused && statusReason !== "PERSON" ? "bad" : "info",
    count: 1,
    since: row.waitingSince ?? row.updatedAt,
    subject: { kind: "rollout", id, name },
    names: [name],
    params: { phase, phases: phases.length, failed: failed + timedOut, total, ...(statusReason === null ? {} : { reason: statusReason }) },
    action: { place: "rollouts", id, search: "" },
  };
};

export const createRolloutAttention = ({ db }: Pick<FeatureKit, "db">): AttentionSource => ({
  needs: "rollout:read",
  find: async (scope, limit) => (await findStopped(db, scope, limit)).map(lineOf),
});
