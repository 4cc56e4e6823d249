// Says what a start waits for. Every wait of a start goes through here, so that a start which hangs names its reason.
import { systemTimers } from "../../protocol/kit/timers.ts";
import { type StartWait, sayWhileWaiting } from "../../protocol/kit/waits-at-start.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "./telemetry/log.ts";

export type AwaitedPlace = Pick<StartWait<unknown>, "on" | "at">;

/** Notes the newest reason; the next line names it. */
export type Why = (reason: string) => void;

export interface Waits {
  /** Runs the work. If it lasts 2 s, a line says so, and again every 10 s; one more line says that it is over. */
  during<T>(wait: AwaitedPlace, work: (why: Why) => Promise<T>): Promise<T>;
}

export interface WaitsDeps {
  readonly say: (line: string, fields: object) => void;
  readonly clock: Clock;
}

export const createWaits = ({ say, clock }: WaitsDeps): Waits => {
  const time = { wallMs: () => clock.now().getTime(), elapsedMs: clock.elapsed, after: systemTimers.after };
  return { during: ({ on, at }, work) => sayWhileWaiting({ on, at, work }, time, say) };
};

export const loggedWaits = ({ log, clock }: { readonly log: Pick<Log, "warn">; readonly clock: Clock }): Waits =>
  createWaits({ clock, say: (line, fields) => log.warn(fields, line) });

/** For work that nobody watches, such as a test's. */
export const silentWaits: Waits = { during: (_wait, work) => work(() => undefined) };

/** Hosts and ports of a URL, without its credentials. */
export const placeOf = (url: string): string => /^\w+:\/\/(?:[^@/?#]*@)?([^/?#]*)/.exec(url)?.[1] || "a local socket";
