// A list that the URL filters: its rows, or what to do when there are none.
import type { ReactNode } from "react";
import { Empty, Loaded, type Read } from "./parts.tsx";
import { Table, type TableProps } from "./table.tsx";

export interface FilteredListProps<R> extends Pick<TableProps<R>, "label" | "columns" | "id" | "onOpen" | "opened"> {
  readonly list: Pick<TableProps<R>, "count" | "row" | "onSight"> & { readonly read: Read<unknown> };
  /** Null while no filter is set. */
  readonly onClear: (() => void) | null;
  readonly noMatch: string;
  /** What would be here. */
  readonly none: ReactNode;
  /** The next step of whoever has none. */
  readonly action?: ReactNode;
}

export const FilteredList = <R,>({ list, onClear, noMatch, none, action, ...table }: FilteredListProps<R>) => (
  <Loaded read={list.read} rows={10}>
    {() => {
      if (list.count > 0) return <Table {...table} {...list} fill />;
      if (onClear === null) return <Empty action={action}>{none}</Empty>;
      return (
        <Empty
          action={
            <button type="button" onClick={onClear}>
              Clear filters
            </button>
          }
        >
          {noMatch}
        </Empty>
      );
    }}
  </Loaded>
);
