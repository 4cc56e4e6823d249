// Sends what waits for the endpoints, as fast as their pace and the bounds of the tenant and the node allow.

import type { Clock } from "../../../core/clock.ts";
import type { Attempt } from "./attempt.ts";
import type { Runner, Waiting } from "./endpoint-runner.ts";
import { type SettledAttempt, settle } from "./results.ts";
import { createSlots, type SlotLimits } from "./slots.ts";

/** So many runners that had no place may take one that became free. */
const OTHERS = 8;

export interface SenderDeps {
  readonly clock: Clock;
  readonly attempt: Attempt;
  readonly settings: SlotLimits;
  readonly signal: AbortSignal;
  readonly ask: (runner: Runner) => void;
  readonly settled: (settled: SettledAttempt) => void;
}

export const createSender = ({ clock, attempt, settings, signal, ask, settled }: SenderDeps) => {
  const slots = createSlots(settings);
  /** The runners that had no place; they go first, in turn. */
  const starved = new Set<Runner>();
  const paced = new Map<Runner, NodeJS.Timeout>();
  const running = new Set<Promise<void>>();

  const send = async (runner: Runner, waiting: Waiting): Promise<void> => {
    const { state } = runner;
    const outcome = state === null ? null : await attempt(state, waiting, signal);
    slots.free(runner.tenantId);
    if (outcome === null) runner.dropped(waiting);
    else {
      const result = settle(runner, waiting, outcome, clock.now());
      runner.ended(waiting, outcome.attempt.error === null);
      // Nothing more goes to an endpoint that is about to be disabled.
      if (result.effects.some(({ kind }) => kind === "disable")) runner.stopSending();
      settled(result);
    }
    if (signal.aborted) return;
    pumpOthers();
    pump(runner);
  };

  const pumpOthers = (): void => {
    let left = Math.min(OTHERS, starved.size);
    for (const next of starved) {
      if (left-- === 0) return;
      starved.delete(next);
      if (slots.isFree(next.tenantId)) pump(next);
      else starved.add(next);
    }
  };

  const later = (runner: Runner, ms: number): void => {
    if (paced.has(runner)) return;
    const again = setTimeout(() => {
      paced.delete(runner);
      pump(runner);
    }, Math.ceil(ms));
    paced.set(runner, again);
  };

  /** Begins the next request, if one may begin now. */
  const begin = (runner: Runner): boolean => {
    const pause = runner.pause(clock.elapsed());
    if (signal.aborted || pause === null) return false;
    if (pause > 0) later(runner, pause);
    else if (!slots.take(runner.tenantId)) starved.add(runner);
    else {
      const waiting = runner.take();
      if (waiting === undefined) throw new Error("a runner without a pause has something to send");
      const sending = send(runner, waiting).finally(() => running.delete(sending));
      running.add(sending);
      return true;
    }
    return false;
  };
  const pump = (runner: Runner): void => {
    starved.delete(runner);
    while (begin(runner));
    if (!signal.aborted) ask(runner);
  };

  return {
    pump,
    isFree: () => slots.total() < settings.perNode,
    /** After the signal. */
    idle: async (): Promise<void> => {
      for (const timer of paced.values()) clearTimeout(timer);
      await Promise.allSettled(running);
    },
  };
};
