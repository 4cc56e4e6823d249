// Judges the frequent frame straight by its bytes, at a fraction of the cost of JSON.parse and the schema, and without making anything.
// The readers come from the schema itself, and whatever they do not know, odd spacing or a field of another kind, is left to it:
// false means "ask the schema", never "bad". test/channel/scan.test.ts holds both to the same answers.
import type { z } from "zod";
import { bitsOf, type Field, field, newFound, skipFields } from "./scan-fields.ts";
import { type Cursor, type Skip, skipList, skipNumber, skipNumbers, skipQuotedNumber, skipString, skipTime, skipWord } from "./scan-values.ts";

// biome-ignore lint/suspicious/noExplicitAny: zod's own description of a schema
type Def = any;
const MAX = Number.MAX_SAFE_INTEGER;
const MAX_SMALL = 2 ** 31 - 1;
/** Of plain numbers; what has more of them is for the schema. */
const MAX_METRICS = 64;

/** Whether no checks stand on it but these. */
const hasOnly = ({ def }: Def, ...known: readonly string[]): boolean => (def.checks ?? []).every((check: Def) => known.includes(check._zod.def.check));
const isInclusive = ({ def }: Def): boolean => (def.checks ?? []).every((check: Def) => check._zod.def.inclusive === true);

const stringReader = (schema: Def): Skip | null => {
  const { format, precision } = schema.def;
  if (format === "datetime") return hasOnly(schema) && typeof precision !== "number" ? skipTime : null;
  return format === undefined && hasOnly(schema, "min_length", "max_length") ? skipString(schema.minLength ?? 0, schema.maxLength ?? MAX) : null;
};

const listReader = (schema: Def): Skip | null => {
  const item = hasOnly(schema, "max_length") ? readerOf(schema.def.element) : null;
  return item === null ? null : skipList(item, schema.def.checks?.[0]?._zod.def.maximum ?? MAX);
};

const recordReader = (schema: Def): Skip | null => {
  const { keyType, valueType } = schema.def;
  const isPlain = hasOnly(schema) && valueType.def.type === "unknown" && keyType.def.format === undefined && hasOnly(keyType, "max_length");
  return isPlain ? skipNumbers(keyType.maxLength ?? MAX, MAX_METRICS) : null;
};

/** Null for kinds that are left to the schema. Only checks that are read here may stand on a field. */
const readerOf = (schema: Def): Skip | null => {
  switch (schema.def.type) {
    case "optional":
      return readerOf(schema.def.innerType);
    case "string":
      return stringReader(schema);
    case "number":
      return hasOnly(schema, "greater_than", "less_than") && isInclusive(schema) ? skipNumber(schema.minValue ?? -Infinity, schema.maxValue ?? Infinity) : null;
    case "enum":
      return skipWord(Object.values(schema.def.entries));
    case "array":
      return listReader(schema);
    case "record":
      return recordReader(schema);
    default:
      return null;
  }
};

/** Whatever a field holds, the rules of the schema ask only which of them are there; a plain record has few enough keys by itself. */
const standIns = (fields: readonly Field[], bits: number): Record<string, unknown> =>
  Object.fromEntries(fields.flatMap(({ name }, index) => ((bits & (1 << index)) === 0 ? [] : [[name, {}]])));

/** A small whole number as the engine keeps those that need no memory of their own; one from a list of doubles is kept as a double otherwise. */
const whole = (value: number): number => (value <= MAX_SMALL ? value | 0 : value);

export interface Scanner {
  /** True for a plain frame that the schema takes; the rest then tells about it, until the next. */
  scan(bytes: Uint8Array): boolean;
  /** Its number. */
  frame(): number;
  /** The fields of its data, to be compared with `bits`. */
  fields(): number;
  /** Of a field that is there and is a number. */
  value(name: string): number;
  /** Those of the fields that bear these names. */
  bits(...names: readonly string[]): number;
}

/**
 * For frames that are numbered, without spaces, their fields and those of `data` in any order. The schema's data must be an object of
 * optional fields; its refinements are asked too, once for each set of fields.
 */
export const createScanner = (schema: z.ZodObject): Scanner => {
  const { op, ts, ref, data } = schema.shape as Def;
  const fields = Object.entries(data.shape).flatMap(([name, inner]) => field(name, readerOf(inner)));
  const rules: readonly ((value: unknown) => unknown)[] = (data.def.checks ?? []).map((check: Def) => check._zod.def.fn);
  const verdicts = new Map<number, boolean>();
  const content = newFound(fields);
  const envelope = [
    ...field("op", skipWord(op.def.values)),
    ...field("id", skipQuotedNumber),
    ...field("ts", readerOf(ts)),
    ...field("data", skipFields(fields, content)),
    ...field("ref", readerOf(ref)),
  ];
  const outer = newFound(envelope);
  const needed = bitsOf(envelope, ["op", "id", "data"]);
  const idAt = envelope.findIndex(({ name }) => name === "id");
  const skipFrame = skipFields(envelope, outer);
  const cursor: Cursor = { bytes: new Uint8Array(), at: 0, value: 0 };

  const obeysRules = (bits: number): boolean => {
    const known = verdicts.get(bits);
    if (known !== undefined) return known;
    const verdict = rules.every((rule) => rule(standIns(fields, bits)) === true);
    verdicts.set(bits, verdict);
    return verdict;
  };

  return {
    scan: (bytes) => {
      cursor.bytes = bytes;
      cursor.at = 0;
      return skipFrame(cursor) && cursor.at === bytes.length && (outer.fields & needed) === needed && obeysRules(content.fields);
    },
    frame: () => whole(outer.values[idAt] ?? 0),
    fields: () => content.fields,
    value: (name) => content.values[fields.findIndex((known) => known.name === name)] ?? 0,
    bits: (...names) => bitsOf(fields, names),
  };
};
