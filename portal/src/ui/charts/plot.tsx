// The drawn part of a chart, as SVG: axes, lines, and a cross where the pointer is.
import { type PointerEvent, useLayoutEffect, useRef, useState } from "react";
import { type Tone, toneColor } from "../status.tsx";
import css from "./chart.module.css";
import { figureMarks, timeMarks } from "./scale.ts";

export interface ChartLine {
  readonly label: string;
  readonly tone: Tone;
  /** One for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
}

interface PlotProps {
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly height: number;
  readonly stepped: boolean;
  /** The upper end of the scale; without it the largest figure. */
  readonly max: number | undefined;
  /** The place in the data that the pointer is at. */
  readonly point: number | null;
  readonly onPoint: (index: number | null) => void;
}

const LEFT = 40;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
const TIME_MARK_PX = 64;
const FIGURE_MARK_PX = 24;

const useWidth = () => {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = host;
    if (current === null) return;
    const measure = (): void => setWidth(current.clientWidth);
    const resized = new ResizeObserver(measure);
    resized.observe(current);
    measure();
    return () => resized.disconnect();
  }, []);
  return { host, width };
};

type Place = (figure: number) => number;
interface Scales {
  readonly times: readonly number[];
  readonly x: Place;
  readonly y: Place;
  readonly stepped: boolean;
}
/** A line begins again after a figure that is unknown. */
const pathOf = ({ values }: ChartLine, { times, x, y, stepped }: Scales): string => {
  let isOpen = false;
  return values
    .map((value, index) => {
      const at = times[index];
      if (value === null || at === undefined) {
        isOpen = false;
        return "";
      }
      const to = `${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      const command = !isOpen ? `M${to}` : stepped ? `H${x(at).toFixed(1)}V${y(value).toFixed(1)}` : `L${to}`;
      isOpen = true;
      return command;
    })
    .join("");
};

const nearest = (times: readonly number[], at: number): number => {
  const after = times.findIndex((time) => time >= at);
  if (after <= 0) return after === 0 ? 0 : times.length - 1;
  return at - (times[after - 1] ?? at) < (times[after] ?? at) - at ? after - 1 : after;
};

export const Plot = ({ times, lines, height, stepped, max, point, onPoint }: PlotProps) => {
  const { host, width } = useWidth();
  const [from = 0, to = 0] = [times[0], times.at(-1)];
  const highest = max ?? Math.max(1, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))) * 1.1;
  const inner = Math.max(1, width - LEFT - RIGHT);
  const x: Place = (at) => LEFT + ((at - from) / Math.max(1, to - from)) * inner;
  const y: Place = (figure) => height - BOTTOM - (figure / highest) * (height - TOP - BOTTOM);
  const move = ({ clientX, currentTarget }: PointerEvent): void => {
    const at = from + ((clientX - currentTarget.getBoundingClientRect().left - LEFT) / inner) * (to - from);
    onPoint(times.length === 0 ? null : nearest(times, at));
  };
  const pointed = point === null ? undefined : times[point];
  return (
    <div ref={host} className={css["plot"]} style={{ height }}>
      {width === 0 ? null : (
        <svg width={width} height={height} aria-hidden="true" onPointerMove={move} onPointerLeave={() => onPoint(null)}>
          <g className={css["axis"]}>
            {figureMarks(highest, (height - TOP - BOTTOM) / FIGURE_MARK_PX).map(({ at, word }) => (
              <g key={at}>
                <path d={`M${LEFT} ${y(at).toFixed(1)}H${width - RIGHT}`} />
                <text x={LEFT - 8} y={y(at) + 4} textAnchor="end">
                  {word}
                </text>
              </g>
            ))}
            {timeMarks(from, to, inner / TIME_MARK_PX).map(({ at, word }) => (
              <g key={at}>
                <path d={`M${x(at).toFixed(1)} ${TOP}V${height - BOTTOM}`} />
                <text x={x(at)} y={height - 6} textAnchor="middle">
                  {word}
                </text>
              </g>
            ))}
          </g>
          {lines.map((line) => (
            <path key={line.label} className={`${css["line"]} ${toneColor(line.tone)}`} d={pathOf(line, { times, x, y, stepped })} />
          ))}
          {pointed === undefined ? null : <path className={css["cross"]} d={`M${x(pointed).toFixed(1)} ${TOP}V${height - BOTTOM}`} />}
        </svg>
      )}
    </div>
  );
};
