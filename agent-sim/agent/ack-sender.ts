// Sends acks to the gateway: one at a time per command, and final ones again until the gateway confirms them.
import { type Ack, type AckStatus, OPEN_STATUSES } from "../../protocol/index.ts";
import type { AckAnswer } from "./frames.ts";
import type { AgentPlan } from "./plan.ts";
import { noop, type Time } from "./timing/time.ts";

export type AgentAck = Ack & { readonly status: AckStatus };
const OPEN: ReadonlySet<string> = new Set(OPEN_STATUSES);
const OPEN_ACKS: readonly AckStatus[] = ["received", "running", "cancel_rejected"];
export const isFinalAck = ({ status }: AgentAck): boolean => !OPEN_ACKS.includes(status);

/** Sends an ack and returns the id that the answer will refer to; null if it cannot send now. */
export type Channel = (commandId: string, ack: AgentAck) => string | null;

export interface AckSender {
  /** Queues the newest ack of a command in place of an older one that still waits. Nothing follows a final ack. */
  report(commandId: string, ack: AgentAck): void;
  /** Takes the gateway's answer; `ref` is the id that the channel returned, if the answer names one. */
  answered(answer: AckAnswer, ref: string | undefined): void;
  /** The gateway needs no more acks of this command. An ack that is not final is kept. */
  forget(commandId: string): void;
  /** Sets the channel; null while there is none. Every unanswered ack is sent again on a new channel. */
  use(channel: Channel | null): void;
  readonly waiting: number;
}

interface Pending {
  ack: AgentAck;
  next: AgentAck | null;
  sentAs: Set<string>;
  waitMs: number;
  cancel: () => void;
}

export interface AckSenderDeps {
  readonly time: Time;
  /** The gateway has stored the final ack, or does not want it. */
  readonly onSettled: (answer: AckAnswer) => void;
  /** Time to wait for an answer: at first, and at most after doubling. */
  readonly resend: () => AgentPlan["ack"];
}

export const createAckSender = ({ time, onSettled, resend }: AckSenderDeps): AckSender => {
  const pending = new Map<string, Pending>();
  let channel: Channel | null = null;

  const send = (commandId: string, entry: Pending): void => {
    entry.cancel();
    const id = channel?.(commandId, entry.ack) ?? null;
    if (id !== null) entry.sentAs.add(id);
    entry.cancel = time.after(entry.waitMs, () => again(commandId, entry));
    entry.waitMs = Math.max(entry.waitMs, Math.min(resend().capMs, entry.waitMs * 2));
  };
  const moveOn = (commandId: string, entry: Pending, ack: AgentAck): void => {
    Object.assign(entry, { ack, next: null, sentAs: new Set<string>(), waitMs: resend().resendMs });
    send(commandId, entry);
  };
  const again = (commandId: string, entry: Pending): void => (entry.next ? moveOn(commandId, entry, entry.next) : send(commandId, entry));

  /** Any answer settles its ack. An answer without `ref` settles a final ack unless it shows the command as open. */
  const answers = (entry: Pending, { status }: AckAnswer, ref: string | undefined): boolean =>
    ref === undefined ? !isFinalAck(entry.ack) || !OPEN.has(status ?? "") : entry.sentAs.has(ref);

  return {
    report: (commandId, ack) => {
      const entry = pending.get(commandId);
      if (!entry) {
        const fresh: Pending = { ack, next: null, sentAs: new Set(), waitMs: resend().resendMs, cancel: noop };
        pending.set(commandId, fresh);
        return send(commandId, fresh);
      }
      if (isFinalAck(entry.ack) || (entry.next && isFinalAck(entry.next))) return;
      entry.next = ack;
    },
    answered: (result, ref) => {
      const entry = pending.get(result.commandId);
      if (!entry || !answers(entry, result, ref)) return;
      entry.cancel();
      if (entry.next) return moveOn(result.commandId, entry, entry.next);
      pending.delete(result.commandId);
      if (isFinalAck(entry.ack)) onSettled(result);
    },
    forget: (commandId) => {
      const entry = pending.get(commandId);
      if (!entry || !isFinalAck(entry.next ?? entry.ack)) return;
      entry.cancel();
      pending.delete(commandId);
    },
    use: (next) => {
      channel = next;
      for (const [commandId, entry] of pending) {
        if (next === null) entry.cancel();
        else moveOn(commandId, entry, entry.next ?? entry.ack);
      }
    },
    get waiting() {
      return pending.size;
    },
  };
};
