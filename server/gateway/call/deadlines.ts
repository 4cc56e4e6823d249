// Ends calls that take too long, and those that last and would be refused now.
import { AppError } from "../../core/errors.ts";
import { CHECK_EVERY_MS } from "./stream-reauthorizer.ts";

/** Interval of the deadline check; a call may overrun by this much. */
const LOOK_MS = 250;

export const outOfTime = (): AppError => new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "timeout" } });

export interface TimedCall {
  /** The refusal that the call would get now; null for none. Never rejects. */
  again(): Promise<AppError | null>;
  /** Its caller has an answer. */
  end(): void;
}

interface Waiting {
  /** Its place in the list. */
  at: number;
  looksLeft: number;
  readonly call: Pick<TimedCall, "again">;
  readonly giveUp: (refusal?: AppError) => void;
}

/**
 * Ends calls that take too long, and those that would be refused now. They share one timer: a timer per call costs as much as the rest of a small
 * call.
 */
export const createDeadlines = (callTimeoutMs: number) => {
  const lookMs = Math.min(LOOK_MS, callTimeoutMs);
  const looksPerCheck = Math.ceil(CHECK_EVERY_MS / lookMs);
  const waiting: Waiting[] = [];
  let timer: NodeJS.Timeout | undefined;
  // The last entry takes the free place, so nothing shifts and nothing is allocated.
  const remove = (each: Waiting): void => {
    const last = waiting.pop();
    if (last === undefined || last === each) return;
    waiting[each.at] = last;
    last.at = each.at;
  };
  const checkAgain = async ({ call, giveUp }: Waiting): Promise<void> => {
    const refusal = await call.again();
    if (refusal !== null) giveUp(refusal);
  };
  const look = (): void => {
    for (const each of [...waiting]) {
      each.looksLeft -= 1;
      if (each.looksLeft <= 0) each.giveUp();
      else if (each.looksLeft % looksPerCheck === 0) void checkAgain(each);
    }
    if (waiting.length > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return <T>(work: Promise<T>, withinMs: number, call: TimedCall): Promise<T> =>
    new Promise((resolve, reject) => {
      let left = false;
      const leave = (): void => {
        if (!left) remove(each);
        left = true;
      };
      const giveUp = (refusal = outOfTime()): void => {
        leave();
        reject(refusal);
        call.end();
      };
      // The first tick may come at once.
      const each: Waiting = { at: waiting.length, looksLeft: Math.ceil(withinMs / lookMs) + 1, call, giveUp };
      waiting.push(each);
      timer ??= setInterval(look, lookMs);
      work.then(
        (value) => {
          leave();
          resolve(value);
        },
        (error: unknown) => {
          leave();
          reject(error);
        },
      );
    });
};
