// A list of any length: draws only what is in sight, is one stop of the Tab key, and moves by j, k, arrows, Page Up, Page Down, Home and End.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Skeleton } from "./parts.tsx";
import css from "./table.module.css";

export interface Column<R> {
  readonly title: string;
  /** Drawn in place of the title, which stays the column's name. */
  readonly head?: ReactNode;
  readonly cell: (row: R) => ReactNode;
  /** A track of CSS grid. */
  readonly width?: string;
  /** Also shown on phones. */
  readonly phone?: boolean;
}

export interface TableProps<R> {
  /** What the rows are, for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<R>[];
  readonly count: number;
  /** Undefined while it is being read. */
  readonly row: (index: number) => R | undefined;
  readonly id: (row: R) => string;
  readonly onOpen?: (row: R) => void;
  /** The id of the row that is open beside the table. */
  readonly opened?: string | undefined;
  /** What is in sight now, to read what is missing. */
  readonly onSight?: (first: number, last: number) => void;
  /** As high as the page leaves room. */
  readonly fill?: boolean;
}

const ROW_HEIGHT = 36;
const PAGE_ROWS = 15;

const tracks = <R,>(columns: readonly Column<R>[]): string => columns.map(({ width = "minmax(0, 1fr)" }) => width).join(" ");

/** Where a key leads from a row, or null if the key moves nothing. */
const target = (key: string, at: number, count: number): number | null => {
  const steps: Readonly<Record<string, number>> = {
    j: at + 1,
    ArrowDown: at + 1,
    k: at - 1,
    ArrowUp: at - 1,
    PageDown: at + PAGE_ROWS,
    PageUp: at - PAGE_ROWS,
    Home: 0,
    End: count - 1,
  };
  const to = steps[key];
  return to === undefined ? null : Math.max(0, Math.min(count - 1, to));
};

const useRows = <R,>({ count, row, onOpen, onSight }: TableProps<R>) => {
  const body = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(0);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => body.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 8,
    scrollMargin: ROW_HEIGHT,
    scrollPaddingStart: ROW_HEIGHT,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => onSight?.(first, last), [onSight, first, last]);
  const move = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const selected = row(current);
    if (event.key === "Enter" && selected !== undefined) onOpen?.(selected);
    const to = target(event.key, current, count);
    if (to === null) return;
    event.preventDefault();
    setCurrent(to);
    virtual.scrollToIndex(to);
  };
  return { body, items, height: virtual.getTotalSize(), current: Math.min(current, Math.max(0, count - 1)), setCurrent, move };
};

export const Table = <R,>(props: TableProps<R>) => {
  const { label, columns, count, row, id, onOpen, opened, fill = false } = props;
  const { body, items, height, current, setCurrent, move } = useRows(props);
  const [focused, setFocused] = useState(false);
  const prefix = useId();
  const style = { "--columns": tracks(columns), "--phone-columns": tracks(columns.filter(({ phone }) => phone === true)) } as CSSProperties;
  const cellClass = ({ phone }: Column<R>): string => `${css["cell"]} ${phone === true ? "" : css["wide"]}`;
  return (
    <div
      ref={body}
      className={css["frame"]}
      data-fill={fill || undefined}
      data-list
      style={style}
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-rowcount={count + 1}
      aria-activedescendant={focused && count > 0 ? `${prefix}${current}` : undefined}
      onKeyDown={move}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    >
      <div className={`${css["row"]} ${css["head"]}`} role="row" aria-rowindex={1}>
        {columns.map((column) => (
          <div key={column.title} role="columnheader" aria-label={column.head === undefined ? undefined : column.title} className={cellClass(column)}>
            {column.head ?? column.title}
          </div>
        ))}
      </div>
      <div className={css["rows"]} role="presentation" style={{ height }}>
        {items.map(({ index, start }) => {
          const value = row(index);
          return (
            <div
              key={value === undefined ? index : id(value)}
              id={`${prefix}${index}`}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={(value !== undefined && id(value) === opened) || (focused && index === current)}
              className={`${css["row"]} ${css["item"]}`}
              data-opens={onOpen === undefined ? undefined : true}
              style={{ transform: `translateY(${start - ROW_HEIGHT}px)` }}
              onClick={() => {
                setCurrent(index);
                if (value !== undefined) onOpen?.(value);
              }}
            >
              {value === undefined ? (
                <div role="gridcell">
                  <Skeleton rows={1} />
                </div>
              ) : (
                columns.map((column) => (
                  <div key={column.title} role="gridcell" className={cellClass(column)}>
                    {column.cell(value)}
                  </div>
                ))
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
};
