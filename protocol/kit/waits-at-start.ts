// Says what a start waits for, of a gateway, an agent or the simulator, so that one which hangs names its reason.
import type { Time } from "./timers.ts";

const FIRST_LINE_MS = 2_000;
const NEXT_LINE_MS = 10_000;

export interface StartWait<T> {
  /** What somebody waits for, such as "the database". */
  readonly on: string;
  /** Where that is: host and port, or a file. Never a URL with credentials. */
  readonly at: string;
  /** Call `why` with the newest reason; the next line names it. */
  readonly work: (why: (reason: string) => void) => Promise<T>;
}

/** If the work lasts 2 s, a line says so, and again every 10 s; one more line says that the wait is over. The fields are for a structured log. */
export const sayWhileWaiting = async <T>({ on, at, work }: StartWait<T>, time: Time, say: (line: string, fields: object) => void): Promise<T> => {
  const [since, began] = [new Date(time.wallMs()).toISOString(), time.elapsedMs()];
  let [reason, lines] = ["", 0];
  const lasted = (): number => Math.round((time.elapsedMs() - began) / 1_000);
  const tell = (): void => {
    lines += 1;
    say(`waiting for ${on} at ${at} since ${since}, for ${lasted()} s${reason === "" ? "" : `: ${reason}`}`, { on, at, since, reason });
    cancel = time.after(NEXT_LINE_MS, tell);
  };
  let cancel = time.after(FIRST_LINE_MS, tell);
  try {
    const result = await work((newest) => {
      reason = newest;
    });
    if (lines > 0) say(`the wait for ${on} at ${at} ended after ${lasted()} s`, { on, at, since });
    return result;
  } finally {
    cancel();
  }
};
