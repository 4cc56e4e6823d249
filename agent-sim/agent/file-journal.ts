// The journal on disk: one JSON line a record, appended and synced before anything is believed. A torn last line is a write that never happened.
import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { ACK_STATUSES, Ack } from "../../protocol/index.ts";
import { CannotWrite, createJournal, type Journal, type JournalEntry, type JournalRecord } from "./journal.ts";

/** Rewritten when it holds this many lines more than six for each command it still knows. */
const SLACK_LINES = 3_000;

const Line: z.ZodType<JournalRecord> = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("begin"), id: z.string(), requiresAck: z.boolean() }),
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

interface Past {
  readonly records: readonly JournalRecord[];
  /** Bytes that hold whole records; what follows is cut off. */
  readonly goodBytes: number;
}

/** What a damaged line was about, if that can be read still: then the command counts as begun and is never run again. */
const salvage = (line: string): JournalRecord | null => {
  const id = /"id":"([^"\\\0]+)"/.exec(line)?.[1];
  return id === undefined ? null : { kind: "begin", id, requiresAck: true };
};

/** A torn last line was never believed. Damage before it is the disk's: everything else is used, and somebody is told. */
const readPast = (bytes: Buffer, onDamage: (line: number) => void): Past => {
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

const recordsOf = ({ commandId, requiresAck, result, status, settledAtMs }: JournalEntry): readonly JournalRecord[] => [
  { kind: "begin", id: commandId, requiresAck },
  ...(result ? [{ kind: "end", id: commandId, result: { ...result, status } } as const] : []),
  ...(settledAtMs === null ? [] : [{ kind: "ok", id: commandId, atMs: settledAtMs } as const]),
];
const line = (record: JournalRecord): string => `${JSON.stringify(record)}\n`;

/** The calls that a full disk refuses; a test hands in others. */
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
/** A new name lives only when its folder is synced too. */
const syncFolder = (path: string): void => {
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
};

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** Opens or makes the journal. One process at a time may hold it: state-lock.ts sees to that. */
export const openFileJournal = (path: string, wallMs: () => number, { disk = DISK, warn = say }: JournalFileOptions = {}): Journal => {
  let file = openSync(path, "a+", 0o600);
  const past = readPast(readFileSync(path), (line) => warn(`the journal ${path} is damaged in line ${line}; the other lines are used`));
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
  const mend = (): void => {
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
  /** Appends one record or none: what a full disk took of it is taken back, so that the next one stands on a line of its own. */
  const append = (record: JournalRecord): void => {
    const failure = attempt(() => {
      mend();
      torn = true;
      const size = writeAll(disk, file, line(record));
      disk.sync(file);
      torn = false;
      bytes += size;
      lines += 1;
    });
    if (failure === null) return;
    attempt(mend);
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
    // The long form is as good as the short one.
    rmSync(`${path}.next`, { force: true });
    warn(`the journal ${path} cannot be made shorter: ${failure.message}`);
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
