// A histogram for values observed on every call. prom-client's own builds a string from all labels on each observation to find the series; here the
// caller holds the series, and prom-client reads its counts at each scrape.
import { Histogram, type HistogramConfiguration } from "prom-client";

type Labels = Readonly<Record<string, string>>;

export class Series {
  readonly labels: Labels;
  /** Observations per bucket, not cumulative; the last bucket is +Inf. */
  readonly counts: number[];
  sum = 0;
  readonly #bounds: readonly number[];

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.counts = [...bounds.map(() => 0), 0];
  }

  observe(seconds: number): void {
    let at = 0;
    while (seconds > (this.#bounds[at] ?? Number.POSITIVE_INFINITY)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += seconds;
  }
}

interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly sharedLabels: Labels;
  readonly value: number;
}

export class PreboundHistogram extends Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series: Series[] = [];

  constructor(config: HistogramConfiguration<string> & { readonly buckets: number[] }) {
    super(config);
    this.#name = config.name;
    this.#help = config.help;
    this.#bounds = config.buckets;
  }

  /** Call this once per set of labels and keep the result. */
  series(labels: Labels): Series {
    const series = new Series(labels, this.#bounds);
    this.#series.push(series);
    return series;
  }

  /** prom-client calls this at each scrape. */
  async getForPromString() {
    return { name: this.#name, help: this.#help, type: "histogram", aggregator: "sum", values: this.#series.flatMap((series) => this.#valuesOf(series)) };
  }

  #valuesOf({ labels: sharedLabels, counts, sum }: Series): readonly Value[] {
    let count = 0;
    const buckets = counts.map((more, at): Value => {
      count += more;
      return { metricName: `${this.#name}_bucket`, labels: { le: this.#bounds[at] ?? "+Inf" }, sharedLabels, value: count };
    });
    return [
      ...buckets,
      { metricName: `${this.#name}_sum`, labels: {}, sharedLabels, value: sum },
      { metricName: `${this.#name}_count`, labels: {}, sharedLabels, value: count },
    ];
  }
}
