// Says what a start waits for. Every wait of a start goes through here, so that a start which hangs names its reason.
import { type Clock, isoText, systemClock } from "../core/clock.ts";
import type { Log } from "./telemetry/log.ts";

const FIRST_LINE_MS = 2_000;
const NEXT_LINE_MS = 10_000;

export interface AwaitedPlace {
  /** What somebody waits for, such as "the database". */
  readonly on: string;
  /** Where that is: host and port, or a file. Never a URL with credentials. */
  readonly at: string;
}

/** Notes the newest reason; the next line names it. */
export type Why = (reason: string) => void;

export interface Waits {
  /** Runs the work. If it lasts 2 s, a line says so, and again every 10 s; one more line says that it is over. */
  during<T>(wait: AwaitedPlace, work: (why: Why) => Promise<T>): Promise<T>;
}

export interface WaitsDeps {
  readonly say: (line: string, fields: object) => void;
  readonly clock?: Clock;
}

export const createWaits = ({ say, clock = systemClock }: WaitsDeps): Waits => ({
  during: async ({ on, at }, work) => {
    const [since, began] = [isoText(clock.now()), clock.elapsed()];
    let [reason, lines] = ["", 0];
    const lasted = (): number => Math.round((clock.elapsed() - began) / 1_000);
    const tell = (): void => {
      lines += 1;
      say(`waiting for ${on} at ${at} since ${since}, for ${lasted()} s${reason === "" ? "" : `: ${reason}`}`, { on, at, since, reason });
      timer = setTimeout(tell, NEXT_LINE_MS);
    };
    let timer = setTimeout(tell, FIRST_LINE_MS);
    try {
      const result = await work((newest) => {
        reason = newest;
      });
      if (lines > 0) say(`the wait for ${on} at ${at} ended after ${lasted()} s`, { on, at, since });
      return result;
    } finally {
      clearTimeout(timer);
    }
  },
});

export const loggedWaits = (log: Pick<Log, "warn">): Waits => createWaits({ say: (line, fields) => log.warn(fields, line) });

/** For work that nobody watches, such as a test's. */
export const silentWaits: Waits = createWaits({ say: () => undefined });

/** Host and port of a URL, without its credentials. */
export const placeOf = (url: string): string => new URL(url).host || "a local socket";
