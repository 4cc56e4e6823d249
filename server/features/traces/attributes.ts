// Attributes as exporters send them, in a bounded form: few, short, and without what PostgreSQL cannot store.
import type { Attributes, AttributeValue } from "./span.ts";

const MAX_NAME = 128;
const MAX_TEXT = 1_024;
const MAX_ITEMS = 32;
const MAX_DEPTH = 4;

export interface AttributeBounds {
  readonly count: number;
  /** The length of all names and values together, as JSON. */
  readonly characters: number;
}
export const SPAN_BOUNDS: AttributeBounds = { count: 64, characters: 32_768 };
/** Each span keeps a copy of its resource. */
export const RESOURCE_BOUNDS: AttributeBounds = { count: 32, characters: 2_048 };
export const EVENT_BOUNDS: AttributeBounds = { count: 16, characters: 8_192 };

export type OtlpFields = Readonly<Record<string, unknown>>;
export const asObject = (value: unknown): OtlpFields => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as OtlpFields) : {});
export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Text that PostgreSQL stores, cut to so many characters. */
export const cleanText = (value: unknown, max = MAX_TEXT): string =>
  typeof value === "string" ? value.slice(0, max).replaceAll("\u0000", "\ufffd").toWellFormed() : "";

/** Within 2^53 a number, beyond it text. */
const whole = (value: unknown): AttributeValue => {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "string" || !/^-?\d{1,20}$/.test(value)) return null;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
};

const float = (value: unknown): AttributeValue => {
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  return value === "NaN" || value === "Infinity" || value === "-Infinity" ? value : null;
};

const readValue = (given: unknown, depth: number): AttributeValue => {
  const value = asObject(given);
  if (depth >= MAX_DEPTH) return null;
  if (typeof value["stringValue"] === "string") return cleanText(value["stringValue"]);
  if (typeof value["boolValue"] === "boolean") return value["boolValue"];
  if (value["intValue"] != null) return whole(value["intValue"]);
  if (value["doubleValue"] != null) return float(value["doubleValue"]);
  if (typeof value["bytesValue"] === "string") return cleanText(value["bytesValue"]);
  const items = asList(asObject(value["arrayValue"])["values"]).slice(0, MAX_ITEMS);
  if (value["arrayValue"] != null) return items.map((item) => readValue(item, depth + 1));
  const pairs = asList(asObject(value["kvlistValue"])["values"]).slice(0, MAX_ITEMS);
  return value["kvlistValue"] == null ? null : pairs.map((pair) => [nameOf(pair), readValue(asObject(pair)["value"], depth + 1)]);
};
const nameOf = (pair: unknown): string => cleanText(asObject(pair)["key"], MAX_NAME);

/** The first of each name; those beyond the bounds are left out. */
export const readAttributes = (given: unknown, { count, characters }: AttributeBounds): Attributes => {
  const read = new Map<string, AttributeValue>();
  let left = characters;
  for (const pair of asList(given).slice(0, count)) {
    const [name, value] = [nameOf(pair), readValue(asObject(pair)["value"], 0)];
    // Libraries that copy an object drop this name, or worse.
    if (name === "" || name === "__proto__" || read.has(name)) continue;
    left -= name.length + JSON.stringify(value).length;
    if (left < 0) break;
    read.set(name, value);
  }
  return Object.fromEntries(read);
};
