// Reads the lines of a stream that may never end and may hold no line break: in bounded memory, no faster than they are taken, with secrets masked.
import { createMasker } from "../../protocol/kit/masking.ts";
import { CUT_MARK, MAX_LINE_BYTES } from "../../protocol/records/apps/app-log.ts";

/** The longest time and container before the text of a line. */
const MAX_PREFIX_BYTES = 1_024;
const LINE_BREAK = 0x0a;
const RETURN = 0x0d;

export interface LineReader {
  /** The lines that these bytes complete. Of a line that is too long, its beginning at once; the rest is dropped. */
  push(bytes: Uint8Array): string[];
  /** What is left at the end of the stream. */
  end(): string[];
  readonly heldBytes: number;
}

export interface LineOptions {
  /** The longest line; default: what the gateway takes. */
  readonly maxBytes?: number;
  readonly secrets?: readonly string[];
}

export const createLineReader = ({ maxBytes = MAX_LINE_BYTES + MAX_PREFIX_BYTES, secrets = [] }: LineOptions = {}): LineReader => {
  const masker = createMasker(secrets);
  const held = Buffer.alloc(maxBytes);
  let used = 0;
  let dropping = false;
  const taken = (): string => {
    const size = held[used - 1] === RETURN ? used - 1 : used;
    used = 0;
    // What is no UTF-8 is replaced.
    return held.toString("utf8", 0, size);
  };
  const take = (): string => masker.mask(taken());
  /** A secret may lie across the cut, and so may a character. */
  const takeCut = (): string => masker.maskCut(taken().replace(/\ufffd$/, "")) + CUT_MARK;
  /** Returns the line if it is too long. */
  const keep = (bytes: Uint8Array): string[] => {
    if (dropping) return [];
    const space = held.length - used;
    held.set(bytes.subarray(0, space), used);
    used += Math.min(space, bytes.length);
    dropping = bytes.length > space;
    return dropping ? [takeCut()] : [];
  };
  return {
    push: (bytes) => {
      const lines: string[] = [];
      let from = 0;
      for (let at = bytes.indexOf(LINE_BREAK); at >= 0; at = bytes.indexOf(LINE_BREAK, from)) {
        lines.push(...keep(bytes.subarray(from, at)));
        if (!dropping) lines.push(take());
        dropping = false;
        from = at + 1;
      }
      lines.push(...keep(bytes.subarray(from)));
      return lines;
    },
    end: () => (used > 0 && !dropping ? [take()] : []),
    get heldBytes() {
      return held.length;
    },
  };
};

/** Ends with the stream, also with one that is destroyed. A program without the pipe says nothing. */
export async function* linesOf(source: AsyncIterable<Uint8Array> | null, options?: LineOptions): AsyncGenerator<string, void> {
  const reader = createLineReader(options);
  try {
    for await (const bytes of source ?? []) yield* reader.push(bytes);
  } catch (error) {
    // Ending a program closes its output.
    if (!(error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE")) throw error;
  }
  yield* reader.end();
}
