// Keeps the end of an output of any length in bounded memory.

const FIRST_BYTES = 16_384;

export interface Tail {
  push(bytes: Uint8Array): void;
  /** The newest bytes as text; what is no UTF-8 is replaced. */
  text(): string;
  /** Its beginning is gone. */
  readonly isCut: boolean;
  /** What it has allocated. */
  readonly heldBytes: number;
}

export const createTail = (maxBytes: number): Tail => {
  let buffer = Buffer.alloc(Math.min(FIRST_BYTES, 2 * maxBytes));
  let used = 0;
  let isCut = false;
  const dropTo = (bytes: number): void => {
    if (used <= bytes) return;
    buffer.copyWithin(0, used - bytes, used);
    used = bytes;
    isCut = true;
  };
  /** Twice the bound, so that the bytes that stay are moved once in a while and not with each chunk. */
  const reserve = (bytes: number): void => {
    if (used + bytes <= buffer.length) return;
    if (used + bytes > 2 * maxBytes) {
      dropTo(Math.max(0, maxBytes - bytes));
      return;
    }
    const larger = Buffer.alloc(Math.min(2 * maxBytes, 2 * (used + bytes)));
    buffer.copy(larger, 0, 0, used);
    buffer = larger;
  };
  return {
    push: (given) => {
      const bytes = given.subarray(Math.max(0, given.length - maxBytes));
      if (bytes.length < given.length) isCut = true;
      reserve(bytes.length);
      buffer.set(bytes, used);
      used += bytes.length;
    },
    text: () => {
      dropTo(maxBytes);
      return buffer.toString("utf8", 0, used);
    },
    get isCut() {
      return isCut || used > maxBytes;
    },
    get heldBytes() {
      return buffer.length;
    },
  };
};
