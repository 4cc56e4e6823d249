// Lines of a log as they come: follows their end until somebody scrolls up or pauses, shows those with a text, and wraps long ones.
import { type UIEvent, useLayoutEffect, useRef, useState } from "react";
import { counted, numbers } from "./count.ts";
import css from "./log-view.module.css";
import { saveFile } from "./save-file.ts";
import { useId } from "./use-id.ts";

export interface ShownLine {
  /** Rises with each line. */
  readonly key: number;
  readonly at: string;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

export interface LogViewProps {
  readonly label: string;
  /** Bounded: the oldest are left out. */
  readonly lines: readonly ShownLine[];
  /** The name of the file that somebody saves. */
  readonly fileName: string;
}

const NEAR_PX = 24;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });

/** The lines of the moment in which somebody paused; null while they follow. */
const usePause = (lines: readonly ShownLine[]) => {
  const [frozen, setFrozen] = useState<readonly ShownLine[] | null>(null);
  const waiting = frozen === null ? 0 : (lines.at(-1)?.key ?? 0) - (frozen.at(-1)?.key ?? 0);
  return { shown: frozen ?? lines, paused: frozen !== null, waiting, toggle: () => setFrozen(frozen === null ? lines : null) };
};

/** Stays at the end while the person is there. */
const useEnd = (shown: readonly ShownLine[]) => {
  const frame = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines move the end
  useLayoutEffect(() => {
    if (atEnd.current && frame.current !== null) frame.current.scrollTop = frame.current.scrollHeight;
  }, [shown]);
  const onScroll = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }: UIEvent<HTMLElement>): void => {
    atEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_PX;
  };
  return { frame, onScroll };
};

const fileOf = (lines: readonly ShownLine[]): readonly string[] => lines.map(({ at, stream, text }) => `${at} ${stream} ${text}\n`);

const Lines = ({ of }: { readonly of: readonly ShownLine[] }) =>
  of.map(({ key, at, stream, text }) => (
    <div key={key} className={css["line"]} data-stream={stream}>
      <time dateTime={at}>{clock.format(new Date(at))}</time> {text}
    </div>
  ));

/** Few lines, all in sight. */
export const LogLines = ({ label, lines }: Pick<LogViewProps, "label" | "lines">) => (
  <section className={css["lines"]} data-wrap data-few aria-label={label}>
    <Lines of={lines} />
  </section>
);

export const LogView = ({ label, lines, fileName }: LogViewProps) => {
  const [query, setQuery] = useState("");
  const [wraps, setWraps] = useState(true);
  const id = useId();
  const { shown: all, paused, waiting, toggle } = usePause(lines);
  const sought = query.toLowerCase();
  const shown = sought === "" ? all : all.filter(({ text }) => text.toLowerCase().includes(sought));
  const { frame, onScroll } = useEnd(shown);
  return (
    <div className={css["view"]}>
      <div className="row">
        <button type="button" aria-pressed={paused} onClick={toggle}>
          {paused ? "Go on" : "Pause"}
        </button>
        <label htmlFor={id} className="out-of-sight">
          Search
        </label>
        <input id={id} type="search" data-filter placeholder="Search" value={query} maxLength={200} onChange={({ target }) => setQuery(target.value)} />
        <label>
          <input type="checkbox" checked={wraps} onChange={({ target }) => setWraps(target.checked)} /> Wrap lines
        </label>
        <button type="button" data-kind="plain" onClick={() => saveFile(fileName, "text/plain", fileOf(shown))}>
          Save
        </button>
        <span className="muted" role="status">
          {paused && waiting > 0
            ? `${counted(waiting, "new line")} since`
            : sought === ""
              ? ""
              : `${numbers.format(shown.length)} of ${counted(all.length, "line")}`}
        </span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <section ref={frame} className={css["lines"]} data-wrap={wraps || undefined} tabIndex={0} aria-label={label} onScroll={onScroll}>
        <Lines of={shown} />
      </section>
    </div>
  );
};
