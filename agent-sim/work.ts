// Takes commands, runs each once, remembers it, and hands its words to the acks. Socket and poll both end here.
import type { Ack, DeliveredCommand } from "../protocol/index.ts";
import type { Acks, Word } from "./acks.ts";
import { type Handler, type HandlerContext, type Handlers, InvalidPayload } from "./handlers.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import { createLanes } from "./lanes.ts";
import { type Time, until } from "./time.ts";

export interface WorkDeps {
  readonly journal: Journal;
  readonly handlers: Handlers;
  readonly acks: Acks;
  readonly time: Time;
  /** This machine's idea of the gateway's clock. */
  readonly serverNowMs: () => number;
  readonly maxOutputBytes: () => number;
  /** Called each time a handler is started: more than once for one id would be a broken promise. */
  readonly onExecute: (commandId: string, type: string) => void;
}

export interface Work {
  deliver(item: DeliveredCommand): void;
  cancel(commandId: string, reason: string): void;
  /** Says again what is known about a command. */
  retell(commandId: string): void;
  /** After a start: results of an earlier run are sent, work that it left half done is reported as failed. */
  resume(): void;
  /** Waits for what runs now; false when the time was not enough. */
  rest(withinMs: number): Promise<boolean>;
}

interface Running {
  readonly abort: AbortController;
  readonly handler: Handler | undefined;
  started: boolean;
}

type Outcome = Ack & { readonly status: "succeeded" | "failed" | "rejected" | "canceled" };
const CANCELED = Symbol("canceled");
const TIMED_OUT = Symbol("timed out");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 1_000);

/** Output that is too large is cut, and says so. */
const cut = (outcome: Outcome, maxBytes: number): Outcome => {
  const text = JSON.stringify(outcome.output) ?? "";
  if (Buffer.byteLength(text) <= maxBytes) return outcome;
  return { ...outcome, output: { truncated: text.slice(0, Math.max(0, Math.floor(maxBytes / 4) - 64)) }, outputTruncated: true };
};

const toFailure = (error: unknown, signal: AbortSignal): Outcome => {
  if (signal.aborted && signal.reason === CANCELED) return { status: "canceled", output: { message: "canceled while it ran" } };
  if (signal.aborted && signal.reason === TIMED_OUT)
    return { status: "failed", code: "AGENT_TIMEOUT", output: { message: "the execution timeout has passed" } };
  if (error instanceof InvalidPayload) return { status: "rejected", code: "INVALID_PAYLOAD", output: { message: error.message } };
  return { status: "failed", code: "HANDLER_FAILED", output: { message: messageOf(error) } };
};

const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

export const createWork = ({ journal, handlers, acks, time, serverNowMs, maxOutputBytes, onExecute }: WorkDeps): Work => {
  const lanes = createLanes();
  const running = new Map<string, Running>();

  const wordOf = ({ status, result }: JournalEntry): Word => ({ ...(result ?? {}), status });
  const retell = (commandId: string): void => {
    const entry = journal.find(commandId);
    if (entry?.requiresAck) acks.tell(commandId, wordOf(entry));
  };
  const end = (commandId: string, outcome: Outcome): void => {
    journal.finish(commandId, cut(outcome, maxOutputBytes()));
    retell(commandId);
  };
  const say = (commandId: string, requiresAck: boolean, word: Word): void => {
    journal.note(commandId, word.status);
    if (requiresAck) acks.tell(commandId, word);
  };
  const perform = async ({ command, delivery }: DeliveredCommand, { abort, handler }: Running): Promise<Outcome> => {
    const { commandId, type, payload, requiresAck } = command;
    if (abort.signal.aborted) return { status: "canceled", output: { message: "canceled before it began" } };
    if (!handler) return { status: "rejected", code: "UNSUPPORTED_TYPE", output: { message: `this agent does not know "${type.slice(0, 64)}"` } };
    const cancelTimeout = time.after(Math.max(1, delivery.executionTimeoutSec) * 1_000, () => abort.abort(TIMED_OUT));
    const context: HandlerContext = {
      signal: abort.signal,
      traceparent: delivery.traceparent ?? null,
      progress: (pct, message) => say(commandId, requiresAck, { status: "running", progress: { pct, message } }),
    };
    try {
      if (handler.long) say(commandId, requiresAck, { status: "running" });
      onExecute(commandId, type);
      return { status: "succeeded", output: await Promise.race([handler.run(payload, context), whenAborted(abort.signal)]) };
    } catch (error) {
      return toFailure(error, abort.signal);
    } finally {
      cancelTimeout();
    }
  };
  const run = async (item: DeliveredCommand, state: Running): Promise<void> => {
    const { commandId } = item.command;
    state.started = true;
    const startedAt = new Date(serverNowMs()).toISOString();
    const outcome = await perform(item, state);
    running.delete(commandId);
    end(commandId, { ...outcome, startedAt, finishedAt: new Date(serverNowMs()).toISOString() });
  };

  return {
    retell,
    deliver: (item) => {
      const { commandId, requiresAck, type } = item.command;
      if (!journal.begin(commandId, requiresAck)) return retell(commandId);
      const { expiresAt, lane } = item.delivery;
      if (expiresAt !== null && Date.parse(expiresAt) <= serverNowMs())
        return end(commandId, { status: "rejected", code: "EXPIRED", output: { message: "expired before it could begin" } });
      retell(commandId);
      const state: Running = { abort: new AbortController(), handler: Object.hasOwn(handlers, type) ? handlers[type] : undefined, started: false };
      running.set(commandId, state);
      lanes.run(lane, () => run(item, state));
    },
    cancel: (commandId, reason) => {
      const state = running.get(commandId);
      if (state && (!state.started || state.handler?.cancelable)) return state.abort.abort(CANCELED);
      if (state) return say(commandId, true, { status: "cancel_rejected", output: { message: "it has begun and cannot be stopped" } });
      // Never seen: it is remembered as canceled, so that a late delivery does not run it.
      if (journal.begin(commandId, true)) return end(commandId, { status: "canceled", output: { message: `canceled before it arrived: ${reason}` } });
      retell(commandId);
    },
    resume: () => {
      for (const { commandId, result, requiresAck } of journal.unsettled()) {
        if (running.has(commandId)) continue;
        if (!result)
          journal.finish(commandId, { status: "failed", code: "AGENT_RESTARTED", output: { message: "the agent stopped while this command was in flight" } });
        if (requiresAck) retell(commandId);
      }
    },
    rest: (withinMs) => until(time, () => running.size === 0, { everyMs: 20, withinMs }),
  };
};
