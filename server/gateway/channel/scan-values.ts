// Skips over plain JSON values in bytes: unescaped ASCII strings, numbers that a double holds exactly, and lists and records of them.
// A value that is not plain may still be valid: the caller then asks JSON.parse. Short loops over bytes beat calls into native code here.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const POINT = 0x2e;
const UNDERSCORE = 0x5f;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
/** A double holds this many digits exactly, so one division rounds as JSON.parse does. */
const MAX_DIGITS = 15;
const POWERS = Float64Array.from({ length: MAX_DIGITS + 1 }, (_, power) => 10 ** power);

/** The position in the frame that is being read. */
export interface Cursor {
  bytes: Uint8Array;
  at: number;
  /** The last number that was skipped. */
  value: number;
}
/** Moves the cursor over a plain and valid value. After false the cursor may stand anywhere. */
export type Skip = (cursor: Cursor) => boolean;

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

/** Moves the cursor behind the plain string that starts at it and returns its length; -1 when it is not plain. */
const plainLength = (cursor: Cursor): number => {
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

export const skipString =
  (min: number, max: number): Skip =>
  (cursor) => {
    const length = plainLength(cursor);
    return length >= min && length <= max;
  };

/** The digits at the cursor as a number; 0 when there are none. */
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

/** The number of a frame: a whole number above zero, in quotes. */
export const skipQuotedNumber: Skip = (cursor) => {
  if (!take(cursor, QUOTE) || cursor.bytes[cursor.at] === ZERO) return false;
  const start = cursor.at;
  cursor.value = digits(cursor);
  const length = cursor.at - start;
  return length > 0 && length <= MAX_DIGITS && take(cursor, QUOTE);
};

export const skipNumber =
  (min: number, max: number): Skip =>
  (cursor) => {
    const negative = take(cursor, MINUS);
    const start = cursor.at;
    const leadingZero = cursor.bytes[start] === ZERO;
    let value = digits(cursor);
    const whole = cursor.at - start;
    if (whole === 0 || (leadingZero && whole > 1) || whole > MAX_DIGITS) return false;
    if (take(cursor, POINT)) {
      const from = cursor.at;
      const fraction = digits(cursor);
      const places = cursor.at - from;
      if (places === 0 || whole + places > MAX_DIGITS) return false;
      const power = POWERS[places] as number; // as: places are at most MAX_DIGITS
      value = (value * power + fraction) / power;
    }
    cursor.value = negative ? -value : value;
    // An exponent fails in the caller: no `e` may follow a value.
    return cursor.value >= min && cursor.value <= max;
  };

export const skipWord = (words: readonly string[]): Skip => {
  const quoted = words.map((word) => bytesOf(`"${word}"`));
  return (cursor) => {
    for (const word of quoted) if (skipOver(cursor, word)) return true;
    return false;
  };
};

/** After an item: true when another follows, false at the end, null when it is neither. */
export const isNext = (cursor: Cursor, end: number): boolean | null => (take(cursor, COMMA) ? true : take(cursor, end) ? false : null);

export const skipList =
  (item: Skip, max: number): Skip =>
  (cursor) => {
    if (!take(cursor, OPEN_LIST)) return false;
    if (take(cursor, CLOSE_LIST)) return true;
    for (let count = 0; count < max && item(cursor); count += 1) {
      const next = isNext(cursor, CLOSE_LIST);
      if (next !== true) return next === false;
    }
    return false;
  };

/** A record of numbers, which is what most agents send as metrics. */
export const skipNumbers = (maxKey: number, maxKeys: number): Skip => {
  const number = skipNumber(-Infinity, Infinity);
  return (cursor) => {
    if (!take(cursor, OPEN)) return false;
    if (take(cursor, CLOSE)) return true;
    for (let count = 0; count < maxKeys; count += 1) {
      // Zod drops `__proto__`, so it checks every record that has a key with a leading underscore.
      if (cursor.bytes[cursor.at + 1] === UNDERSCORE) return false;
      const length = plainLength(cursor);
      if (length < 0 || length > maxKey || !take(cursor, COLON) || !number(cursor)) return false;
      const next = isNext(cursor, CLOSE);
      if (next !== true) return next === false;
    }
    return false;
  };
};

const TEXT_OF_TIME = bytesOf('"0000-00-00T00:00:00.000Z"');
/** Zod checks 29 February. */
const DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** A time as `toISOString` writes it; zod checks all other forms. */
export const skipTime: Skip = (cursor) => {
  const { bytes, at: start } = cursor;
  for (let offset = 0; offset < TEXT_OF_TIME.length; offset += 1) {
    const byte = bytes[start + offset];
    const form = TEXT_OF_TIME[offset];
    if (byte === undefined || (form === ZERO ? byte < ZERO || byte > NINE : byte !== form)) return false;
  }
  cursor.at = start + TEXT_OF_TIME.length;
  const two = (offset: number): number => ((bytes[start + offset] ?? 0) - ZERO) * 10 + (bytes[start + offset + 1] ?? 0) - ZERO;
  const day = two(9);
  return day > 0 && day <= (DAYS[two(6)] ?? 0) && two(12) < 24 && two(15) < 60 && two(18) < 60;
};
