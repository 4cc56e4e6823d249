// Queues commands at a steady rate. The loop is open: a slow gateway shows as latency, not as less load.
import { randomUUID } from "node:crypto";
import { between, NoAnswer, type PairedDevice, pause, type Random, type Time } from "../agent/index.ts";
import type { CommandTracker } from "./command-tracker.ts";
import type { Portal, PortalCommand } from "./portal.ts";

const TICK_MS = 10;
/** Limit of outstanding requests, in seconds of load: enough to survive an outage with bounded memory. */
const OUTSTANDING_SECONDS = 60;
const MIN_OUTSTANDING = 1_000;

export interface LoadOptions {
  readonly portal: Portal;
  readonly tracker: CommandTracker;
  readonly members: readonly PairedDevice[];
  readonly perSecond: number;
  readonly durationMs: number;
  /** Load before that, at the same rate. */
  readonly warmUpMs?: number;
  readonly time: Time;
  readonly random: Random;
  /** How long unanswered requests are retried after the end. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

export interface Load {
  /** Resolves when the last request was sent. */
  readonly done: Promise<void>;
  /** Number of requests without a final answer. */
  readonly outstanding: number;
  /** Number of requests that the gateway refused or answered with nonsense. */
  readonly refused: number;
  /** Number of requests that never got an answer; their commands may exist. */
  readonly unresolved: number;
  readonly firstProblem: string | null;
}

/** Mostly quick commands, some in a lane, a few without ack. A few take the time that they say. */
export const chooseCommand = (random: Random): Omit<PortalCommand, "deviceId"> => {
  const dice = random();
  if (dice < 0.05) return { type: "ping", payload: {}, requiresAck: false };
  if (dice < 0.45) return { type: "ping", payload: {}, requiresAck: true };
  if (dice < 0.7) return { type: "echo", payload: { text: `echo ${Math.floor(random() * 1e6)}` }, requiresAck: true };
  if (dice < 0.82) return { type: "diagnostics", payload: {}, requiresAck: true };
  if (dice < 0.995) return { type: "restart-app", payload: { appId: `app_${Math.floor(random() * 3)}` }, requiresAck: true };
  return { type: "wait", payload: { seconds: Math.round(between(random, 0.1, 1) * 100) / 100 }, requiresAck: true };
};

/** A command of type `wait` says in its payload how long it takes. */
const workMsOf = ({ type, payload: { seconds } }: PortalCommand): number => (type === "wait" && typeof seconds === "number" ? seconds * 1_000 : 0);

export const startLoad = ({ portal, tracker, members, perSecond, durationMs, warmUpMs = 0, time, random, graceMs, signal }: LoadOptions): Load => {
  const startMs = time.elapsedMs();
  // Set again when the load ends.
  let untilMs = startMs + warmUpMs + durationMs + graceMs;
  const maxOutstanding = Math.max(MIN_OUTSTANDING, perSecond * OUTSTANDING_SECONDS);
  const state = { outstanding: 0, refused: 0, unresolved: 0, firstProblem: null as string | null };

  const queueOne = async (command: PortalCommand): Promise<void> => {
    const attempts: number[] = [];
    const { commandId, replayed } = await portal.queue(command, randomUUID(), {
      time,
      random,
      onAttempt: () => void attempts.push(time.elapsedMs()),
      get untilMs() {
        return untilMs;
      },
    });
    // A replay means that an earlier attempt took effect, so the latency counts from the first.
    const sentAtMs = (replayed ? attempts[0] : attempts.at(-1)) ?? time.elapsedMs();
    const { deviceId, requiresAck } = command;
    tracker.accepted(commandId, { deviceId, requiresAck, sentAtMs, workMs: workMsOf(command), isWarmUp: sentAtMs < startMs + warmUpMs });
  };
  const problem = (error: unknown): void => {
    if (error instanceof NoAnswer) state.unresolved += 1;
    else state.refused += 1;
    state.firstProblem ??= error instanceof Error ? error.message : String(error);
  };
  const launch = (): void => {
    const member = members[Math.floor(random() * members.length)];
    if (!member) return;
    state.outstanding += 1;
    void queueOne({ deviceId: member.deviceId, ...chooseCommand(random) })
      .catch(problem)
      .finally(() => {
        state.outstanding -= 1;
      });
  };
  const run = async (): Promise<void> => {
    let launched = 0;
    const totalMs = warmUpMs + durationMs;
    for (let lastedMs = 0; !signal.aborted; lastedMs = Math.min(time.elapsedMs() - startMs, totalMs)) {
      const due = Math.floor((lastedMs / 1_000) * perSecond);
      for (; launched < due && state.outstanding < maxOutstanding; launched += 1) launch();
      // Requests beyond the limit are skipped, not sent in a burst later.
      launched = Math.max(launched, due);
      // What was due in a last tick that came late has been sent, too.
      if (lastedMs === totalMs) break;
      await pause(time, TICK_MS, signal);
    }
    untilMs = time.elapsedMs() + graceMs;
  };
  const done = run();
  return {
    done,
    get outstanding() {
      return state.outstanding;
    },
    get refused() {
      return state.refused;
    },
    get unresolved() {
      return state.unresolved;
    },
    get firstProblem() {
      return state.firstProblem;
    },
  };
};
