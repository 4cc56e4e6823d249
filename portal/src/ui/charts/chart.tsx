// Figures over time as lines. Draws only while somebody looks; the same figures are one key press away as a table.
import { useEffect, useRef, useState } from "react";
import { Shape } from "../status.tsx";
import css from "./chart.module.css";
import type { ChartLine, Plot } from "./plot.ts";
import { onColorChange } from "./scheme-colors.ts";

export interface ChartProps {
  readonly label: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  /** Their number and labels stay the same. */
  readonly lines: readonly ChartLine[];
  readonly height?: number;
  /** Each figure holds until the next one. */
  readonly stepped?: boolean;
  /** The upper end of the scale, such as 100 for percent. */
  readonly max?: number;
  readonly format?: (figure: number) => string;
}

const numbers = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const DAY = 86_400;

const usePlot = ({ times, lines, height = 150, stepped = false, max }: ChartProps) => {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const latest = useRef({ times, lines });
  const [point, setPoint] = useState<number | null>(null);
  latest.current = { times, lines };
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const ended = new AbortController();
    const draw = (): void => {
      if (!document.hidden) plot.current?.show(latest.current.times, latest.current.lines);
    };
    const resized = new ResizeObserver(() => plot.current?.resize(element.clientWidth));
    const stopColors = onColorChange(() => plot.current?.redraw());
    document.addEventListener("visibilitychange", draw, { signal: ended.signal });
    void import("./plot.ts").then(({ createPlot }) => {
      if (ended.signal.aborted) return;
      plot.current = createPlot(element, { height, lines: latest.current.lines, stepped, max, onPoint: setPoint });
      resized.observe(element);
      draw();
    });
    return () => {
      ended.abort();
      resized.disconnect();
      stopColors();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [height, stepped, max]);
  useEffect(() => {
    if (!document.hidden) plot.current?.show(times, lines);
  }, [times, lines]);
  return { host, point };
};

const lastOf = (values: readonly (number | null)[]): number | null => values.findLast((value) => value !== null) ?? null;

export const Chart = (props: ChartProps) => {
  const { label, times, lines, height = 150, format = (figure: number) => numbers.format(figure) } = props;
  const { host, point } = usePlot(props);
  const [isOpen, setOpen] = useState(false);
  const show = (figure: number | null | undefined): string => (figure === null || figure === undefined ? "unknown" : format(figure));
  const timeText = (at: number): string => ((times.at(-1) ?? at) - (times[0] ?? at) > DAY / 2 ? dated : clock).format(at * 1_000);
  const sentence = lines
    .map(({ label: line, values }) => `${line}: now ${show(lastOf(values))}, at most ${show(Math.max(0, ...values.map((value) => value ?? 0)))}`)
    .join("; ");
  return (
    <figure className={css["figure"]}>
      <div ref={host} role="img" aria-label={`${label}. ${sentence}`} className={css["plot"]} style={{ height }} />
      <figcaption className={css["legend"]}>
        {lines.map(({ label: line, tone, values }) => (
          <span key={line} className={css["entry"]}>
            <Shape tone={tone} /> {line} <strong>{show(point === null ? lastOf(values) : values[point])}</strong>
          </span>
        ))}
        <span className="muted">{point === null || times[point] === undefined ? "" : timeText(times[point])}</span>
        <button type="button" data-kind="plain" className={css["toggle"]} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide table" : "As table"}
        </button>
      </figcaption>
      {isOpen ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
        <section className={css["scroll"]} aria-label={`${label}, as a table`} tabIndex={0}>
          <table className={css["table"]}>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {lines.map(({ label: line }) => (
                  <th key={line} scope="col">
                    {line}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((at, index) => (
                <tr key={at}>
                  <th scope="row">{timeText(at)}</th>
                  {lines.map(({ label: line, values }) => (
                    <td key={line}>{show(values[index])}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : null}
    </figure>
  );
};
