// A list of any length: draws only what is in sight, is one stop of the Tab key, and moves by j, k, arrows, Page Up, Page Down, Home and End.
import { type CSSProperties, type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Skeleton } from "../parts.tsx";
import { useId } from "../use-id.ts";
import { useRowsInSight } from "./rows-in-sight.ts";
import type { Selection } from "./selection.ts";
import css from "./table.module.css";

export interface Column<R> {
  readonly title: string;
  /** Drawn in place of the title, which stays the column's name. */
  readonly head?: ReactNode;
  readonly cell: (row: R) => ReactNode;
  /** A track of CSS grid. */
  readonly width?: string;
  /** Also shown on phones: the first of these above the others. */
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
  /** Gives each row a box. `between` reads rows that a choice spans. */
  readonly selection?: Selection | undefined;
  readonly between?: ((first: number, last: number) => Promise<readonly R[]>) | undefined;
  /** What a row is called, for its box. */
  readonly nameOf?: ((row: R) => string) | undefined;
}

const PAGE_ROWS = 15;
/** The box at the head chooses at most so many; the bar below offers all others. */
const MOST_AT_ONCE = 100;
const BOX_WIDTH = "24px";

const tracks = <R,>(columns: readonly Column<R>[], hasBox: boolean): string =>
  [...(hasBox ? [BOX_WIDTH] : []), ...columns.map(({ width = "minmax(0, 1fr)" }) => width)].join(" ");

/** Where a key leads from a row, or null if the key moves nothing. */
const target = (key: string, at: number, count: number): number | null => {
  const steps: Readonly<Record<string, number>> = {
    j: at + 1,
    J: at + 1,
    ArrowDown: at + 1,
    k: at - 1,
    K: at - 1,
    ArrowUp: at - 1,
    PageDown: at + PAGE_ROWS,
    PageUp: at - PAGE_ROWS,
    Home: 0,
    End: count - 1,
  };
  const to = steps[key];
  return to === undefined ? null : Math.max(0, Math.min(count - 1, to));
};

/** Chooses rows: one, or all from the one before. */
const useChoice = <R,>({ row, id, selection, between }: TableProps<R>) => {
  const last = useRef(0);
  const span = async (from: number, to: number): Promise<void> => {
    const rows = await between?.(Math.min(from, to), Math.max(from, to));
    selection?.add((rows ?? []).map(id));
  };
  const choose = (index: number, extends_: boolean): void => {
    const value = row(index);
    if (extends_) void span(last.current, index);
    else if (value !== undefined) selection?.toggle(id(value));
    last.current = index;
  };
  return { choose, span };
};

const useRows = <R,>(props: TableProps<R>) => {
  const { count, row, onOpen, onSight, selection } = props;
  const body = useRef<HTMLDivElement>(null);
  const [at, setCurrent] = useState(0);
  const current = Math.min(at, Math.max(0, count - 1));
  const { first, last, height, show } = useRowsInSight(body, count);
  const { choose, span } = useChoice(props);
  useEffect(() => {
    if (last >= 0) onSight?.(first, last);
  }, [onSight, first, last]);
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const value = row(current);
    if (event.key === "Enter" && value !== undefined) onOpen?.(value);
    if (event.key === "x") choose(current, false);
    const to = target(event.key, current, count);
    if (to === null) return;
    event.preventDefault();
    if (event.shiftKey && selection !== undefined) void span(current, to);
    setCurrent(to);
    show(to);
  };
  const indices = Array.from({ length: Math.max(0, Math.min(last, count - 1) - first + 1) }, (_, offset) => first + offset);
  return { body, indices, height, current, setCurrent, press, choose, span };
};

