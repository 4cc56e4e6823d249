// Which rows answer a range, in which buckets, and which step the roll-up takes next.
import { rangeSeconds } from "../../../protocol/index.ts";
import type { MetricReading, RollUpProgress, Source, Span } from "./store/metrics.ts";

export const MINUTE = 60;
export const HOUR = 3_600;
export const DAY = 86_400;
export const STEPS = [MINUTE, HOUR, DAY] as const;
const MAX_BUCKETS = 300;

/** How long the rows of each step stay, in seconds. */
export type MetricRetention = Readonly<Record<(typeof STEPS)[number], number>>;

const floorTo = (ms: number, seconds: number): number => Math.floor(ms / (seconds * 1_000)) * seconds * 1_000;

/** The finest step whose rows still reach back that far. */
const stepOf = (seconds: number, retention: MetricRetention): number => STEPS.find((step) => retention[step] >= seconds) ?? DAY;

/** Rows of the step, and the finer ones for the time that has not been added up yet. */
const sourcesOf = (step: number, fromMs: number, nowMs: number): readonly Source[] => {
  const borders = [...STEPS].reverse().filter((each) => each <= step);
  let from = fromMs;
  return borders.map((each) => {
    const until = each === MINUTE ? nowMs + MINUTE * 1_000 : floorTo(nowMs, each);
    const source = { step: each, from: new Date(from), until: new Date(until) };
    from = Math.max(from, until);
    return source;
  });
};

/** The buckets of a range, the newest of which contains now. At most 300, each a whole number of steps. */
export const readingOf = (range: string, now: Date, retention: MetricRetention): MetricReading & { readonly count: number } => {
  const seconds = rangeSeconds(range);
  const step = stepOf(seconds, retention);
  const bucketSeconds = step * Math.ceil(seconds / step / MAX_BUCKETS);
  const count = Math.max(1, Math.ceil(seconds / bucketSeconds));
  const fromMs = floorTo(now.getTime(), bucketSeconds) - (count - 1) * bucketSeconds * 1_000;
  return { from: new Date(fromMs), bucketSeconds, sources: sourcesOf(step, fromMs, now.getTime()), count };
};

/** A step that fell further behind than this starts again at the present. */
const CATCH_UP = 48;

/** The next piece of work; null when all steps are complete up to now. Minutes sample the present, the others add up what is over. */
export const nextProgress = (known: readonly RollUpProgress[], now: Date): RollUpProgress | null => {
  for (const step of STEPS) {
    const target = floorTo(now.getTime(), step) - (step === MINUTE ? 0 : step * 1_000);
    const last = known.find((each) => each.step === step);
    if (step === MINUTE && last?.at.getTime() !== target) return { step, at: new Date(target), after: "" };
    if (last === undefined) return { step, at: new Date(target), after: "" };
    if (last.after !== null) return last;
    const next = last.at.getTime() + step * 1_000;
    if (next <= target) return { step, at: new Date(target - next > CATCH_UP * step * 1_000 ? target : next), after: "" };
  }
  return null;
};

export const spanOf = ({ step, at }: RollUpProgress): Span => ({
  step,
  from: at,
  until: new Date(at.getTime() + step * 1_000),
  source: step === DAY ? HOUR : MINUTE,
});
