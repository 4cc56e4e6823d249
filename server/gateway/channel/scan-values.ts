// Reads plain JSON values from bytes: strings of simple characters, numbers that fit a double exactly, lists and records of them.
// What is not plain is not wrong; whoever reads here asks JSON.parse then. Loops over bytes, since each call out of the engine's own code costs more than a short loop.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN = 0x7b;
export const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
/** So many digits fit a double exactly, so that one division rounds as JSON.parse does. */
const MAX_DIGITS = 15;
const POWERS = Float64Array.from({ length: MAX_DIGITS + 1 }, (_, power) => 10 ** power);
const MAX_METRICS = 64;

/** What is read, and where; one frame at a time. */
export interface Cursor {
  bytes: Uint8Array;
  at: number;
}
/** The value at the cursor, which then stands behind it; undefined when this is for the schema. */
export type Read = (cursor: Cursor) => unknown;

const ascii = new TextDecoder("latin1");
export const bytesOf = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

export const take = (cursor: Cursor, byte: number): boolean => {
  if (cursor.bytes[cursor.at] !== byte) return false;
  cursor.at += 1;
  return true;
};

export const skipOver = (cursor: Cursor, text: Uint8Array): boolean => {
  const { bytes, at } = cursor;
  for (let offset = 0; offset < text.length; offset += 1) if (bytes[at + offset] !== text[offset]) return false;
  cursor.at = at + text.length;
  return true;
};

/** Length of the plain string at the cursor, which then stands behind its closing quote; -1 when it is not plain. */
export const skipString = (cursor: Cursor): number => {
  const { bytes } = cursor;
  const start = cursor.at + 1;
  if (bytes[start - 1] !== QUOTE) return -1;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] as number; // as: within the length
    if (byte === QUOTE) {
      cursor.at = at + 1;
      return at - start;
    }
    if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return -1;
  }
  return -1;
};

/** What was read here the last time is looked for first: names repeat from frame to frame, and making a string is what costs. */
export const readString = (min: number, max: number): Read => {
  let last = "";
  let lastBytes = new Uint8Array();
  return (cursor) => {
    const start = cursor.at + 1;
    const length = skipString(cursor);
    if (length < min || length > max) return undefined;
    if (length === lastBytes.length) {
      const end = cursor.at;
      cursor.at = start;
      const same = skipOver(cursor, lastBytes);
      cursor.at = end;
      if (same) return last;
    }
    lastBytes = cursor.bytes.slice(start, start + length);
    last = ascii.decode(lastBytes);
    return last;
  };
};

/** A string that mostly is a number: `"17"`, whose text the engine has at hand. */
export const readId = (min: number, max: number): Read => {
  const other = readString(min, max);
  return (cursor) => {
    const start = cursor.at;
    if (!take(cursor, QUOTE) || cursor.bytes[cursor.at] === ZERO) {
      cursor.at = start;
      return other(cursor);
    }
    const value = digits(cursor);
    const length = cursor.at - start - 1;
    if (length >= Math.max(1, min) && length <= Math.min(max, MAX_DIGITS) && take(cursor, QUOTE)) return String(value);
    cursor.at = start;
    return other(cursor);
  };
};

const digits = (cursor: Cursor): number => {
  const { bytes } = cursor;
  let { at } = cursor;
  let value = 0;
  for (; at < bytes.length; at += 1) {
    const byte = bytes[at] as number; // as: within the length
    if (byte < ZERO || byte > NINE) break;
    value = value * 10 + (byte - ZERO);
  }
  cursor.at = at;
  return value;
};

export const readNumber =
  (min: number, max: number): Read =>
  (cursor) => {
    const negative = take(cursor, MINUS);
    const start = cursor.at;
    const leadingZero = cursor.bytes[start] === ZERO;
    let value = digits(cursor);
    const whole = cursor.at - start;
    if (whole === 0 || (leadingZero && whole > 1) || whole > MAX_DIGITS) return undefined;
    if (take(cursor, POINT)) {
      const from = cursor.at;
      const fraction = digits(cursor);
      const places = cursor.at - from;
      if (places === 0 || whole + places > MAX_DIGITS) return undefined;
      const power = POWERS[places] as number; // as: places are at most MAX_DIGITS
      value = (value * power + fraction) / power;
    }
    if (negative) value = -value;
    // An exponent is not taken: what follows it is not what may follow a number.
    return value >= min && value <= max ? value : undefined;
  };

export const readWord = (words: readonly string[]): Read => {
  const known = words.map((word) => ({ quoted: bytesOf(`"${word}"`), word }));
  return (cursor) => {
    for (const { quoted, word } of known) if (skipOver(cursor, quoted)) return word;
    return undefined;
  };
};

/** After an item: true when another follows, false at the end, null when it is neither. */
export const isNext = (cursor: Cursor, end: number): boolean | null => (take(cursor, COMMA) ? true : take(cursor, end) ? false : null);

export const readList =
  (item: Read, max: number): Read =>
  (cursor) => {
    if (!take(cursor, OPEN_LIST)) return undefined;
    const list: unknown[] = [];
    if (take(cursor, CLOSE_LIST)) return list;
    while (list.length < max) {
      const value = item(cursor);
      if (value === undefined) return undefined;
      list.push(value);
      const next = isNext(cursor, CLOSE_LIST);
      if (next !== true) return next === null ? undefined : list;
    }
    return undefined;
  };

/** A record of plain numbers, which is what metrics mostly are. */
export const readNumbers = (maxKey: number): Read => {
  // One reader for each place, so that each remembers the name that mostly stands there.
  const keys = Array.from({ length: MAX_METRICS }, () => readString(0, maxKey));
  const number = readNumber(-Infinity, Infinity);
  return (cursor) => {
    if (!take(cursor, OPEN)) return undefined;
    const record: Record<string, unknown> = {};
    if (take(cursor, CLOSE)) return record;
    for (const key of keys) {
      const name = key(cursor) as string | undefined; // as: a reader of strings
      // Twice, or a name that every object has.
      if (name === undefined || name in record || !take(cursor, COLON)) return undefined;
      const value = number(cursor);
      if (value === undefined) return undefined;
      record[name] = value;
      const next = isNext(cursor, CLOSE);
      if (next !== true) return next === null ? undefined : record;
    }
    return undefined;
  };
};
