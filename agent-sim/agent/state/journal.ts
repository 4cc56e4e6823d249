// The journal of commands, which prevents double runs and lost results: its rules, and the version that lives in memory.
import type { Ack, AckStatus } from "../../../protocol/index.ts";
import type { Delivered } from "../frames.ts";
import { noop } from "../timing/time.ts";

export interface JournalEntry {
  readonly commandId: string;
  readonly requiresAck: boolean;
  /** The latest ack status: received or running while in flight, then the final one. */
  readonly status: AckStatus;
  /** The final result. Set once and never changed. */
  readonly result: Ack | null;
  /** When the gateway confirmed the result. */
  readonly settledAtMs: number | null;
  /** What to run again if the agent restarts before there is a result. */
  readonly again: Delivered | null;
}

export interface Journal {
  /** True if the command is new; its record is then durable on return. False: it is known and must not run. */
  begin(commandId: string, requiresAck: boolean, again?: Delivered): boolean;
  /** Notes a later open status, for the next `hello`. Not durable. */
  note(commandId: string, status: AckStatus): void;
  /** Stores the first final result durably and returns the stored one. */
  finish(commandId: string, result: Ack & { readonly status: AckStatus }): Ack;
  /** The gateway has the result. The id is kept to recognize late duplicates. */
  settle(commandId: string): void;
  find(commandId: string): JournalEntry | undefined;
  /** Unsettled entries in order of arrival. */
  unsettled(): readonly JournalEntry[];
  /** All entries, oldest first. */
  entries(): Iterable<JournalEntry>;
  close(): void;
}

export type JournalRecord =
  | { readonly kind: "begin"; readonly id: string; readonly requiresAck: boolean; readonly again?: Delivered | undefined }
  | { readonly kind: "end"; readonly id: string; readonly result: Ack & { readonly status: AckStatus } }
  | { readonly kind: "ok"; readonly id: string; readonly atMs: number };

const newEntry = (commandId: string, requiresAck: boolean, again: Delivered | null = null): JournalEntry => ({
  commandId,
  requiresAck,
  again,
  status: "received",
  result: null,
  settledAtMs: null,
});

const WEEK_MS = 7 * 24 * 3_600_000;
/** A settled id is dropped after a week if more than this many are known. */
const REMEMBER_AT_LEAST = 1_000;
/** Beyond this many, settled ids are dropped whatever their age. */
const REMEMBER_AT_MOST = 50_000;

/** The disk is full, read-only or broken. Nothing changed; the same call may succeed later. */
export class CannotWrite extends Error {
  override readonly name = "CannotWrite";
}

export interface JournalDeps {
  readonly wallMs: () => number;
  /** Makes one record durable before it returns, or throws CannotWrite. */
  readonly write: (record: JournalRecord) => void;
  readonly replay?: Iterable<JournalRecord>;
  readonly close?: () => void;
}

/** Writes each record before it applies it, so that a failed write leaves the command unknown. */
export const createJournal = ({ wallMs, write, replay = [], close = noop }: JournalDeps): Journal => {
  const open = new Map<string, JournalEntry>();
  const settled = new Map<string, JournalEntry>();
  const find = (id: string): JournalEntry | undefined => open.get(id) ?? settled.get(id);

  const forgetOld = (): void => {
    for (const [id, { settledAtMs }] of settled) {
      const old = wallMs() - (settledAtMs ?? 0) > WEEK_MS && settled.size > REMEMBER_AT_LEAST;
      if (!old && settled.size <= REMEMBER_AT_MOST) return;
      settled.delete(id);
    }
  };
  const apply = (record: JournalRecord): void => {
    const entry = find(record.id);
    switch (record.kind) {
      case "begin":
        if (!entry) open.set(record.id, newEntry(record.id, record.requiresAck, record.again));
        return;
      // If the line before is damaged, only this one shows that the command ran.
      case "end":
        if (!entry?.result) open.set(record.id, { ...(entry ?? newEntry(record.id, true)), status: record.result.status, result: record.result, again: null });
        return;
      case "ok":
        if (settled.has(record.id)) return;
        open.delete(record.id);
        settled.set(record.id, { ...(entry ?? newEntry(record.id, true)), settledAtMs: record.atMs });
        forgetOld();
    }
  };
  const record = (next: JournalRecord): void => {
    write(next);
    apply(next);
  };
  for (const past of replay) apply(past);

  return {
    begin: (id, requiresAck, again) => {
      if (find(id)) return false;
      record({ kind: "begin", id, requiresAck, again });
      return true;
    },
    note: (id, status) => {
      const entry = open.get(id);
      if (entry && !entry.result) open.set(id, { ...entry, status });
    },
    finish: (id, result) => {
      const entry = find(id);
      if (!entry) throw new Error(`command ${id} was never begun`);
      if (entry.result) return entry.result;
      record({ kind: "end", id, result });
      if (!entry.requiresAck) record({ kind: "ok", id, atMs: wallMs() });
      return result;
    },
    settle: (id) => {
      if (open.get(id)?.result) record({ kind: "ok", id, atMs: wallMs() });
    },
    find,
    unsettled: () => [...open.values()],
    *entries() {
      yield* settled.values();
      yield* open.values();
    },
    close,
  };
};

/** A journal without a file, for simulated agents. */
export const createMemoryJournal = (wallMs: () => number): Journal => createJournal({ wallMs, write: noop });
