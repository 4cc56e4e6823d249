// Between a database row and a record of the contract: what a store says about a column beyond its name.
import type { z } from "zod";

/** What a column may hold for a field: an id of any spelling and a time as a Date. */
type Column<V> = V extends string ? string | Date : V extends number | boolean | null | undefined ? V : unknown;
type Row<S extends z.ZodObject> = { readonly [K in keyof z.input<S>]: Column<z.input<S>[K]> };

/** The record's own fields of a row, times as ISO texts. Columns that the record does not declare stay behind. */
export const recordOf = <S extends z.ZodObject>(schema: S, row: Row<S>): z.input<S> => {
  const record: Record<string, unknown> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = (row as Readonly<Record<string, unknown>>)[name];
    record[name] = value instanceof Date ? value.toISOString() : value;
  }
  return record as z.input<S>;
};

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** What a PATCH names: its fields without those that are undefined. */
export const given = <T extends object>(fields: T): Given<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;
