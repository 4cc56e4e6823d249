// Queues commands at a steady rate, whatever the gateway's answers take: an open loop, so that a slow gateway shows as latency and not as less load.
import { randomUUID } from "node:crypto";
import { between, type Member, NoAnswer, pause, type Random, type Time } from "../agent/index.ts";
import type { Ledger } from "./ledger.ts";
import type { NewCommand, Portal } from "./portal.ts";

const TICK_MS = 10;
/** Requests under way at most, in seconds of load: an outage is ridden out, memory stays bounded. */
const OUTSTANDING_SECONDS = 60;
const LEAST_OUTSTANDING = 1_000;

export interface LoadOptions {
  readonly portal: Portal;
  readonly ledger: Ledger;
  readonly members: readonly Member[];
  readonly perSecond: number;
  readonly durationMs: number;
  /** Goes before the duration, at the same rate. */
  readonly warmUpMs?: number;
  readonly time: Time;
  readonly random: Random;
  /** How long after the end unanswered requests are still retried. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

export interface Load {
  /** Resolves when the last request has been sent. */
  readonly done: Promise<void>;
  /** Sent and not yet answered for good. */
  readonly outstanding: number;
  /** Refused, or answered in a way that makes no sense; no retry changes it. */
  readonly refused: number;
  /** Given up without an answer: nobody knows whether they exist. */
  readonly unresolved: number;
  readonly firstProblem: string | null;
}

/** Mostly quick commands, some on a lane, a few that want no ack; long ones are so rare that the percentiles tell of the gateway and not of them. */
export const chooseCommand = (random: Random): Omit<NewCommand, "deviceId"> => {
  const dice = random();
  if (dice < 0.05) return { type: "ping", payload: {}, requiresAck: false };
  if (dice < 0.45) return { type: "ping", payload: {}, requiresAck: true };
  if (dice < 0.7) return { type: "echo", payload: { text: `echo ${Math.floor(random() * 1e6)}` }, requiresAck: true };
  if (dice < 0.82) return { type: "diagnostics", payload: {}, requiresAck: true };
  if (dice < 0.995) return { type: "restart-app", payload: { appId: `app_${Math.floor(random() * 3)}` }, requiresAck: true };
  return { type: "wait", payload: { seconds: Math.round(between(random, 0.1, 1) * 100) / 100 }, requiresAck: true };
};

export const startLoad = ({ portal, ledger, members, perSecond, durationMs, warmUpMs = 0, time, random, graceMs, signal }: LoadOptions): Load => {
  const startMs = time.elapsedMs();
  // Moves nearer when the load is ended early.
  let untilMs = startMs + warmUpMs + durationMs + graceMs;
  const most = Math.max(LEAST_OUTSTANDING, perSecond * OUTSTANDING_SECONDS);
  const state = { outstanding: 0, refused: 0, unresolved: 0, firstProblem: null as string | null };

  const ask = async (command: NewCommand): Promise<void> => {
    const attempts: number[] = [];
    const { commandId, replayed } = await portal.queue(command, randomUUID(), {
      time,
      random,
      onAttempt: () => void attempts.push(time.elapsedMs()),
      get untilMs() {
        return untilMs;
      },
    });
    // A replay means that an earlier attempt did it; the first is the honest start then.
    const sentAtMs = (replayed ? attempts[0] : attempts.at(-1)) ?? time.elapsedMs();
    ledger.accepted(commandId, { deviceId: command.deviceId, requiresAck: command.requiresAck, sentAtMs, isWarmUp: sentAtMs < startMs + warmUpMs });
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
    void ask({ deviceId: member.deviceId, ...chooseCommand(random) })
      .catch(problem)
      .finally(() => {
        state.outstanding -= 1;
      });
  };
  const run = async (): Promise<void> => {
    let launched = 0;
    for (let lastedMs = 0; lastedMs < warmUpMs + durationMs && !signal.aborted; lastedMs = time.elapsedMs() - startMs) {
      const due = Math.floor((lastedMs / 1_000) * perSecond);
      for (; launched < due && state.outstanding < most; launched += 1) launch();
      // What could not be sent while too much was under way is left out, not sent in one burst later.
      launched = Math.max(launched, due);
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
