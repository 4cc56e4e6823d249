// Runs each command once, whether it came over the socket or by poll, journals it, and queues its acks.
import type { Ack } from "../../protocol/index.ts";
import type { AckSender, AgentAck } from "./ack-sender.ts";
import type { Delivered } from "./frames.ts";
import { type CommandHandler, type CommandHandlers, type HandlerContext, HandlerFailure, InvalidPayload } from "./handlers.ts";
import { createLanes } from "./lanes.ts";
import { CannotWrite, type Journal, type JournalEntry } from "./state/journal.ts";
import { noop, type Time, until } from "./timing/time.ts";

export interface ExecutorDeps {
  readonly journal: Journal;
  readonly handlers: CommandHandlers;
  readonly acks: AckSender;
  readonly time: Time;
  /** This machine's estimate of the gateway's clock. */
  readonly serverNowMs: () => number;
  readonly maxOutputBytes: () => number;
  /** Called each time a handler starts, at most once per command. */
  readonly onExecute: (commandId: string, type: string) => void;
  readonly onAlarm?: ((text: string) => void) | undefined;
}

export interface Executor {
  deliver(item: Delivered): void;
  cancel(commandId: string, reason: string): void;
  /** Sends the latest ack of a command again. */
  reportAgain(commandId: string): void;
  /** After a start: sends the results of an earlier run, runs its unfinished repeatable commands again and reports the others as failed. */
  resume(): void;
  /** The gateway has the result or does not want it. */
  settle(commandId: string): void;
  /** Waits until no command runs; resolves to false if the time was too short. */
  whenIdle(withinMs: number): Promise<boolean>;
}

interface Running {
  readonly abort: AbortController;
  readonly handler: CommandHandler | undefined;
  started: boolean;
}

type Outcome = Ack & { readonly status: "succeeded" | "failed" | "rejected" | "canceled" };
/** Delay before a result that could not be stored is stored again. */
const STORE_AGAIN_MS = 5_000;
const CANCELED = Symbol("canceled");
const TIMED_OUT = Symbol("timed out");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 1_000);

/** Truncates output that is too large, and marks it. */
const cut = (outcome: Outcome, maxBytes: number): Outcome => {
  const text = JSON.stringify(outcome.output) ?? "";
  if (Buffer.byteLength(text) <= maxBytes) return outcome;
  return { ...outcome, output: { truncated: text.slice(0, Math.max(0, Math.floor(maxBytes / 4) - 64)) }, outputTruncated: true };
};

const toFailure = (error: unknown, signal: AbortSignal, endsItself = false): Outcome => {
  if (endsItself && error instanceof HandlerFailure) return { status: "failed", code: error.code, output: error.output };
  if (signal.aborted && signal.reason === CANCELED) return { status: "canceled", output: { message: "canceled while it ran" } };
  if (signal.aborted && signal.reason === TIMED_OUT) return { status: "failed", code: "AGENT_TIMEOUT", output: { message: "the execution timed out" } };
  if (error instanceof InvalidPayload) return { status: "rejected", code: "INVALID_PAYLOAD", output: { message: error.message } };
  if (error instanceof HandlerFailure) return { status: "failed", code: error.code, output: error.output };
  return { status: "failed", code: "HANDLER_FAILED", output: { message: messageOf(error) } };
};

const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

