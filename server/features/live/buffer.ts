// A bounded queue between publishers and one reader: it never blocks a publisher and cuts off a reader that is too slow.
import { AppError } from "../../core/errors.ts";

export interface Buffer<T> extends AsyncIterable<T> {
  readonly push: (item: T) => void;
  /** Ends the stream at once and drops the items that wait. */
  readonly end: () => void;
}

export const createBuffer = <T>(max: number): Buffer<T> => {
  let items: T[] = [];
  let state: "open" | "overflown" | "ended" = "open";
  let wake: (() => void) | null = null;
  const changed = (): void => {
    wake?.();
    wake = null;
  };

  return {
    push: (item) => {
      if (state !== "open") return;
      if (items.length < max) items.push(item);
      else state = "overflown";
      changed();
    },
    end: () => {
      state = "ended";
      changed();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        // Read through `current`, since push and end change it between two turns.
        const current = state as "open" | "overflown" | "ended";
        if (current === "ended") return;
        const taken = items;
        items = [];
        for (const item of taken) yield item;
        if (taken.length > 0) continue;
        // The client resumes after the last id that it received.
        if (current === "overflown") throw new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "slow_consumer" } });
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
};
