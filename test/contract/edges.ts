// The edges of a schema: the smallest and the largest values of each field, one field at a time.
import type { z } from "zod";
import { jsonSchemaOf } from "../../server/gateway/rest/rest-input.ts";

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly propertyNames?: Schema;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly format?: string;
}

export interface Edge {
  readonly field: string;
  readonly value: unknown;
}

/** An enumeration that is longer names things, such as types of events. No column knows their list, so some stand for all. */
const LONG_ENUM = 24;
/** For texts without a bound: longer than any index entry of PostgreSQL. */
const UNBOUNDED = 12_000;
/** Beyond these years PostgreSQL and JavaScript disagree about times. */
const TIMES = ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"];
const OFFSET_TIMES = ["0000-01-01T00:00:00+23:59", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-23:59", "2026-01-01T00:00:00.123456789+05:30"];
/** JSON values that a column might not store. */
const ANYTHING: readonly unknown[] = [null, -0, 5e-324, Number.MAX_VALUE, -Number.MAX_VALUE, 2 ** 63, "", "😀'\"\\u0000\n", [], { "": { "😀": [] } }];

const matches = (pattern: string | undefined): ((text: string) => boolean) => {
  const form = pattern === undefined ? null : new RegExp(pattern, "u");
  return (text) => form === null || form.test(text);
};

const textsOf = ({ pattern, format, minLength = 0, maxLength = UNBOUNDED }: Schema): readonly string[] => {
  if (format === "date-time") return [...TIMES, ...OFFSET_TIMES].filter(matches(pattern));
  if (format === "email") return ["a@b.co", `${"a".repeat(64)}@${"b".repeat(60)}.${"c".repeat(60)}.example`].filter((text) => text.length <= maxLength);
  if (format === "uri") return ["https://a.example", `https://a.example/${"p".repeat(Math.min(maxLength, UNBOUNDED) - 18)}`];
  const lengths = [...new Set([minLength, minLength + 1, ...(pattern === undefined ? [maxLength] : Array.from({ length: 300 }, (_, n) => n))])].filter(
    (n) => n <= maxLength,
  );
  // A pattern decides what it takes; otherwise letters differ by their length in UTF-8 alone.
  const letters = pattern === undefined ? ["x", "\u{10ffff}"] : ["x", "7", "A", "~", "é", "\u{10ffff}"];
  const found = letters.flatMap((letter) => {
    const texts = lengths
      .map((length) => letter.repeat(Math.floor(length / letter.length)))
      .filter((text) => text.length >= minLength && matches(pattern)(text));
    return [texts[0], texts.at(-1)];
  });
  return [...new Set(found)].filter((text) => text !== undefined);
};

const numbersOf = ({ type, minimum, maximum }: Schema): readonly number[] =>
  type === "integer"
    ? [minimum ?? Number.MIN_SAFE_INTEGER, maximum ?? Number.MAX_SAFE_INTEGER]
    : [minimum ?? -Number.MAX_VALUE, maximum ?? Number.MAX_VALUE, ...((minimum ?? 0) <= 0 ? [5e-324] : [])];

const mapsOf = ({ propertyNames = {}, additionalProperties }: Schema): readonly unknown[] => {
  const values = typeof additionalProperties === "object" && additionalProperties.type !== undefined ? valuesOf(additionalProperties) : ANYTHING;
  return [{}, ...textsOf(propertyNames).map((key) => ({ [key]: 1 })), Object.fromEntries(values.map((value, n) => [`k${n}`, value]))];
};

/** The smallest valid record, and that record with each field at each edge. */
const recordsOf = ({ properties = {}, required = [] }: Schema): readonly unknown[] => {
  const least = Object.fromEntries(required.map((name) => [name, valuesOf(properties[name] ?? {})[0]]));
  return [least, ...Object.entries(properties).flatMap(([name, property]) => valuesOf(property).map((value) => ({ ...least, [name]: value })))];
};

const listsOf = ({ items = {}, minItems = 0, maxItems = 200 }: Schema): readonly unknown[] => {
  const values = valuesOf(items);
  // All different, because the schema may require unique items.
  const full = Array.from({ length: Math.min(maxItems, 1_000) }, (_, n) => (typeof values[0] === "string" ? `item-number-${n}` : values[0]));
  return [...(minItems === 0 ? [[]] : []), ...values.map((value) => [value]), full];
};

const valuesOf = (schema: Schema): readonly unknown[] => {
  if (schema.const !== undefined) return [schema.const];
  if (schema.enum !== undefined) return schema.enum.length <= LONG_ENUM ? schema.enum : [schema.enum[0], schema.enum.at(-1)];
  const parts = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (parts !== undefined) return parts.flatMap(valuesOf);
  switch (schema.type) {
    case "boolean":
      return [true, false];
    case "null":
      return [null];
    case "integer":
    case "number":
      return numbersOf(schema);
    case "string":
      return textsOf(schema);
    case "array":
      return listsOf(schema);
    case "object":
      return schema.properties === undefined ? mapsOf(schema) : recordsOf(schema);
    default:
      return ANYTHING;
  }
};

/** Each field of an input at each of its edges. */
export const edges = (schema: z.ZodType): readonly Edge[] => {
  const walk = ({ properties = {}, allOf = [] }: Schema): readonly Edge[] => [
    ...Object.entries(properties).flatMap(([field, property]) => valuesOf(property).map((value) => ({ field, value }))),
    ...allOf.flatMap(walk),
  ];
  return walk(jsonSchemaOf(schema, "input") as Schema);
};

/** The numbers of a schema by field name, with their bounds. */
export const boundedNumbers = (schema: z.ZodType): readonly { readonly name: string; readonly values: readonly number[] }[] => {
  const walk = (part: Schema, name: string): { name: string; values: readonly number[] }[] => [
    ...(part.type === "integer" || part.type === "number" ? [{ name, values: numbersOf(part) }] : []),
    ...[...(part.anyOf ?? []), ...(part.oneOf ?? []), ...(part.allOf ?? [])].flatMap((each) => walk(each, name)),
    ...Object.entries(part.properties ?? {}).flatMap(([inner, each]) => walk(each, inner)),
    ...(part.items === undefined ? [] : walk(part.items, name)),
  ];
  return walk(jsonSchemaOf(schema, "input") as Schema, "");
};

export const nameOfEdge = ({ field, value }: Edge): string => `${field} = ${(JSON.stringify(value) ?? "undefined").slice(0, 80)}`;
const isTime = (value: unknown): value is string => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value);

/** Whether the answer contains everything that was sent. Times are stored in milliseconds, and -0 as 0. */
export const contains = (shown: unknown, sent: unknown): boolean => {
  if (isTime(sent) && isTime(shown)) return Math.abs(Date.parse(sent) - Date.parse(shown)) <= 1;
  if (typeof sent !== "object" || sent === null) return shown === sent || (sent === 0 && shown === 0);
  if (typeof shown !== "object" || shown === null) return false;
  return Object.entries(sent).every(([name, value]) => contains((shown as Record<string, unknown>)[name], value));
};
