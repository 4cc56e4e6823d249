// Says what an agent or the simulator waits for at its start, so that one that hangs names its reason.
import type { Time } from "./time.ts";

const FIRST_LINE_MS = 2_000;
const NEXT_LINE_MS = 10_000;

export interface StartWait<T> {
  /** What it waits for, such as "the gateway". */
  readonly on: string;
  /** Where that is. */
  readonly at: string;
  /** Call `why` with the newest reason; the next line names it. */
  readonly work: (why: (reason: string) => void) => Promise<T>;
}

/** If the work lasts 2 s, a line says so, and again every 10 s; one more line says that the wait is over. */
export const sayWhileWaiting = async <T>({ on, at, work }: StartWait<T>, time: Time, say: (line: string) => void): Promise<T> => {
  const [since, began] = [new Date(time.wallMs()).toISOString(), time.elapsedMs()];
  let [reason, lines] = ["", 0];
  const lasted = (): number => Math.round((time.elapsedMs() - began) / 1_000);
  const tell = (): void => {
    lines += 1;
    say(`waiting for ${on} at ${at} since ${since}, for ${lasted()} s${reason === "" ? "" : `: ${reason}`}`);
    cancel = time.after(NEXT_LINE_MS, tell);
  };
  let cancel = time.after(FIRST_LINE_MS, tell);
  try {
    const result = await work((newest) => {
      reason = newest;
    });
    if (lines > 0) say(`the wait for ${on} at ${at} ended after ${lasted()} s`);
    return result;
  } finally {
    cancel();
  }
};
