// The drawn part of a chart. It brings uPlot, so it loads with the first chart only.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Tone } from "../status.tsx";
import { colorOf } from "./scheme-colors.ts";

export interface ChartLine {
  readonly label: string;
  readonly tone: Tone;
  /** One for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
}

export interface PlotOptions {
  readonly height: number;
  readonly lines: readonly Pick<ChartLine, "label" | "tone">[];
  readonly stepped: boolean;
  /** The upper end of the scale; without it the largest figure. */
  readonly max: number | undefined;
  /** The figure under the pointer, by its place in the data. */
  readonly onPoint: (index: number | null) => void;
}

export interface Plot {
  readonly show: (times: readonly number[], lines: readonly ChartLine[]) => void;
  readonly resize: (width: number) => void;
  readonly redraw: () => void;
  readonly destroy: () => void;
}

const FONT = "11px system-ui, sans-serif";
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
const MINUTE = 60;
const DAY = 86_400;

const formats = {
  seconds: new Intl.DateTimeFormat(undefined, { minute: "2-digit", second: "2-digit" }),
  minutes: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" }),
  days: new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" }),
};
const formatFor = (step: number): Intl.DateTimeFormat => (step < MINUTE ? formats.seconds : step < DAY ? formats.minutes : formats.days);
const timesText = (times: readonly number[]): string[] => {
  const format = formatFor((times[1] ?? DAY) - (times[0] ?? 0));
  return times.map((at) => format.format(at * 1_000));
};
const figures = new Intl.NumberFormat(undefined, { notation: "compact" });

const axis = (own: uPlot.Axis): uPlot.Axis => ({
  stroke: () => colorOf("--muted"),
  font: FONT,
  grid: { stroke: () => colorOf("--line"), width: 1 },
  ticks: { show: false },
  gap: 6,
  ...own,
});

export const createPlot = (host: HTMLElement, { height, lines, stepped, max, onPoint }: PlotOptions): Plot => {
  const steps = stepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
  const series = lines.map(({ label, tone }): uPlot.Series => {
    const stroke = (): string => colorOf(`--${tone === "idle" ? "muted" : tone}`);
    return { label, stroke, width: 1.5, points: { show: false }, spanGaps: false, ...(steps === undefined ? {} : { paths: steps }) };
  });
  const plot = new uPlot(
    {
      width: host.clientWidth,
      height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { y: { range: (_plot, _low, high) => [0, max ?? Math.max(1, (high ?? 0) * 1.1)] } },
      axes: [
        axis({ size: 24, space: 64, values: (_plot, splits) => timesText(splits) }),
        axis({ size: 36, space: 24, incrs: WHOLE_STEPS, values: (_plot, splits) => splits.map((figure) => figures.format(figure)) }),
      ],
      series: [{}, ...series],
      hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
    },
    [[], ...lines.map(() => [])],
    host,
  );
  return {
    show: (times, now) => plot.setData([[...times], ...now.map(({ values }) => [...values])]),
    resize: (width) => plot.setSize({ width, height }),
    redraw: () => plot.redraw(false, true),
    destroy: () => plot.destroy(),
  };
};
