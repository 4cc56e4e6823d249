// A list of records: its rows, or what to do when there are none.
import type { ReactNode } from "react";
import { Empty, Loaded, type Read } from "../parts.tsx";
import { Table, type TableProps } from "./table.tsx";

export interface ListProps<R> extends Pick<TableProps<R>, "label" | "columns" | "id" | "onOpen" | "opened" | "fill" | "selection" | "nameOf"> {
  readonly list: Pick<TableProps<R>, "count" | "row" | "onSight" | "between"> & { readonly read: Read<unknown> };
  /** Drawn in grey until the list has been read. */
  readonly rows?: number;
  /** What would be here. */
  readonly none: ReactNode;
  /** The next step of whoever has none. */
  readonly action?: ReactNode;
}

export const List = <R,>({ list: { read, ...of }, rows = 10, fill = true, none, action, ...table }: ListProps<R>) => (
  <Loaded read={read} rows={rows}>
    {() => (of.count > 0 ? <Table {...table} {...of} fill={fill} /> : <Empty action={action}>{none}</Empty>)}
  </Loaded>
);

export interface FilteredListProps<R> extends ListProps<R> {
  /** What the URL says; an order of its own is no filter. */
  readonly filters: object;
  readonly onClear: () => void;
  readonly noMatch: string;
  /** Which filter leaves nothing. */
  readonly reasons?: ReactNode;
}

/** A list that the URL filters. */
export const FilteredList = <R,>({ filters, onClear, noMatch, reasons, ...list }: FilteredListProps<R>) => {
  if (Object.keys(filters).every((name) => name === "sort")) return <List {...list} />;
  const button = (
    <>
      {reasons}
      <button type="button" onClick={onClear}>
        Clear filters
      </button>
    </>
  );
  return <List {...list} none={noMatch} action={button} />;
};
