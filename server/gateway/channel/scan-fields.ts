// Walks over an object in bytes whose fields are known, in whatever order they stand; says which are there.
import { bytesOf, type Cursor, isNext, type Skip, skipOver, take } from "./scan-values.ts";

const OPEN = 0x7b;
const CLOSE = 0x7d;

export interface Field {
  readonly name: string;
  readonly key: Uint8Array;
  readonly skip: Skip;
}

/** None where there is no reader: a frame with such a field is for the schema. */
export const field = (name: string, skip: Skip | null): readonly Field[] => (skip === null ? [] : [{ name, key: bytesOf(`"${name}":`), skip }]);

/** What was found in an object, until the next one is read. */
export interface Found {
  /** One bit for each of the fields, in their order. */
  fields: number;
  /** By field, the number that was read last in it: its value, where it is one. */
  readonly values: Float64Array;
}

export const newFound = (fields: readonly Field[]): Found => ({ fields: 0, values: new Float64Array(fields.length) });

export const bitsOf = (fields: readonly Field[], names: readonly string[]): number =>
  fields.reduce((bits, { name }, index) => (names.includes(name) ? bits | (1 << index) : bits), 0);

/** Walks over the key that comes next and gives its field's place, -1 for an unknown one. What stood there the last time is looked for first. */
const createNextKey = (fields: readonly Field[]): ((cursor: Cursor, previous: number) => number) => {
  const followers = [...fields.keys(), 0];
  return (cursor, previous) => {
    const likely = followers[previous + 1] ?? 0;
    if (skipOver(cursor, (fields[likely] as Field).key)) return likely; // as: only places of fields are kept
    for (let index = 0; index < fields.length; index += 1) {
      if (index === likely || !skipOver(cursor, (fields[index] as Field).key)) continue; // as: within the length
      followers[previous + 1] = index;
      return index;
    }
    return -1;
  };
};

/** Each field at most once. */
export const skipFields = (fields: readonly Field[], found: Found): Skip => {
  const nextKey = createNextKey(fields);
  return (cursor) => {
    found.fields = 0;
    if (!take(cursor, OPEN)) return false;
    for (let index = -1; ; ) {
      index = nextKey(cursor, index);
      const next = fields[index];
      if (next === undefined || (found.fields & (1 << index)) !== 0 || !next.skip(cursor)) return false;
      found.fields |= 1 << index;
      found.values[index] = cursor.value;
      const more = isNext(cursor, CLOSE);
      if (more !== true) return more === false;
    }
  };
};
