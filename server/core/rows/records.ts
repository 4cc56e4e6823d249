// Between rows and records: turns a row into the record that the contract declares, and a caller's change into the columns to write.
import { z } from "zod";

/** What a column may hold for a field: any text or a Date for a text (ids and enums are plain text in a row), null for an optional field. */
type Column<V> = undefined extends V ? Stored<Exclude<V, undefined>> | null | undefined : Stored<V>;
type Stored<V> = V extends string ? string | Date : V extends number | boolean | null ? V : unknown;
/** A row that has a column for every field of the record. It may have more. */
export type RowOf<S extends z.ZodObject> = { readonly [K in keyof z.input<S>]: Column<z.input<S>[K]> };

/** Copies the fields that the schema declares and no others. Writes times as ISO text and leaves out an optional field that is null. */
export const recordOf = <S extends z.ZodObject>(schema: S, row: RowOf<S>): z.output<S> => {
  const record: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(schema.shape)) {
    const value = (row as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || (value === null && field instanceof z.ZodOptional)) continue;
    record[name] = value instanceof Date ? value.toISOString() : value;
  }
  return record as z.output<S>; // as: `RowOf` has every field
};

type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Drops the fields that are undefined. Prisma leaves a column alone when the change does not name it. */
export const given = <T extends object>(values: T): Given<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>; // as: entries lose their keys

/** The named fields of a record, and always its id. */
export const partOf = <T extends object, I extends keyof T>(record: T, id: I, fields: readonly (keyof T)[]): Pick<T, I> & Partial<T> => {
  const named = [id, ...fields].flatMap((field) => (record[field] === undefined ? [] : [[field, record[field]]]));
  return Object.fromEntries(named) as Pick<T, I> & Partial<T>; // as: entries lose their keys
};
