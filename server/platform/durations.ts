// A histogram for what is observed with each call: the library's own puts all labels into one text to find a series by, and each bound into another.
// Here a series is found once and held; what it counted is told to the library in the library's form, at each scrape.
import { Histogram, type HistogramConfiguration } from "prom-client";

type Labels = Readonly<Record<string, string>>;

export class Series {
  readonly labels: Labels;
  /** By bound, and behind them what is above all bounds. Not yet summed up. */
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

export class Durations extends Histogram {
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

  /** Call once for each set of labels, and keep it. */
  series(labels: Labels): Series {
    const series = new Series(labels, this.#bounds);
    this.#series.push(series);
    return series;
  }

  /** The library reads a metric by this method of its own. */
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
