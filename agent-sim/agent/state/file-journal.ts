// The journal on disk: one JSON line per record, appended and synced before it counts. A torn last line counts as never written.
import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { ACK_STATUSES, Ack } from "../../../protocol/index.ts";
import { Delivered } from "../frames.ts";
import { CannotWrite, createJournal, type Journal, type JournalEntry, type JournalRecord } from "./journal.ts";

/** The file is rewritten when it exceeds six lines per known command by this many lines. */
const SLACK_LINES = 3_000;

const Line: z.ZodType<JournalRecord> = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("begin"), id: z.string(), requiresAck: z.boolean(), again: Delivered.optional() }),
  z.object({ kind: z.literal("end"), id: z.string(), result: Ack.extend({ status: z.enum(ACK_STATUSES) }) }),
  z.object({ kind: z.literal("ok"), id: z.string(), atMs: z.number() }),
]);

const parse = (line: string): JournalRecord | null => {
  try {
    return Line.safeParse(JSON.parse(line)).data ?? null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
};

interface Replay {
  readonly records: readonly JournalRecord[];
  /** Length of the whole records; the rest of the file is cut off. */
  readonly goodBytes: number;
}

/** If a damaged line still shows its command's id, the command counts as begun and never runs again. */
const salvage = (line: string): JournalRecord | null => {
  const id = /"id":"([^"\\\0]+)"/.exec(line)?.[1];
  return id === undefined ? null : { kind: "begin", id, requiresAck: true };
};

/** Drops a torn last line. Damage before the end is a disk fault: report it, skip the line, use the rest. */
const readPast = (bytes: Buffer, onDamage: (line: number) => void): Replay => {
  const records: JournalRecord[] = [];
  for (let start = 0, line = 1; start < bytes.length; line += 1) {
    const end = bytes.indexOf(0x0a, start);
    const text = bytes.toString("utf8", start, end < 0 ? bytes.length : end);
    const record = end < 0 ? null : parse(text);
    if (record === null && (end < 0 || end === bytes.length - 1)) return { records, goodBytes: start };
    if (record === null) onDamage(line);
    const usable = record ?? salvage(text);
    if (usable !== null) records.push(usable);
    start = end + 1;
  }
  return { records, goodBytes: bytes.length };
};

const recordsOf = ({ commandId, requiresAck, result, status, settledAtMs, again }: JournalEntry): readonly JournalRecord[] => [
  { kind: "begin", id: commandId, requiresAck, again: again ?? undefined },
  ...(result ? [{ kind: "end", id: commandId, result: { ...result, status } } as const] : []),
  ...(settledAtMs === null ? [] : [{ kind: "ok", id: commandId, atMs: settledAtMs } as const]),
];
const line = (record: JournalRecord): string => `${JSON.stringify(record)}\n`;

/** The calls that fail on a full disk; tests replace them. */
export const DISK = { write: writeSync as (file: number, bytes: Buffer, at: number) => number, sync: fdatasyncSync };

export interface JournalFileOptions {
  readonly disk?: typeof DISK;
  readonly warn?: (text: string) => void;
}

const writeAll = (disk: typeof DISK, file: number, text: string): number => {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += disk.write(file, bytes, at);
  return bytes.length;
};
const isDiskError = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && "code" in error && "syscall" in error;
/** A new file name is durable only once its folder is synced. */
const syncFolder = (path: string): void => {
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
};

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** Opens or creates the journal. The caller holds the lock of `state-lock.ts`, so that only one process uses it. */
export const openFileJournal = (path: string, wallMs: () => number, { disk = DISK, warn = say }: JournalFileOptions = {}): Journal => {
  let file = openSync(path, "a+", 0o600);
  const past = readPast(readFileSync(path), (line) => warn(`line ${line} of the journal ${path} is damaged and was skipped`));
  ftruncateSync(file, past.goodBytes);
  let bytes = past.goodBytes;
  syncFolder(path);
  let lines = past.records.length;

  const rewrite = (entries: readonly JournalEntry[]): void => {
    const next = `${path}.next`;
    const fresh = openSync(next, "w", 0o600);
    const records = entries.flatMap(recordsOf);
    const size = writeAll(disk, fresh, records.map(line).join(""));
    fsyncSync(fresh);
    closeSync(fresh);
    renameSync(next, path);
    syncFolder(path);
    closeSync(file);
    file = openSync(path, "a+", 0o600);
    lines = records.length;
    bytes = size;
  };
  let torn = false;
  const repair = (): void => {
    if (torn) ftruncateSync(file, bytes);
    torn = false;
  };
  const attempt = (work: () => void): NodeJS.ErrnoException | null => {
    try {
      work();
      return null;
    } catch (error) {
      if (isDiskError(error)) return error;
      throw error;
    }
  };
  /** Appends the whole record or nothing: after a partial write it truncates the file, so the next record starts on its own line. */
  const append = (record: JournalRecord): void => {
    const failure = attempt(() => {
      repair();
      torn = true;
      const size = writeAll(disk, file, line(record));
      disk.sync(file);
      torn = false;
      bytes += size;
      lines += 1;
    });
    if (failure === null) return;
    attempt(repair);
    throw new CannotWrite(`the journal ${path} cannot be written: ${failure.message}`, { cause: failure });
  };
  const journal = createJournal({
    wallMs,
    replay: past.records,
    write: append,
    close: () => closeSync(file),
  });
  const tidy = (): void => {
    const entries = [...journal.entries()];
    if (lines <= entries.length * 6 + SLACK_LINES) return;
    const failure = attempt(() => rewrite(entries));
    if (failure === null) return;
    // The old file remains valid.
    rmSync(`${path}.next`, { force: true });
    warn(`the journal ${path} cannot be compacted: ${failure.message}`);
  };
  tidy();
  let settles = 0;
  return {
    ...journal,
    settle: (id) => {
      journal.settle(id);
      settles += 1;
      if (settles % SLACK_LINES === 0) tidy();
    },
  };
};
