// How values travel to and from PostgreSQL as text. The driver can do it too, piece by piece; statements over many rows come too often for that.
import pg from "pg";

/** Without quotes in an array: no separator, brace, quote, backslash or blank in it, and not the word NULL. */
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
  throw new TypeError(`a ${typeof item} has no place in an array of PostgreSQL; JSON goes as text`);
};

/** A PostgreSQL array of strings, numbers, booleans, buffers, dates, nulls or arrays of them. */
export const arrayText = (items: readonly unknown[]): string => `{${items.map(element).join(",")}}`;

const digit = (text: string, at: number): number => text.charCodeAt(at) - 48;
const pair = (text: string, at: number): number => digit(text, at) * 10 + digit(text, at + 1);
/** As PostgreSQL writes a timestamptz(3) to a session in UTC: the fraction without the zeros at its end. */
const UTC_TIMESTAMP = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,3})?\+00$/;

/** Milliseconds since 1970 of such a text; null for any other. */
export const readTimestamp = (text: string): number | null => {
  if (!UTC_TIMESTAMP.test(text)) return null;
  let ms = 0;
  for (let at = 20, unit = 100; at < text.length - 3; at += 1, unit /= 10) ms += digit(text, at) * unit;
  return Date.UTC(pair(text, 0) * 100 + pair(text, 2), pair(text, 5) - 1, pair(text, 8), pair(text, 11), pair(text, 14), pair(text, 17), ms);
};

const INT8 = 20;
const INT8_ARRAY = 1016;
const TIMESTAMPTZ = 1184;

// Sequence numbers, epochs and positions count events of one installation; 2^53 of them is out of reach, and numbers are what JSON can say.
const toNumber = (text: string): number => {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`int8 ${text} does not fit a number`);
  return number;
};

// Given with each statement and not set for the process, because Prisma's adapter stands on pg's own parsers.
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
