// The arithmetic behind every figure: the cost of a visit, whether it counts, and the result of all rounds. Pure.

/** One measured window of one subject. Times in nanoseconds. */
export interface Visit {
  readonly answers: number;
  readonly windowNs: number;
  /** CPU time of all threads and children of the subject. */
  readonly serverNs: number;
  readonly loadNs: number;
  /** CPU time of everything that the bench started, including itself. */
  readonly oursNs: number;
  /** Busy time of all processors together. */
  readonly busyNs: number;
}

/** `client-bound`: the server was not busy, so its cost per message is not that of a busy one. `foreign`: other processes used the machine. */
export type WindowQuality = "clean" | "client-bound" | "foreign";

const MAX_FOREIGN = 0.05;
const MIN_SERVER_USE = 0.95;

/** The share of all processors that other processes used. Clock ticks are coarse, so a slightly negative value counts as zero. */
export const foreignShare = ({ busyNs, oursNs, windowNs }: Visit, processors: number): number => Math.max(0, (busyNs - oursNs) / (windowNs * processors));

export const serverUse = ({ serverNs, windowNs }: Visit): number => serverNs / windowNs;

export const qualityOf = (visit: Visit, processors: number): WindowQuality => {
  if (foreignShare(visit, processors) > MAX_FOREIGN) return "foreign";
  return serverUse(visit) < MIN_SERVER_USE ? "client-bound" : "clean";
};

/** Microseconds of server time per answer. */
export const cost = ({ serverNs, answers }: Visit): number => serverNs / 1_000 / answers;

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = Number.NaN, high = Number.NaN] = [sorted[middle - 1], sorted[middle]];
  return sorted.length % 2 === 1 ? high : (low + high) / 2;
};

export const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))] ?? Number.NaN;

export interface RoundSummary {
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: readonly number[];
}

export const summarise = (values: readonly number[]): RoundSummary => ({
  value: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
  rounds: values,
});

/** Two subjects to compare: how many times cheaper `by` is than `of`. */
export interface Pair {
  readonly of: string;
  readonly by: string;
}

type Round = ReadonlyMap<string, Visit>;

/** The ratio of each round in which both windows count. */
export const ratios = (rounds: readonly Round[], over: Pair, counts: (visit: Visit) => boolean): readonly number[] =>
  rounds.flatMap((round) => {
    const [above, below] = [round.get(over.of), round.get(over.by)];
    return above !== undefined && below !== undefined && counts(above) && counts(below) ? [cost(above) / cost(below)] : [];
  });

/** A figure needs this many rounds in which both windows of a pair are clean. */
export const MIN_CLEAN = 3;

/** Whether another round may help a pair: it lacks clean rounds, and other processes spoiled one of them. */
export const wantsMore = (rounds: readonly Round[], pairs: readonly Pair[], verdict: (visit: Visit) => WindowQuality): boolean =>
  pairs.some((pair) => {
    if (ratios(rounds, pair, (visit) => verdict(visit) === "clean").length >= MIN_CLEAN) return false;
    return rounds.some((round) => [pair.of, pair.by].some((name) => [...round].some(([subject, visit]) => subject === name && verdict(visit) === "foreign")));
  });

/** A B C D, then D C B A, and so on. */
export const orderOf = <T>(subjects: readonly T[], round: number): readonly T[] => (round % 2 === 0 ? subjects : subjects.toReversed());

/** Noise of this size does not turn a met target into a missed one. */
const TOLERANCE = 0.05;

export const meets = (value: number, target: number, better: "more" | "less"): boolean =>
  better === "more" ? value >= target * (1 - TOLERANCE) : value <= target * (1 + TOLERANCE);
