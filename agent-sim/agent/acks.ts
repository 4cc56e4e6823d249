// Tells the gateway about commands: one word at a time for each, terminal words again and again until they are known to be stored.
import { type Ack, type AckStatus, OPEN_STATUSES } from "../../protocol/index.ts";
import type { AckAnswer } from "./frames.ts";
import type { Plan } from "./plan.ts";
import { nothing, type Time } from "./time.ts";

export type Word = Ack & { readonly status: AckStatus };
const OPEN: ReadonlySet<string> = new Set(OPEN_STATUSES);
const OPEN_WORDS: readonly AckStatus[] = ["received", "running", "cancel_rejected"];
export const isTerminalWord = ({ status }: Word): boolean => !OPEN_WORDS.includes(status);

/** Puts a word on its way and answers with the id under which the reply will come; null: not possible right now. */
export type Channel = (commandId: string, word: Word) => string | null;

export interface Acks {
  /** The newest word about a command. An earlier one that still waits is dropped, except that nothing follows a terminal word. */
  tell(commandId: string, word: Word): void;
  /** The gateway's answer; `ref` is the id that the channel gave, if the answer names one. */
  answered(answer: AckAnswer, ref: string | undefined): void;
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
  readonly onSettled: (answer: AckAnswer) => void;
  /** How long an answer is waited for: at first, and at most after doubling. */
  readonly resend: () => Plan["ack"];
}

export const createAcks = ({ time, onSettled, resend }: AcksDeps): Acks => {
  const pending = new Map<string, Pending>();
  let channel: Channel | null = null;

  const send = (commandId: string, entry: Pending): void => {
    entry.cancel();
    const id = channel?.(commandId, entry.word) ?? null;
    if (id !== null) entry.sentAs.add(id);
    entry.cancel = time.after(entry.waitMs, () => again(commandId, entry));
    entry.waitMs = Math.max(entry.waitMs, Math.min(resend().capMs, entry.waitMs * 2));
  };
  const moveOn = (commandId: string, entry: Pending, word: Word): void => {
    Object.assign(entry, { word, next: null, sentAs: new Set<string>(), waitMs: resend().resendMs });
    send(commandId, entry);
  };
  const again = (commandId: string, entry: Pending): void => (entry.next ? moveOn(commandId, entry, entry.next) : send(commandId, entry));

  /** Every answer means that the word is stored or not wanted. One without ref is taken for the terminal word unless the command is open still. */
  const answers = (entry: Pending, { status }: AckAnswer, ref: string | undefined): boolean =>
    ref === undefined ? !isTerminalWord(entry.word) || !OPEN.has(status ?? "") : entry.sentAs.has(ref);

  return {
    tell: (commandId, word) => {
      const entry = pending.get(commandId);
      if (!entry) {
        const fresh: Pending = { word, next: null, sentAs: new Set(), waitMs: resend().resendMs, cancel: nothing };
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
