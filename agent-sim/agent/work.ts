// Takes commands, runs each once, remembers it, and hands its words to the acks. Socket and poll both end here.
import type { Ack } from "../../protocol/index.ts";
import type { Acks, Word } from "./acks.ts";
import type { Delivered } from "./frames.ts";
import { type Handler, type HandlerContext, type Handlers, InvalidPayload } from "./handlers.ts";
import { CannotWrite, type Journal, type JournalEntry } from "./journal.ts";
import { createLanes } from "./lanes.ts";
import { nothing, type Time, until } from "./time.ts";

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
  readonly onAlarm?: ((text: string) => void) | undefined;
}

export interface Work {
  deliver(item: Delivered): void;
  cancel(commandId: string, reason: string): void;
  /** Says again what is known about a command. */
  retell(commandId: string): void;
  /** After a start: results of an earlier run are sent, work that it left half done is reported as failed. */
  resume(): void;
  /** The gateway has the result or wants none. */
  settle(commandId: string): void;
  /** Waits for what runs now; false when the time was not enough. */
  rest(withinMs: number): Promise<boolean>;
}

interface Running {
  readonly abort: AbortController;
  readonly handler: Handler | undefined;
  started: boolean;
}

type Outcome = Ack & { readonly status: "succeeded" | "failed" | "rejected" | "canceled" };
/** How often a result is tried again that the disk would not take. */
const STORE_AGAIN_MS = 5_000;
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

export const createWork = ({ journal, handlers, acks, time, serverNowMs, maxOutputBytes, onExecute, onAlarm }: WorkDeps): Work => {
  const lanes = createLanes();
  const running = new Map<string, Running>();

  const wordOf = ({ status, result }: JournalEntry): Word => ({ ...(result ?? {}), status });
  const retell = (commandId: string): void => {
    const entry = journal.find(commandId);
    if (entry?.requiresAck) acks.tell(commandId, wordOf(entry));
  };
  let full = false;
  /** False when the disk does not take it; told once for each time that it begins. */
  const stored = (write: () => void): boolean => {
    try {
      write();
      full = false;
      return true;
    } catch (error) {
      if (!(error instanceof CannotWrite)) throw error;
      if (!full) onAlarm?.(`${error.message}; new commands are not taken until it can`);
      full = true;
      return false;
    }
  };
  /** A result is told once it is stored, however long the disk takes: told before, it could differ after a crash. */
  const end = (commandId: string, outcome: Outcome): void => {
    if (stored(() => journal.finish(commandId, cut(outcome, maxOutputBytes())))) retell(commandId);
    else time.after(STORE_AGAIN_MS, () => end(commandId, outcome));
  };
  /** True when the command is new and journalled. One that the disk does not take is as if it had never come: the gateway sends it again. */
  const begin = (commandId: string, requiresAck: boolean): boolean | "unwritten" => {
    let isNew = false;
    const written = stored(() => {
      isNew = journal.begin(commandId, requiresAck);
    });
    return written ? isNew : "unwritten";
  };
  const say = (commandId: string, requiresAck: boolean, word: Word): void => {
    journal.note(commandId, word.status);
    if (requiresAck) acks.tell(commandId, word);
  };
  const perform = async ({ command, delivery }: Delivered, { abort, handler }: Running): Promise<Outcome> => {
    const { commandId, type, payload, requiresAck } = command;
    if (abort.signal.aborted) return { status: "canceled", output: { message: "canceled before it began" } };
    if (!handler) return { status: "rejected", code: "UNSUPPORTED_TYPE", output: { message: `this agent does not know "${type.slice(0, 64)}"` } };
    const { executionTimeoutSec: seconds } = delivery;
    const cancelTimeout = seconds === undefined ? nothing : time.after(Math.max(1, seconds) * 1_000, () => abort.abort(TIMED_OUT));
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
  const run = async (item: Delivered, state: Running): Promise<void> => {
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
      const isNew = begin(commandId, requiresAck);
      if (isNew === "unwritten") return;
      if (!isNew) return retell(commandId);
      const { expiresAt, lane } = item.delivery;
      if (typeof expiresAt === "string" && Date.parse(expiresAt) <= serverNowMs())
        return end(commandId, { status: "rejected", code: "EXPIRED", output: { message: "expired before it could begin" } });
      retell(commandId);
      const state: Running = { abort: new AbortController(), handler: Object.hasOwn(handlers, type) ? handlers[type] : undefined, started: false };
      running.set(commandId, state);
      lanes.run(lane ?? commandId, () => run(item, state));
    },
    cancel: (commandId, reason) => {
      const state = running.get(commandId);
      if (state && (!state.started || state.handler?.cancelable)) return state.abort.abort(CANCELED);
      if (state) return say(commandId, true, { status: "cancel_rejected", output: { message: "it has begun and cannot be stopped" } });
      // Never seen: it is remembered as canceled, so that a late delivery does not run it.
      const isNew = begin(commandId, true);
      if (isNew === "unwritten") return;
      if (isNew) return end(commandId, { status: "canceled", output: { message: `canceled before it arrived: ${reason}` } });
      retell(commandId);
    },
    resume: () => {
      for (const { commandId, result, requiresAck } of journal.unsettled()) {
        if (running.has(commandId)) continue;
        if (!result) end(commandId, { status: "failed", code: "AGENT_RESTARTED", output: { message: "the agent stopped while this command was in flight" } });
        else if (requiresAck) retell(commandId);
      }
    },
    settle: (commandId) => void stored(() => journal.settle(commandId)),
    rest: (withinMs) => until(time, () => running.size === 0, { everyMs: 20, withinMs }),
  };
};
