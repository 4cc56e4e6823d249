// Collects durations and computes percentiles, of the whole run and of its last few thousand values.
export interface Latency {
  add(ms: number): void;
  /** Milliseconds with two decimals; null without values. */
  percentiles(): Percentiles;
  recent(): Percentiles;
}
export interface Percentiles {
  readonly p50: number | null;
  readonly p99: number | null;
}

const RECENT = 2_000;
/** Beyond this many, new values overwrite the oldest, which bounds the memory of endless runs. */
const KEPT = 1_000_000;

/** Nearest rank. */
const of = (values: readonly number[]): Percentiles => {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number | null => {
    const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
    return value === undefined ? null : Math.round(value * 100) / 100;
  };
  return { p50: at(0.5), p99: at(0.99) };
};

export const createLatency = (): Latency => {
  const values: number[] = [];
  let count = 0;
  return {
    add: (ms) => {
      values[count % KEPT] = ms;
      count += 1;
    },
    percentiles: () => of(values),
    recent: () => of(count > KEPT ? values : values.slice(-RECENT)),
  };
};
