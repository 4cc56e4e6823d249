// What an agent remembers of its commands, so that none runs twice and no result is lost: the rules, and the form that lives in memory.
import type { Ack, AckStatus } from "../../protocol/index.ts";
import { nothing } from "./time.ts";

export interface JournalEntry {
  readonly commandId: string;
  readonly requiresAck: boolean;
  /** The last word about it: received or running while it is in flight, then the terminal one. */
  readonly status: AckStatus;
  /** Set once, with the terminal result; never changed after. */
  readonly result: Ack | null;
  /** When the gateway had stored the result. */
  readonly settledAtMs: number | null;
}

export interface Journal {
  /** True when the command is new; it is then written durably, before this returns. False: it was here before and must not run. */
  begin(commandId: string, requiresAck: boolean): boolean;
  /** A later non-terminal word. A hint for the next hello, not durable. */
  note(commandId: string, status: AckStatus): void;
  /** The first terminal result wins and is durable on return; answers the one that is kept. */
  finish(commandId: string, result: Ack & { readonly status: AckStatus }): Ack;
  /** The gateway has it: no need to send it again. Still remembered, for a late duplicate. */
  settle(commandId: string): void;
  find(commandId: string): JournalEntry | undefined;
  /** In order of arrival. */
  unsettled(): readonly JournalEntry[];
  /** Every entry there is, oldest first. */
  entries(): Iterable<JournalEntry>;
  close(): void;
}

export type JournalRecord =
  | { readonly kind: "begin"; readonly id: string; readonly requiresAck: boolean }
  | { readonly kind: "end"; readonly id: string; readonly result: Ack & { readonly status: AckStatus } }
  | { readonly kind: "ok"; readonly id: string; readonly atMs: number };

const begun = (commandId: string, requiresAck: boolean): JournalEntry => ({
  commandId,
  requiresAck,
  status: "received",
  result: null,
  settledAtMs: null,
});

const WEEK_MS = 7 * 24 * 3_600_000;
/** A settled id is forgotten after a week if a thousand younger ones are known, and in any case beyond this many. */
const REMEMBER_AT_LEAST = 1_000;
const REMEMBER_AT_MOST = 50_000;

/** The disk is full, read-only or broken. Nothing has changed; the same call may succeed later. */
export class CannotWrite extends Error {
  override readonly name = "CannotWrite";
}

export interface JournalDeps {
  readonly wallMs: () => number;
  /** Makes one record durable before it returns; throws CannotWrite when it cannot. */
  readonly write: (record: JournalRecord) => void;
  readonly replay?: Iterable<JournalRecord>;
  readonly close?: () => void;
}

/** The rules. A record is written first and believed after, so that a failed write leaves the command unknown. */
export const createJournal = ({ wallMs, write, replay = [], close = nothing }: JournalDeps): Journal => {
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
  const believe = (record: JournalRecord): void => {
    const entry = find(record.id);
    switch (record.kind) {
      case "begin":
        if (!entry) open.set(record.id, begun(record.id, record.requiresAck));
        return;
      // Where the line before is damaged, this one alone says that the command has run.
      case "end":
        if (!entry?.result) open.set(record.id, { ...(entry ?? begun(record.id, true)), status: record.result.status, result: record.result });
        return;
      case "ok":
        if (settled.has(record.id)) return;
        open.delete(record.id);
        settled.set(record.id, { ...(entry ?? begun(record.id, true)), settledAtMs: record.atMs });
        forgetOld();
    }
  };
  const record = (next: JournalRecord): void => {
    write(next);
    believe(next);
  };
  for (const past of replay) believe(past);

  return {
    begin: (id, requiresAck) => {
      if (find(id)) return false;
      record({ kind: "begin", id, requiresAck });
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

/** For simulated agents: as long as the process lives. */
export const createMemoryJournal = (wallMs: () => number): Journal => createJournal({ wallMs, write: nothing });