export const createExecutor = ({ journal, handlers, acks, time, serverNowMs, maxOutputBytes, onExecute, onAlarm }: ExecutorDeps): Executor => {
  const lanes = createLanes();
  const running = new Map<string, Running>();

  const ackOf = ({ status, result }: JournalEntry): AgentAck => ({ ...(result ?? {}), status });
  const reportAgain = (commandId: string): void => {
    const entry = journal.find(commandId);
    if (entry?.requiresAck) acks.report(commandId, ackOf(entry));
  };
  let full = false;
  /** Returns false if the disk refuses the write, and raises one alarm per outage. */
  const stored = (write: () => void): boolean => {
    try {
      write();
      full = false;
      return true;
    } catch (error) {
      if (!(error instanceof CannotWrite)) throw error;
      if (!full) onAlarm?.(`${error.message}; the agent takes no new commands until it can`);
      full = true;
      return false;
    }
  };
  /** Sends a result only after it is stored: sent before, it could differ after a crash. */
  const end = (commandId: string, outcome: Outcome): void => {
    if (stored(() => journal.finish(commandId, cut(outcome, maxOutputBytes())))) reportAgain(commandId);
    else time.after(STORE_AGAIN_MS, () => end(commandId, outcome));
  };
  /** True if the command is new and in the journal. A command that cannot be written is dropped; the gateway sends it again. */
  const begin = (commandId: string, requiresAck: boolean, again?: Delivered): boolean | "unwritten" => {
    let isNew = false;
    const written = stored(() => {
      isNew = journal.begin(commandId, requiresAck, again);
    });
    return written ? isNew : "unwritten";
  };
  const say = (commandId: string, requiresAck: boolean, ack: AgentAck): void => {
    journal.note(commandId, ack.status);
    if (requiresAck) acks.report(commandId, ack);
  };
  const perform = async ({ command, delivery }: Delivered, { abort, handler }: Running): Promise<Outcome> => {
    const { commandId, type, payload, requiresAck } = command;
    if (abort.signal.aborted) return { status: "canceled", output: { message: "canceled before it began" } };
    if (!handler) return { status: "rejected", code: "UNSUPPORTED_TYPE", output: { message: `this agent does not know "${type.slice(0, 64)}"` } };
    const { executionTimeoutSec: seconds } = delivery;
    const cancelTimeout = seconds === undefined ? noop : time.after(Math.max(1, seconds) * 1_000, () => abort.abort(TIMED_OUT));
    const context: HandlerContext = {
      signal: abort.signal,
      commandId,
      traceparent: delivery.traceparent ?? null,
      progress: (pct, message, figures = {}) => say(commandId, requiresAck, { status: "running", progress: { pct, message, ...figures } }),
    };
    try {
      if (handler.long) say(commandId, requiresAck, { status: "running" });
      onExecute(commandId, type);
      const work = handler.run(payload, context);
      return { status: "succeeded", output: await (handler.endsItself ? work : Promise.race([work, whenAborted(abort.signal)])) };
    } catch (error) {
      return toFailure(error, abort.signal, handler.endsItself);
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

  const handlerOf = (type: string): CommandHandler | undefined => (Object.hasOwn(handlers, type) ? handlers[type] : undefined);
  const enqueue = (item: Delivered): void => {
    const { commandId, type } = item.command;
    const state: Running = { abort: new AbortController(), handler: handlerOf(type), started: false };
    running.set(commandId, state);
    lanes.run(item.delivery.lane ?? commandId, () => run(item, state));
  };

  return {
    reportAgain,
    deliver: (item) => {
      const { commandId, requiresAck, type } = item.command;
      const isNew = begin(commandId, requiresAck, handlerOf(type)?.repeatable ? item : undefined);
      if (isNew === "unwritten") return;
      if (!isNew) return reportAgain(commandId);
      const { expiresAt } = item.delivery;
      if (typeof expiresAt === "string" && Date.parse(expiresAt) <= serverNowMs())
        return end(commandId, { status: "rejected", code: "EXPIRED", output: { message: "expired before it began" } });
      reportAgain(commandId);
      enqueue(item);
    },
    cancel: (commandId, reason) => {
      const state = running.get(commandId);
      if (state && (!state.started || state.handler?.cancelable)) return state.abort.abort(CANCELED);
      if (state) return say(commandId, true, { status: "cancel_rejected", output: { message: "the command has begun and cannot be stopped" } });
      // Unknown command: journal it as canceled, so that a late delivery does not run it.
      const isNew = begin(commandId, true);
      if (isNew === "unwritten") return;
      if (isNew) return end(commandId, { status: "canceled", output: { message: `canceled before it arrived: ${reason}` } });
      reportAgain(commandId);
    },
    resume: () => {
      for (const { commandId, result, requiresAck, again } of journal.unsettled()) {
        if (running.has(commandId)) continue;
        if (!result && again !== null) enqueue(again);
        else if (!result)
          end(commandId, { status: "failed", code: "AGENT_RESTARTED", output: { message: "the agent stopped while this command was in flight" } });
        else if (requiresAck) reportAgain(commandId);
      }
    },
    settle: (commandId) => void stored(() => journal.settle(commandId)),
    whenIdle: (withinMs) => until(time, () => running.size === 0, { everyMs: 20, withinMs }),
  };
};
