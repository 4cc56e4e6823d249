// How a rule judges one of its targets over time: when an alert opens, when it clears, and when a target counts as flapping. Pure, so that tests and previews run it.
import type { AlertRule } from "../../../protocol/index.ts";

export type TargetPhase = "pending" | "firing" | "clearing" | "calm";

export interface TargetState {
  readonly phase: TargetPhase;
  readonly sinceMs: number;
  /** How often it began to fire or stopped since `changesSinceMs`. */
  readonly changes: number;
  readonly changesSinceMs: number;
  readonly flapping: boolean;
}

export type Condition = Pick<AlertRule, "operator" | "threshold" | "clearThreshold">;
export type Timing = Pick<AlertRule, "forSeconds" | "clearForSeconds">;

export interface Judgement {
  readonly breached: boolean;
  /** Beyond the margin. Between both lies neither. */
  readonly cleared: boolean;
}

/** More changes than this within the window, and the target is flapping until it has been calm for a while. */
export const FLAP_CHANGES = 4;
export const FLAP_WINDOW_SECONDS = 3_600;
export const FLAP_CALM_SECONDS = 900;

const COMPARE: Readonly<Record<AlertRule["operator"], (value: number, threshold: number) => boolean>> = {
  gt: (value, threshold) => value > threshold,
  gte: (value, threshold) => value >= threshold,
  lt: (value, threshold) => value < threshold,
  lte: (value, threshold) => value <= threshold,
  eq: (value, threshold) => value === threshold,
  ne: (value, threshold) => value !== threshold,
};

/** SQL judges in the same way, see store/observe.ts. */
export const judgeValue = ({ operator, threshold, clearThreshold }: Condition, value: number): Judgement => {
  const breached = COMPARE[operator](value, threshold);
  const isBack = operator.startsWith("g") ? value <= clearThreshold : operator.startsWith("l") ? value >= clearThreshold : true;
  return { breached, cleared: !breached && isBack };
};

export interface TargetStep {
  /** Null: forget the target. */
  readonly state: TargetState | null;
  readonly turn: "fires" | "clears" | null;
}

const isOver = (sinceMs: number, seconds: number, nowMs: number): boolean => nowMs - sinceMs >= seconds * 1_000;

const changed = (state: TargetState, phase: "firing" | "calm", nowMs: number): TargetState => {
  const isRecent = !isOver(state.changesSinceMs, FLAP_WINDOW_SECONDS, nowMs);
  const changes = isRecent ? state.changes + 1 : 1;
  const flapping = phase === "firing" && (state.flapping || changes > FLAP_CHANGES);
  return { phase, sinceMs: nowMs, changes, changesSinceMs: isRecent ? state.changesSinceMs : nowMs, flapping };
};

const begin = (before: TargetState | null, { forSeconds }: Timing, nowMs: number): TargetStep => {
  const pending: TargetState = { changes: 0, changesSinceMs: nowMs, flapping: false, ...before, phase: "pending", sinceMs: nowMs };
  return forSeconds === 0 ? { state: changed(pending, "firing", nowMs), turn: "fires" } : { state: pending, turn: null };
};

const endPending = (before: TargetState, nowMs: number): TargetStep => ({
  state: before.changes === 0 ? null : { ...before, phase: "calm", sinceMs: nowMs },
  turn: null,
});

const clear = (before: TargetState, { clearForSeconds }: Timing, nowMs: number): TargetStep => {
  const clearing: TargetState = before.phase === "clearing" ? before : { ...before, phase: "clearing", sinceMs: nowMs };
  const calmSeconds = before.flapping ? Math.max(clearForSeconds, FLAP_CALM_SECONDS) : clearForSeconds;
  if (!isOver(clearing.sinceMs, calmSeconds, nowMs)) return { state: clearing, turn: null };
  return { state: changed(clearing, "calm", nowMs), turn: "clears" };
};

export const step = (before: TargetState | null, { breached, cleared }: Judgement, timing: Timing, nowMs: number): TargetStep => {
  if (before === null || before.phase === "calm") return breached ? begin(before, timing, nowMs) : { state: before, turn: null };
  if (before.phase === "pending") {
    if (!breached) return endPending(before, nowMs);
    if (!isOver(before.sinceMs, timing.forSeconds, nowMs)) return { state: before, turn: null };
    return { state: changed(before, "firing", nowMs), turn: "fires" };
  }
  if (cleared) return clear(before, timing, nowMs);
  return { state: before.phase === "clearing" ? { ...before, phase: "firing", sinceMs: nowMs } : before, turn: null };
};

const PERCENT = new Set<string>(["device.cpu", "device.memory", "device.disk", "command.failure_rate"]);
const MARGIN = 5;

/** A margin keeps a value around the threshold from opening and clearing an alert again and again. */
export const clearThresholdOf = ({ metric, operator, threshold }: Pick<AlertRule, "metric" | "operator" | "threshold">): number => {
  if (!PERCENT.has(metric)) return threshold;
  if (operator.startsWith("g")) return Math.max(Math.min(threshold, 0), threshold - MARGIN);
  return operator.startsWith("l") ? Math.min(Math.max(threshold, 100), threshold + MARGIN) : threshold;
};

/** Why a rule cannot clear there; null if it can. */
export const clearProblem = ({ operator, threshold, clearThreshold }: Condition): string | null => {
  if (operator.startsWith("g") && clearThreshold > threshold) return "must not be above the threshold";
  if (operator.startsWith("l") && clearThreshold < threshold) return "must not be below the threshold";
  return !/^[gl]/.test(operator) && clearThreshold !== threshold ? "must be the threshold" : null;
};

export interface AlertMessage {
  readonly kind: "opened" | "resolved" | "test";
  readonly alertId: string | null;
  readonly ruleId: string | null;
  readonly type: string;
  readonly severity: string;
  readonly title: string;
  readonly text: string;
  readonly targetCount: number;
  /** The first few. */
  readonly targets: readonly string[];
  readonly startedAt: string;
  /** When the message was made. */
  readonly at: string;
  readonly url: string;
}
