// The journal on disk: one JSON line a record, appended and synced before anything is believed. A torn last line is a write that never happened.
import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { ACK_STATUSES, Ack } from "../protocol/index.ts";
import { createJournal, type Journal, type JournalEntry, type JournalRecord } from "./journal.ts";

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

/** Damage before the last line is not a crash of ours: to go on could run commands twice, so it is refused. */
const readPast = (path: string, bytes: Buffer): Past => {
  const records: JournalRecord[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(0x0a, start);
    const record = end < 0 ? null : parse(bytes.toString("utf8", start, end));
    if (record === null) {
      if (end >= 0 && end < bytes.length - 1) throw new Error(`the journal ${path} is damaged in line ${records.length + 1}`);
      return { records, goodBytes: start };
    }
    records.push(record);
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

const writeAll = (file: number, text: string): void => {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
};
/** A new name lives only when its folder is synced too. */
const syncFolder = (path: string): void => {
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
};

/** Opens or makes the journal; one process at a time may hold it. */
export const openFileJournal = (path: string, wallMs: () => number): Journal => {
  let file = openSync(path, "a+", 0o600);
  const past = readPast(path, readFileSync(path));
  ftruncateSync(file, past.goodBytes);
  syncFolder(path);
  let lines = past.records.length;

  const rewrite = (entries: readonly JournalEntry[]): void => {
    const next = `${path}.next`;
    const fresh = openSync(next, "w", 0o600);
    const records = entries.flatMap(recordsOf);
    writeAll(fresh, records.map(line).join(""));
    fsyncSync(fresh);
    closeSync(fresh);
    renameSync(next, path);
    syncFolder(path);
    closeSync(file);
    file = openSync(path, "a+", 0o600);
    lines = records.length;
  };
  const journal = createJournal({
    wallMs,
    replay: past.records,
    write: (record) => {
      writeAll(file, line(record));
      fdatasyncSync(file);
      lines += 1;
    },
    close: () => closeSync(file),
  });
  const tidy = (): void => {
    const entries = [...journal.entries()];
    if (lines > entries.length * 6 + SLACK_LINES) rewrite(entries);
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
