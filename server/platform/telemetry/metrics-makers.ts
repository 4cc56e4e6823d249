// Factories for metrics. Counters and gauges read values that the code counts anyway, at each scrape; only durations and tallies are recorded as they happen.
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { PreboundHistogram } from "./histogram.ts";

/** The runtime's own figures keep the names that stock dashboards know: process_*, nodejs_*. */
const PREFIX = "mooring_";

export interface Description {
  /** Without the prefix. */
  readonly name: string;
  /** Names the unit. */
  readonly help: string;
  /** Values come from a small fixed set: never a tenant, a device or an address. */
  readonly labels?: readonly string[];
}

/** One number, or one per combination of labels. */
export type Reading = number | Iterable<readonly [Readonly<Record<string, string>>, number]>;

/** From a millisecond to ten seconds: calls and frames. */
export const SHORT_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** From ten milliseconds to a day: waits for agents and people. */
export const LONG_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400];

export const createMakers = (registry: Registry) => {
  const base = ({ name, help, labels = [] }: Description) => ({ name: `${PREFIX}${name}`, help, labelNames: [...labels], registers: [registry] });
  const each = (reading: Reading): Iterable<readonly [Readonly<Record<string, string>>, number]> => (typeof reading === "number" ? [[{}, reading]] : reading);

  return {
    counter: (description: Description, read: () => Reading): void => {
      new Counter({
        ...base(description),
        collect() {
          this.reset();
          for (const [labels, value] of each(read())) this.inc(labels, value);
        },
      });
    },
    gauge: (description: Description, read: () => Reading | Promise<Reading>): void => {
      new Gauge({
        ...base(description),
        async collect() {
          const reading = await read();
          this.reset();
          for (const [labels, value] of each(reading)) this.set(labels, value);
        },
      });
    },
    histogram: (description: Description, buckets: readonly number[]) => new Histogram({ ...base(description), buckets: [...buckets] }),
    /** For durations observed on every call. */
    durations: (description: Description, buckets: readonly number[]) => new PreboundHistogram({ ...base(description), buckets: [...buckets] }),
    tally: (description: Description) => new Counter(base(description)),
  };
};
export type Makers = ReturnType<typeof createMakers>;
