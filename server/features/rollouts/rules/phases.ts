// The phases of a rollout: how many devices each takes, and to which one a device belongs.
import type { RolloutPhase, UpdatePhase } from "../../../../protocol/index.ts";

/** A share is rounded up, a phase takes at least one device while there are any, and the last one takes the rest. */
export const sizesOf = (phases: readonly UpdatePhase[], devices: number): readonly number[] => {
  let left = devices;
  return phases.map(({ percent, count }, at) => {
    const wanted = at === phases.length - 1 ? left : (count ?? Math.ceil((devices * (percent ?? 0)) / 100));
    const size = Math.min(left, wanted);
    left -= size;
    return size;
  });
};

/** As the row keeps a phase: with what somebody has accepted of it. */
export interface StoredPhase extends RolloutPhase {
  /** Failures of it that no longer count. */
  readonly tolerated: number;
  /** In turn: pending and not late. */
  readonly waiting: number;
  readonly late: number;
  /** Skipped or aborted after the freezing, so in no share. */
  readonly left: number;
}

export const phasesOf = (phases: readonly UpdatePhase[], sizes: readonly number[]): StoredPhase[] =>
  phases.map(({ tag, minSuccessPercent, soakMinutes, requireApproval }, at) => ({
    phase: at + 1,
    size: sizes[at] ?? 0,
    tag,
    minSuccessPercent,
    soakMinutes,
    requireApproval,
    status: "pending",
    succeeded: 0,
    failed: 0,
    open: 0,
    startedAt: null,
    soakUntil: null,
    finishedAt: null,
    tolerated: 0,
    waiting: sizes[at] ?? 0,
    late: 0,
    left: 0,
  }));

/** The last position of each phase. Positions begin at 1; devices that were skipped at the start have 0. */
export const boundsOf = (phases: readonly Pick<RolloutPhase, "size">[]): readonly number[] => {
  let sum = 0;
  return phases.map(({ size }) => {
    sum += size;
    return sum;
  });
};

/** From 1; null for a device that was skipped at the start. */
export const phaseAt = (bounds: readonly number[], position: number): number | null => {
  if (position < 1) return null;
  const at = bounds.findIndex((bound) => position <= bound);
  return at < 0 ? bounds.length : at + 1;
};
