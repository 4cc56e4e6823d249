// Checks a heartbeat frame on its bytes, for a tenth of what JSON.parse and zod cost, and allocates nothing.
// The readers are derived from the JSON Schema that zod prints. A keyword that they do not know leaves the field without a reader, and a frame with
// such a field, or one that is spaced or escaped, to zod: `false` means "ask the schema", never "invalid".
// A JSON Schema shows no refinements. Those of a heartbeat ask which fields are present, so zod judges the first frame with each set of fields and its
// verdict counts for all others; test/channel/frames/scan.test.ts compares both over every field.
import { z } from "zod";
import { bitsOf, type Field, field, newFound, skipFields } from "./scan-fields.ts";
import { type Cursor, type Skip, skipList, skipNumber, skipNumbers, skipQuotedNumber, skipString, skipTime, skipWord } from "./scan-values.ts";

type JsonSchema = z.core.JSONSchema.JSONSchema;
const MAX = Number.MAX_SAFE_INTEGER;
const MAX_SMALL = 2 ** 31 - 1;
/** The scanner leaves a frame with more metrics to zod. */
const MAX_METRICS = 64;
/** `type` picks the reader; the others do not constrain a value. */
const HARMLESS: readonly string[] = ["type", "title", "description", "examples", "deprecated"];
/** Accepts every time that `toISOString` writes. */
const TIME_PATTERN = z.toJSONSchema(z.iso.datetime({ offset: true })).pattern;
const UNESCAPED = /^[ !#-[\]-~]*$/;

const hasOnly = (schema: JsonSchema, ...keywords: readonly string[]): boolean =>
  Object.keys(schema).every((keyword) => HARMLESS.includes(keyword) || keywords.includes(keyword));

const objectOf = (schema: unknown): JsonSchema | null =>
  typeof schema === "object" && schema !== null && !Array.isArray(schema) ? (schema as JsonSchema) : null;

const wordReader = (words: readonly unknown[]): Skip | null => {
  const plain = words.filter((word) => typeof word === "string").filter((word) => UNESCAPED.test(word));
  return plain.length === words.length ? skipWord(plain) : null;
};

const stringReader = (schema: JsonSchema): Skip | null => {
  if (hasOnly(schema, "const") && schema.const !== undefined) return wordReader([schema.const]);
  if (hasOnly(schema, "enum") && schema.enum !== undefined) return wordReader(schema.enum);
  if (hasOnly(schema, "format", "pattern") && schema.pattern === TIME_PATTERN) return skipTime;
  return hasOnly(schema, "minLength", "maxLength") ? skipString(schema.minLength ?? 0, schema.maxLength ?? MAX) : null;
};

const listReader = (schema: JsonSchema): Skip | null => {
  const item = hasOnly(schema, "items", "maxItems") ? readerOf(schema.items) : null;
  return item === null ? null : skipList(item, schema.maxItems ?? MAX);
};

const recordReader = (schema: JsonSchema): Skip | null => {
  const [names, values] = [objectOf(schema.propertyNames), objectOf(schema.additionalProperties)];
  if (!hasOnly(schema, "propertyNames", "additionalProperties") || names === null || values === null) return null;
  const isOpen = Object.keys(values).length === 0 && hasOnly(names, "maxLength");
  return isOpen ? skipNumbers(names.maxLength ?? MAX, MAX_METRICS) : null;
};

/** Null when zod has to read such a value. */
const readerOf = (value: unknown): Skip | null => {
  const schema = objectOf(value);
  switch (schema?.type) {
    case "string":
      return stringReader(schema);
    case "number":
      return hasOnly(schema, "minimum", "maximum") ? skipNumber(schema.minimum ?? -Infinity, schema.maximum ?? Infinity) : null;
    case "array":
      return listReader(schema);
    case "object":
      return recordReader(schema);
    default:
      return null;
  }
};

/** V8 keeps small whole numbers without an allocation, but not those that come out of a list of doubles. */
const whole = (value: number): number => (value <= MAX_SMALL ? value | 0 : value);

export interface Scanner {
  /** True for a plain frame that the schema accepts; the other methods then describe it, until the next call. */
  scan(bytes: Uint8Array): boolean;
  /** The number in its id. */
  frame(): number;
  /** The fields of its data, to compare with `bits`. */
  fields(): number;
  /** The value of a numeric field that is present. */
  value(name: string): number;
  /** The bits of the fields with these names. */
  bits(...names: readonly string[]): number;
}

/** For numbered frames without spaces; their fields and those of `data` may come in any order. */
export const createScanner = (schema: z.ZodType): Scanner => {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { unrepresentable: "any" });
  const fields = Object.entries(objectOf(properties["data"])?.properties ?? {}).flatMap(([name, inner]) => field(name, readerOf(inner)));
  const content = newFound(fields);
  const envelope: readonly Field[] = Object.entries(properties).flatMap(([name, inner]) =>
    field(name, name === "id" ? skipQuotedNumber : name === "data" ? skipFields(fields, content) : readerOf(inner)),
  );
  const outer = newFound(envelope);
  const needed = bitsOf(envelope, required);
  const idAt = envelope.findIndex(({ name }) => name === "id");
  const skipFrame = skipFields(envelope, outer);
  const cursor: Cursor = { bytes: new Uint8Array(), at: 0, value: 0 };
  /** What zod says of a frame with these fields. */
  const verdicts = new Map<number, boolean>();

  const obeysRules = (bits: number, bytes: Uint8Array): boolean => {
    const known = verdicts.get(bits);
    if (known !== undefined) return known;
    const verdict = schema.safeParse(JSON.parse(Buffer.from(bytes).toString("latin1"))).success;
    verdicts.set(bits, verdict);
    return verdict;
  };

  return {
    scan: (bytes) => {
      cursor.bytes = bytes;
      cursor.at = 0;
      return skipFrame(cursor) && cursor.at === bytes.length && (outer.fields & needed) === needed && obeysRules(content.fields, bytes);
    },
    frame: () => whole(outer.values[idAt] ?? 0),
    fields: () => content.fields,
    value: (name) => content.values[fields.findIndex((known) => known.name === name)] ?? 0,
    bits: (...names) => bitsOf(fields, names),
  };
};
