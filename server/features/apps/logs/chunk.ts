// Reads what an agent sends of a log: NDJSON, first a head, then a line of the log in each line. Whatever is wrong is refused with the line's number.
import { CUT_MARK, LogChunkHead, LogLine, MAX_LINE_BYTES } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";

/** Part of a log, of one `followId`. */
export interface LogChunk extends LogChunkHead {
  readonly lines: readonly LogLine[];
}

const invalid = (number: number, message: string): AppError =>
  new AppError("VALIDATION_FAILED", { details: { line: number, issues: [{ path: `chunk.line ${number}`, code: "custom", message }] } });

const parsed = <T>(schema: { safeParse(value: unknown): { success: true; data: T } | { success: false } }, text: string, number: number): T => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid(number, `line ${number} is not JSON`);
  }
  const result = schema.safeParse(value);
  if (!result.success) throw invalid(number, `line ${number} has not the form of ${number === 1 ? "a head" : "a line of a log"}`);
  return result.data;
};

/** PostgreSQL and browsers refuse what an app may well write: NUL, and halves of characters. */
const clean = (text: string): string => text.replaceAll("\0", "\u{fffd}").toWellFormed();

const short = (text: string): string =>
  Buffer.byteLength(text) <= MAX_LINE_BYTES ? text : `${Buffer.from(text).toString("utf8", 0, MAX_LINE_BYTES)}${CUT_MARK}`;

export const readChunk = (text: string): LogChunk => {
  const [first = "", ...rest] = text.split("\n");
  const head = parsed(LogChunkHead, first, 1);
  const lines = rest.flatMap((line, at) => {
    if (line.trim() === "") return [];
    const read = parsed(LogLine, line, at + 2);
    return [{ ...read, text: short(clean(read.text)) }];
  });
  return { ...head, lines };
};
