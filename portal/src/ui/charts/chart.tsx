// Figures over time as lines. Draws only while somebody looks; the same figures are one key press away as a table.
import { useEffect, useRef, useState } from "react";
import { Shape } from "../status.tsx";
import css from "./chart.module.css";
import { type ChartLine, Plot } from "./plot.tsx";

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

/** What a hidden page had shown: it draws again when somebody looks. */
const useSeen = <T,>(now: T): T => {
  const seen = useRef(now);
  const [, drawAgain] = useState({});
  useEffect(() => {
    const look = (): void => drawAgain({});
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  if (!document.hidden) seen.current = now;
  return seen.current;
};

const lastOf = (values: readonly (number | null)[]): number | null => values.findLast((value) => value !== null) ?? null;

export const Chart = (props: ChartProps) => {
  const { label, height = 150, stepped = false, max, format = (figure: number) => numbers.format(figure) } = props;
  const { times, lines } = useSeen(props);
  const [point, setPoint] = useState<number | null>(null);
  const [isOpen, setOpen] = useState(false);
  const show = (figure: number | null | undefined): string => (figure === null || figure === undefined ? "unknown" : format(figure));
  const timeText = (at: number): string => ((times.at(-1) ?? at) - (times[0] ?? at) > DAY / 2 ? dated : clock).format(at * 1_000);
  const sentence = lines
    .map(({ label: line, values }) => `${line}: now ${show(lastOf(values))}, at most ${show(Math.max(0, ...values.map((value) => value ?? 0)))}`)
    .join("; ");
  return (
    <figure className={css["figure"]}>
      <div role="img" aria-label={`${label}. ${sentence}`}>
        <Plot times={times} lines={lines} height={height} stepped={stepped} max={max} point={point} onPoint={setPoint} />
      </div>
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
