// Between rows and records: what the contract shows of a row, and what a row takes of the values that a caller gave.
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

type TimeAsText<T> = T extends Date ? string : T;
type Shown<Row> = { [K in keyof Row]: TimeAsText<Row[K]> };

/** The row with its times as text. */
export const toRecord = <Row extends object>(row: Row): Shown<Row> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value])) as Shown<Row>; // as: entries lose their keys

type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Without what was not given: Prisma leaves alone what a change does not name. */
export const given = <T extends object>(values: T): Given<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>; // as: entries lose their keys

type Present<T> = { [K in keyof T as null extends T[K] ? never : K]: T[K] } & { [K in keyof T as null extends T[K] ? K : never]?: Exclude<T[K], null> };

/** Without what is null: the contract leaves out what nobody has said. */
export const withoutNulls = <T extends object>(values: T): Present<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as Present<T>; // as: entries lose their keys
