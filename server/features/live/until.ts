// Waits until a record is what its caller waits for: reads it, and reads it again at each event about it.
import type { TenantScope } from "../../core/scope.ts";
import type { createFeed } from "./feed.ts";
import type { createStreamCount } from "./streams.ts";

export interface Awaiting<T> {
  readonly subjectId: string;
  readonly seconds: number;
  readonly signal: AbortSignal;
  readonly read: () => Promise<T>;
  readonly isDone: (record: T) => boolean;
}
/** Resolves to the record as it is at the end, when the time is over, too. */
export type Until = <T>(scope: TenantScope, awaited: Awaiting<T>) => Promise<T>;

/** Not every step of a record is an event. */
const REREAD_MS = 2_000;

export const createUntil =
  (feed: Pick<ReturnType<typeof createFeed>, "join">, takePlace: ReturnType<typeof createStreamCount>): Until =>
  async (scope, { subjectId, seconds, signal, read, isDone }) => {
    const place = takePlace(scope);
    let stir = (): void => undefined;
    let isStirred = false;
    let isOver = signal.aborted;
    const wake = (): void => {
      isStirred = true;
      stir();
    };
    const next = (): Promise<void> =>
      new Promise((resolve) => {
        stir = resolve;
        if (isStirred) resolve();
      });
    const { ready, leave } = feed.join(scope.tenantId, ({ event }) => {
      if (event.subjectId === subjectId) wake();
    });
    const reread = setInterval(wake, REREAD_MS);
    const end = (): void => {
      isOver = true;
      wake();
    };
    const timer = setTimeout(end, seconds * 1_000);
    signal.addEventListener("abort", end, { once: true });
    try {
      await ready;
      for (;;) {
        isStirred = false;
        const record = await read();
        if (isDone(record) || isOver) return record;
        await next();
      }
    } finally {
      clearInterval(reread);
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      leave();
      place();
    }
  };
