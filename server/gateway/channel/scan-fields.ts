// Skips over a JSON object in bytes whose fields are known and may come in any order, and reports which of them are present.
import { bytesOf, type Cursor, isNext, type Skip, skipOver, take } from "./scan-values.ts";

const OPEN = 0x7b;
const CLOSE = 0x7d;

export interface Field {
  readonly name: string;
  readonly key: Uint8Array;
  readonly skip: Skip;
}

/** Empty without a reader: zod then checks every frame that has this field. */
export const field = (name: string, skip: Skip | null): readonly Field[] => (skip === null ? [] : [{ name, key: bytesOf(`"${name}":`), skip }]);

/** What the last object held, until the next one is read. */
export interface Found {
  /** One bit per field that is present, in the order of the fields. */
  fields: number;
  /** By field, the last number in it: the value of a numeric field. */
  readonly values: Float64Array;
}

export const newFound = (fields: readonly Field[]): Found => ({ fields: 0, values: new Float64Array(fields.length) });

export const bitsOf = (fields: readonly Field[], names: readonly string[]): number =>
  fields.reduce((bits, { name }, index) => (names.includes(name) ? bits | (1 << index) : bits), 0);

/** Skips the next key and returns the index of its field, -1 for an unknown one. It first tries the field that followed the previous one last time. */
const createNextKey = (fields: readonly Field[]): ((cursor: Cursor, previous: number) => number) => {
  const followers = [...fields.keys(), 0];
  return (cursor, previous) => {
    const likely = followers[previous + 1] ?? 0;
    if (skipOver(cursor, (fields[likely] as Field).key)) return likely; // as: followers holds indexes of fields only
    for (let index = 0; index < fields.length; index += 1) {
      if (index === likely || !skipOver(cursor, (fields[index] as Field).key)) continue; // as: within the length
      followers[previous + 1] = index;
      return index;
    }
    return -1;
  };
};

/** Rejects a field that comes twice. */
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
