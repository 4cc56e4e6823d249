// Tells the gateway about commands: one word at a time for each, terminal words again and again until they are known to be stored.
import { type Ack, type AckResult, type AckStatus, isOpen } from "../protocol/index.ts";
import { nothing, type Time } from "./time.ts";

export const RESEND_MS = { first: 15_000, most: 300_000 };

export type Word = Ack & { readonly status: AckStatus };
const OPEN_WORDS: readonly AckStatus[] = ["received", "running", "cancel_rejected"];
export const isTerminalWord = ({ status }: Word): boolean => !OPEN_WORDS.includes(status);

/** Puts a word on its way and answers with the id under which the reply will come; null: not possible right now. */
export type Channel = (commandId: string, word: Word) => string | null;

export interface Acks {
  /** The newest word about a command. An earlier one that still waits is dropped, except that nothing follows a terminal word. */
  tell(commandId: string, word: Word): void;
  /** The gateway's answer; `ref` is the id that the channel gave, if the answer names one. */
  answered(result: AckResult, ref: string | undefined): void;
  /** The gateway wants to hear no more about it. A word that is still open is kept. */
  forget(commandId: string): void;
  /** The way out now; null while there is none. Everything unanswered goes out on a new one. */
  use(channel: Channel | null): void;
  readonly waiting: number;
}

interface Pending {
  word: Word;
  next: Word | null;
  sentAs: Set<string>;
  waitMs: number;
  cancel: () => void;
}

export interface AcksDeps {
  readonly time: Time;
  /** The gateway has stored the terminal word, or does not want it. */
  readonly onSettled: (result: AckResult) => void;
}

export const createAcks = ({ time, onSettled }: AcksDeps): Acks => {
  const pending = new Map<string, Pending>();
  let channel: Channel | null = null;

  const send = (commandId: string, entry: Pending): void => {
    entry.cancel();
    const id = channel?.(commandId, entry.word) ?? null;
    if (id !== null) entry.sentAs.add(id);
    entry.cancel = time.after(entry.waitMs, () => again(commandId, entry));
    entry.waitMs = Math.min(RESEND_MS.most, entry.waitMs * 2);
  };
  const moveOn = (commandId: string, entry: Pending, word: Word): void => {
    Object.assign(entry, { word, next: null, sentAs: new Set<string>(), waitMs: RESEND_MS.first });
    send(commandId, entry);
  };
  const again = (commandId: string, entry: Pending): void => (entry.next ? moveOn(commandId, entry, entry.next) : send(commandId, entry));

  /** An answer without ref is taken for the terminal word only when the command has ended or is unknown. */
  const answers = (entry: Pending, { status }: AckResult, ref: string | undefined): boolean =>
    ref === undefined ? !isTerminalWord(entry.word) || status === null || !isOpen(status) : entry.sentAs.has(ref);

  return {
    tell: (commandId, word) => {
      const entry = pending.get(commandId);
      if (!entry) {
        const fresh: Pending = { word, next: null, sentAs: new Set(), waitMs: RESEND_MS.first, cancel: nothing };
        pending.set(commandId, fresh);
        return send(commandId, fresh);
      }
      if (isTerminalWord(entry.word) || (entry.next && isTerminalWord(entry.next))) return;
      entry.next = word;
    },
    answered: (result, ref) => {
      const entry = pending.get(result.commandId);
      if (!entry || !answers(entry, result, ref)) return;
      entry.cancel();
      if (entry.next) return moveOn(result.commandId, entry, entry.next);
      pending.delete(result.commandId);
      if (isTerminalWord(entry.word)) onSettled(result);
    },
    forget: (commandId) => {
      const entry = pending.get(commandId);
      if (!entry || !isTerminalWord(entry.next ?? entry.word)) return;
      entry.cancel();
      pending.delete(commandId);
    },
    use: (next) => {
      channel = next;
      for (const [commandId, entry] of pending) {
        if (next === null) entry.cancel();
        else moveOn(commandId, entry, entry.next ?? entry.word);
      }
    },
    get waiting() {
      return pending.size;
    },
  };
};
