// Figures: one beside the other, with their course over time; a value against its limit; parts of a whole.
import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import css from "./figures.module.css";
import type { Tone } from "./status.tsx";

interface FiguresProps {
  readonly label: string;
  /** They were true at some time in the past: what stands beside each says when. */
  readonly dimmed?: boolean;
  /** `Figure`. */
  readonly children: ReactNode;
}
export const Figures = ({ label, dimmed = false, children }: FiguresProps) => (
  <section className={css["figures"]} aria-label={label} data-dimmed={dimmed || undefined}>
    {children}
  </section>
);

export interface FigureProps {
  readonly name: ReactNode;
  readonly value: ReactNode;
  /** What belongs to the value: of how much, since when. */
  readonly beside?: ReactNode;
  readonly link?: Pick<LinkProps, "to" | "params" | "search">;
  /** A `Spark`. */
  readonly children?: ReactNode;
}
export const Figure = ({ name, value, beside, link, children }: FigureProps) => {
  const content = (
    <>
      <span className={css["name"]}>{name}</span>
      <span className={css["value"]}>
        <strong>{value}</strong> <small>{beside}</small>
      </span>
      {children}
    </>
  );
  return link === undefined ? (
    <div className={css["figure"]}>{content}</div>
  ) : (
    <Link {...link} className={css["figure"]}>
      {content}
    </Link>
  );
};

const WIDTH = 100;
const HEIGHT = 30;
type Point = readonly [x: string, y: string];

/** The lines between gaps, each as its points. */
const runsOf = (values: readonly (number | null)[], max: number): readonly (readonly Point[])[] => {
  const step = WIDTH / Math.max(1, values.length - 1);
  const runs: Point[][] = [];
  values.forEach((value, at) => {
    if (value === null) return;
    if (at === 0 || values[at - 1] === null) runs.push([]);
    runs.at(-1)?.push([(at * step).toFixed(1), (HEIGHT - 1 - (Math.min(value, max) / max) * (HEIGHT - 2)).toFixed(1)]);
  });
  return runs;
};
const lineOf = (run: readonly Point[]): string => `M${run.map(([x, y]) => `${x} ${y}`).join("L")}h0`;

export interface SparkProps {
  readonly label: string;
  /** In equal steps of time; null is a gap. */
  readonly values: readonly (number | null)[];
  /** The value at the upper edge. Default: the highest one. */
  readonly max?: number;
  readonly tone?: Tone;
}
export const Spark = ({ label, values, max = Math.max(1, ...values.map((value) => value ?? 0)), tone }: SparkProps) => {
  const runs = runsOf(values, max);
  return (
    <svg className={css["spark"]} data-tone={tone} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path className={css["area"]} d={runs.map((run) => `${lineOf(run)}V${HEIGHT}H${run[0]?.[0] ?? 0}z`).join("")} />
      <path className={css["line"]} d={runs.map(lineOf).join("")} />
    </svg>
  );
};

export interface BarProps {
  readonly parts: readonly { readonly tone?: Tone; readonly count: number }[];
  /** What the whole stands for. Default: the sum of the parts. */
  readonly whole?: number;
  /** Where nothing beside it says the same in words. */
  readonly label?: string;
}
export const Bar = ({ parts, whole = parts.reduce((sum, { count }) => sum + count, 0), label }: BarProps) => {
  let at = 0;
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: hidden where the words beside it say the same
    <svg
      className={css["bar"]}
      viewBox={`0 0 ${WIDTH} 6`}
      preserveAspectRatio="none"
      {...(label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label })}
    >
      <rect width={WIDTH} height="6" className={css["empty"]} />
      {parts.map(({ tone, count }) => {
        const x = at;
        const width = whole === 0 ? 0 : Math.min(WIDTH - x, (WIDTH * count) / whole);
        at += width;
        return <rect key={tone ?? ""} x={x} width={width} height="6" fill="currentColor" data-tone={tone} />;
      })}
    </svg>
  );
};

const NEAR = 0.8;
const numbers = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

export interface MeterProps {
  readonly label: string;
  readonly value: number;
  /** Null is unlimited. */
  readonly limit: number | null;
}
/** A value against its limit. From four fifths on it warns, at the limit it alarms. */
export const Meter = ({ label, value, limit }: MeterProps) => {
  const tone = value === 0 || limit === null || value < limit * NEAR ? undefined : value < limit ? "warn" : "bad";
  return (
    <div className={css["meter"]} data-tone={tone}>
      <span>{label}</span>
      <span className={css["words"]}>{limit === null ? `${numbers.format(value)}, unlimited` : `${numbers.format(value)} of ${numbers.format(limit)}`}</span>
      <Bar parts={limit === null || value === 0 ? [] : [{ count: value, ...(tone === undefined ? {} : { tone }) }]} whole={Math.max(limit ?? 1, 1e-9)} />
    </div>
  );
};
