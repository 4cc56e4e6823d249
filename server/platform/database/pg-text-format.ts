// Encodes and decodes PostgreSQL's text format. The driver can do this too, but too slowly for statements over many rows.
import pg from "pg";

/** An array element that needs no quotes: no separator, brace, quote, backslash or space. Four letters may be the word NULL. */
const PLAIN = /^[\w.:+-]+$/;

const quoted = (text: string): string => {
  if (PLAIN.test(text) && text.length !== 4) return text;
  return `"${text.includes("\\") || text.includes('"') ? text.replace(/["\\]/g, "\\$&") : text}"`;
};

const element = (item: unknown): string => {
  if (item === null || item === undefined) return "NULL";
  if (typeof item === "string") return quoted(item);
  if (Buffer.isBuffer(item)) return `"\\\\x${item.toString("hex")}"`;
  if (item instanceof Date) return quoted(item.toISOString());
  if (Array.isArray(item)) return arrayText(item);
  if (typeof item === "number" || typeof item === "boolean" || typeof item === "bigint") return String(item);
  throw new TypeError(`a PostgreSQL array cannot hold a ${typeof item}; pass JSON as text`);
};

/** A PostgreSQL array of strings, numbers, booleans, buffers, dates, nulls or arrays of them. */
export const arrayText = (items: readonly unknown[]): string => `{${items.map(element).join(",")}}`;

const digit = (text: string, at: number): number => text.charCodeAt(at) - 48;
const pair = (text: string, at: number): number => digit(text, at) * 10 + digit(text, at + 1);
/** How PostgreSQL writes a timestamptz(3) in a UTC session: it drops trailing zeros of the fraction. */
const UTC_TIMESTAMP = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,3})?\+00$/;

/** Milliseconds since 1970; null for any other text. */
export const readTimestamp = (text: string): number | null => {
  if (!UTC_TIMESTAMP.test(text)) return null;
  let ms = 0;
  for (let at = 20, unit = 100; at < text.length - 3; at += 1, unit /= 10) ms += digit(text, at) * unit;
  return Date.UTC(pair(text, 0) * 100 + pair(text, 2), pair(text, 5) - 1, pair(text, 8), pair(text, 11), pair(text, 14), pair(text, 17), ms);
};

const INT8 = 20;
const INT8_ARRAY = 1016;
const TIMESTAMPTZ = 1184;

// Sequence numbers, epochs and positions count events of one installation and never reach 2^53; JSON has no larger integers.
const toNumber = (text: string): number => {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`int8 ${text} does not fit a number`);
  return number;
};

// Passed with each statement and not set globally, because Prisma's adapter relies on pg's own parsers.
export const RAW_TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") => {
    if (oid === INT8) return toNumber;
    const parse = pg.types.getTypeParser(oid, format ?? "text");
    if (oid === TIMESTAMPTZ)
      return (text: string) => {
        const instant = readTimestamp(text);
        return instant === null ? parse(text) : new Date(instant);
      };
    return oid === INT8_ARRAY ? (text: string) => parse(text).map((part: string | null) => (part === null ? null : toNumber(part))) : parse;
  },
};
