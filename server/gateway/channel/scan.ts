// Reads the frequent frame straight from its bytes, at a fraction of the cost of JSON.parse and the schema.
// The readers come from the schema itself, and whatever they do not know, odd spacing or a field of another kind, is left to it:
// null means "ask the schema", never "bad". test/channel/scan.test.ts holds both to the same answers.
import type { z } from "zod";
import {
  bytesOf,
  CLOSE,
  type Cursor,
  isNext,
  type Read,
  readId,
  readList,
  readNumber,
  readNumbers,
  readString,
  readWord,
  skipOver,
  skipString,
  take,
} from "./scan-values.ts";

// biome-ignore lint/suspicious/noExplicitAny: zod's own description of a schema
type Def = any;
const MAX = Number.MAX_SAFE_INTEGER;

/** Null for kinds that are left to the schema. Only checks that are read here may stand on a field. */
const readerOf = (schema: Def): Read | null => {
  const checks: readonly string[] = (schema.def.checks ?? []).map((check: Def) => check._zod.def.check);
  const only = (...known: readonly string[]): boolean => checks.every((check) => known.includes(check));
  switch (schema.def.type) {
    case "optional":
      return readerOf(schema.def.innerType);
    case "string":
      return schema.def.format === undefined && only("min_length", "max_length") ? readString(schema.minLength ?? 0, schema.maxLength ?? MAX) : null;
    case "number": {
      const inclusive = (schema.def.checks ?? []).every((check: Def) => check._zod.def.inclusive === true);
      return only("greater_than", "less_than") && inclusive ? readNumber(schema.minValue ?? -Infinity, schema.maxValue ?? Infinity) : null;
    }
    case "enum":
      return readWord(Object.values(schema.def.entries));
    case "array": {
      const item = only("max_length") ? readerOf(schema.def.element) : null;
      return item === null ? null : readList(item, schema.def.checks?.[0]?._zod.def.maximum ?? MAX);
    }
    case "record":
      return schema.def.valueType.def.type === "unknown" && schema.def.keyType.def.format === undefined && only()
        ? readNumbers(schema.def.keyType.maxLength ?? MAX)
        : null;
    default:
      return null;
  }
};

interface Field {
  readonly name: string;
  readonly key: Uint8Array;
  readonly bit: number;
  readonly read: Read;
}

const fieldsOf = (data: Def): readonly Field[] =>
  Object.entries(data.shape).flatMap(([name, schema], index) => {
    const read = readerOf(schema);
    return read === null ? [] : [{ name, key: bytesOf(`"${name}":`), bit: 1 << index, read }];
  });

const TS = bytesOf(',"ts":');
const DATA = bytesOf(',"data":{');

/**
 * For `{"op":…,"id":…[,"ts":…],"data":{…}}` without spaces, the fields of data in any order. What comes is what the schema would give, but without `ts`.
 * The schema's data must be an object of optional fields; its own refinements are asked too.
 */
export const createScanner = <F extends z.ZodObject>(schema: F): ((bytes: Uint8Array) => z.output<F> | null) => {
  const { op, id, ts, data } = schema.shape as Def;
  const [word] = op.def.values;
  const head = bytesOf(`{"op":"${word}","id":`);
  const frameIdAt = readId(id.minLength ?? 0, id.maxLength ?? MAX);
  const maxTs: number = ts.def.innerType.maxLength;
  const fields = fieldsOf(data);
  const rules: readonly ((value: unknown) => unknown)[] = (data.def.checks ?? []).map((check: Def) => check._zod.def.fn);
  const cursor: Cursor = { bytes: head, at: 0 };

  // Begins with the field that comes next in the schema: that is where it is, when frames are written in its order.
  const fieldAt = (from: number): number => {
    for (let step = 0; step < fields.length; step += 1) {
      const index = (from + step) % fields.length;
      if (skipOver(cursor, (fields[index] as Field).key)) return index; // as: the index is within the list
    }
    return -1;
  };
  const readData = (): Record<string, unknown> | null => {
    const found: Record<string, unknown> = {};
    let seen = 0;
    let at = -1;
    for (;;) {
      at = fieldAt(at + 1);
      const field = fields[at];
      if (field === undefined || (seen & field.bit) !== 0) return null;
      seen |= field.bit;
      const value = field.read(cursor);
      if (value === undefined) return null;
      found[field.name] = value;
      const next = isNext(cursor, CLOSE);
      if (next === null) return null;
      if (!next) break;
    }
    for (const rule of rules) if (rule(found) !== true) return null;
    return found;
  };

  return (bytes) => {
    cursor.bytes = bytes;
    cursor.at = 0;
    if (!skipOver(cursor, head)) return null;
    const frameId = frameIdAt(cursor);
    if (frameId === undefined) return null;
    if (skipOver(cursor, TS)) {
      const length = skipString(cursor);
      if (length < 0 || length > maxTs) return null;
    }
    if (!skipOver(cursor, DATA)) return null;
    const content = readData();
    if (content === null || !take(cursor, CLOSE) || cursor.at !== bytes.length) return null;
    return { op: word, id: frameId, data: content } as z.output<F>;
  };
};