interface RowProps<R> {
  readonly of: TableProps<R>;
  readonly value: R | undefined;
  readonly index: number;
  readonly choose: (index: number, extend: boolean) => void;
}
const Cells = <R,>({ of: { columns, id, selection, nameOf = id }, value, index, choose }: RowProps<R>) => {
  if (value === undefined)
    return (
      <div role="gridcell" className={css["missing"]}>
        <Skeleton rows={1} />
      </div>
    );
  const pick = (event: MouseEvent): void => {
    event.stopPropagation();
    choose(index, event.shiftKey);
  };
  const fault = selection?.faults.get(id(value));
  const [lead, ...rest] = columns;
  const cellOf = (column: Column<R>) => (
    <div key={column.title} role="gridcell" className={`${css["cell"]} ${column.phone === true ? "" : css["wide"]}`}>
      {column.cell(value)}
      {column === lead && fault !== undefined ? (
        <span className={css["fault"]} title={fault}>
          {fault}
        </span>
      ) : null}
    </div>
  );
  return (
    <>
      {selection === undefined ? null : (
        <div role="gridcell" className={css["box"]} onClick={pick}>
          <input type="checkbox" tabIndex={-1} aria-label={`Select ${nameOf(value)}`} checked={selection.has(id(value))} readOnly />
        </div>
      )}
      {lead === undefined ? null : cellOf(lead)}
      <div className={css["rest"]} role="presentation">
        {rest.map(cellOf)}
      </div>
    </>
  );
};

const Head = <R,>({ of: { columns, count, selection }, span }: { readonly of: TableProps<R>; readonly span: (from: number, to: number) => Promise<void> }) => {
  const chosen = selection?.count(count) ?? 0;
  const change = (): void => {
    if (chosen > 0) selection?.only([]);
    else void span(0, Math.min(count, MOST_AT_ONCE) - 1);
  };
  return (
    <div className={`${css["row"]} ${css["head"]}`} role="row" aria-rowindex={1} data-head>
      {selection === undefined ? null : (
        <div role="columnheader" className={css["box"]} aria-label="Selection">
          <input
            ref={(box) => {
              if (box !== null) box.indeterminate = chosen > 0 && chosen < count;
            }}
            type="checkbox"
            aria-label={`Select the first ${MOST_AT_ONCE} or none`}
            checked={chosen > 0}
            onChange={change}
          />
        </div>
      )}
      {columns.map((column) => (
        <div
          key={column.title}
          role="columnheader"
          aria-label={column.head === undefined ? undefined : column.title}
          className={`${css["cell"]} ${column.phone === true ? "" : css["wide"]}`}
        >
          {column.head ?? column.title}
        </div>
      ))}
    </div>
  );
};

export const Table = <R,>(props: TableProps<R>) => {
  const { label, columns, count, row, id, onOpen, opened, fill = false, selection } = props;
  const { body, indices, height, current, setCurrent, press, choose, span } = useRows(props);
  const [focused, setFocused] = useState(false);
  const prefix = useId();
  return (
    <div
      ref={body}
      className={css["frame"]}
      data-fill={fill || undefined}
      data-chooses={selection === undefined ? undefined : true}
      data-list
      style={{ "--columns": tracks(columns, selection !== undefined) } as CSSProperties}
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-rowcount={count + 1}
      aria-multiselectable={selection !== undefined || undefined}
      aria-activedescendant={focused && count > 0 ? `${prefix}${current}` : undefined}
      onKeyDown={press}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    >
      <Head of={props} span={span} />
      <div className={css["rows"]} role="presentation" style={{ height: count * height }}>
        {indices.map((index) => {
          const value = row(index);
          const isChosen = value !== undefined && (selection?.has(id(value)) ?? false);
          return (
            <div
              key={value === undefined ? index : id(value)}
              id={`${prefix}${index}`}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={isChosen || (value !== undefined && id(value) === opened)}
              data-current={(focused && index === current) || undefined}
              className={`${css["row"]} ${css["item"]}`}
              data-opens={onOpen === undefined ? undefined : true}
              style={{ transform: `translateY(${index * height}px)` }}
              onClick={(event) => {
                setCurrent(index);
                if (event.shiftKey && selection !== undefined) choose(index, true);
                else if (value !== undefined) onOpen?.(value);
              }}
            >
              <Cells of={props} value={value} index={index} choose={choose} />
            </div>
          );
        })}
      </div>
    </div>
  );
};
