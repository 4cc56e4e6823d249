// The states of a rollout, and what people may do in each: the one table that handlers ask and `actions` shows.
import type { Permission, RolloutAction, RolloutStatus } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";

export const NEXT: Readonly<Record<RolloutStatus, readonly RolloutStatus[]>> = {
  draft: ["awaiting_approval", "scheduled", "aborted"],
  awaiting_approval: ["scheduled", "running", "aborted", "paused"],
  scheduled: ["running", "failed", "aborted"],
  running: ["waiting_window", "paused", "awaiting_approval", "rolling_back", "failed", "aborted", "completed"],
  waiting_window: ["running", "paused", "rolling_back", "aborted"],
  paused: ["running", "waiting_window", "rolling_back", "aborted"],
  rolling_back: ["rolled_back", "failed", "aborted"],
  completed: ["rolling_back"],
  failed: ["rolling_back"],
  aborted: ["rolling_back"],
  rolled_back: [],
};

export const LIVE: readonly RolloutStatus[] = ["awaiting_approval", "scheduled", "running", "waiting_window", "paused", "rolling_back"];
export const FINAL: readonly RolloutStatus[] = ["completed", "failed", "aborted", "rolled_back"];
export const isFinalRollout = (status: RolloutStatus): boolean => FINAL.includes(status);

/** What a rollout's status alone does not say. */
export interface Situation {
  readonly status: RolloutStatus;
  /** 0 before the first. */
  readonly phase: number;
  readonly phases: number;
  /** Devices that failed or timed out. */
  readonly failures: number;
  /** A child of another rollout that undoes it. */
  readonly isRollback: boolean;
  /** Why it cannot be rolled back; null if it can. */
  readonly rollbackProblem: string | null;
  readonly needsApproval: boolean;
  readonly isSettled: boolean;
}

/** The state to which each action leads, for the answer when it is refused. */
export const LEADS_TO: Readonly<Record<RolloutAction, RolloutStatus>> = {
  start: "scheduled",
  approve: "running",
  reject: "aborted",
  pause: "paused",
  resume: "running",
  promote: "running",
  abort: "aborted",
  retryFailed: "running",
  rollback: "rolling_back",
};

const STATES: Readonly<Record<RolloutAction, readonly RolloutStatus[]>> = {
  start: ["draft"],
  approve: ["awaiting_approval"],
  reject: ["awaiting_approval"],
  pause: ["running", "waiting_window", "awaiting_approval"],
  resume: ["paused"],
  promote: ["running", "waiting_window"],
  abort: ["draft", "awaiting_approval", "scheduled", "running", "waiting_window", "paused", "rolling_back"],
  retryFailed: ["paused", "completed", "failed", "aborted"],
  rollback: ["running", "waiting_window", "paused", "completed", "failed", "aborted"],
};

const allows: Readonly<Partial<Record<RolloutAction, (situation: Situation) => boolean>>> = {
  // Before the first phase there is nothing to pause: reject it, or leave it waiting.
  pause: ({ status, phase }) => status !== "awaiting_approval" || phase > 0,
  promote: ({ phase, phases }) => phase > 0 && phase < phases,
  retryFailed: ({ failures, isRollback, status, isSettled }) => failures > 0 && !isRollback && (status === "paused" || isSettled),
  rollback: ({ rollbackProblem, phase }) => rollbackProblem === null && phase > 0,
};

export const isAllowed = (action: RolloutAction, situation: Situation): boolean =>
  STATES[action].includes(situation.status) && (allows[action]?.(situation) ?? true);

export const PERMISSION_OF: Readonly<Record<RolloutAction, Permission>> = {
  start: "rollout:operate",
  approve: "rollout:approve",
  reject: "rollout:approve",
  pause: "rollout:operate",
  resume: "rollout:operate",
  promote: "rollout:write",
  abort: "rollout:write",
  retryFailed: "rollout:write",
  rollback: "rollout:write",
};

/** Throws INVALID_STATE_TRANSITION with the states that can follow. */
export const requireAllowed = (action: RolloutAction, situation: Situation): void => {
  if (isAllowed(action, situation)) return;
  throw new AppError("INVALID_STATE_TRANSITION", { details: { from: situation.status, to: LEADS_TO[action], allowed: [...NEXT[situation.status]], action } });
};

/** Throws for a change that the table does not list: a defect of ours, not a caller's. */
export const move = (from: RolloutStatus, to: RolloutStatus): RolloutStatus => {
  if (!NEXT[from].includes(to)) throw new Error(`a rollout cannot go from ${from} to ${to}`);
  return to;
};
