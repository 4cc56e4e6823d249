// Inflates an upload into lines. A small file can stand for a huge text, so all that it may become has a bound, which is watched while it is inflated.
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { isAppError } from "../../core/errors.ts";
import { invalidDocument } from "./wanted.ts";

const MIB = 1_048_576;
const MAX_BYTES = 1_024 * MIB;
const MAX_LINE_BYTES = MIB;
const MAX_LINES = 1_000_000;
/** Text repeats itself less than this. */
const MAX_RATIO = 100;
const RATIO_WINDOW = MIB;
const PIECE_BYTES = 65_536;
const LINE_FEED = 10;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const textOf = (bytes: Uint8Array, line: number): string => {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidDocument(line, "is not valid UTF-8");
  }
};

/** Cuts a text into lines as its bytes come. */
const createLineCutter = () => {
  let rest: Buffer = Buffer.alloc(0);
  let line = 0;
  const next = (bytes: Uint8Array): string => {
    line += 1;
    if (bytes.length > MAX_LINE_BYTES) throw invalidDocument(line, `is longer than ${MAX_LINE_BYTES} bytes`);
    if (line > MAX_LINES) throw invalidDocument(line, `is one line more than ${MAX_LINES}`);
    return textOf(bytes, line);
  };
  return {
    line: () => line + 1,
    add: (bytes: Buffer): readonly string[] => {
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const lines: string[] = [];
      let from = 0;
      for (let end = all.indexOf(LINE_FEED); end >= 0; end = all.indexOf(LINE_FEED, from)) {
        lines.push(next(all.subarray(from, end)));
        from = end + 1;
      }
      rest = all.subarray(from);
      if (rest.length > MAX_LINE_BYTES) next(rest);
      return lines;
    },
    end: (): readonly string[] => (rest.length === 0 ? [] : [next(rest)]),
  };
};

/** Throws IMPORT_INVALID with the line as soon as the text passes a bound, or ends before its end. */
export const gunzipLines = async function* (parts: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  const cutter = createLineCutter();
  let inflated = 0;
  let window = { packed: 0, inflated: 0 };
  const count = (bytes: number): void => {
    inflated += bytes;
    if (inflated > MAX_BYTES) throw invalidDocument(cutter.line(), `the text is longer than ${MAX_BYTES} bytes`);
    if (inflated - window.inflated < RATIO_WINDOW) return;
    if ((gunzip.bytesWritten - window.packed) * MAX_RATIO < inflated - window.inflated)
      throw invalidDocument(cutter.line(), `the text is more than ${MAX_RATIO} times as long as its file`);
    window = { packed: gunzip.bytesWritten, inflated };
  };
  try {
    for await (const bytes of pipeline(Readable.from(parts), gunzip, () => undefined)) {
      count(bytes.length);
      yield cutter.add(bytes);
    }
  } catch (error) {
    if (isAppError(error) || !String((error as NodeJS.ErrnoException).code).startsWith("Z_")) throw error;
    throw invalidDocument(cutter.line(), "the file is no whole gzip");
  }
  yield cutter.end();
};
