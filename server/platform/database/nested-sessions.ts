// Finds a mistake that can stop a whole class of work: a transaction that asks for a second session waits for itself once as many do so as the class has
// sessions. Tests turn it on.
import { AsyncLocalStorage } from "node:async_hooks";
import { isNamed, type Work } from "../../core/work.ts";

interface Holding {
  readonly work: Work;
  isOpen: boolean;
}

const held = new AsyncLocalStorage<Holding>();
let isRefused = false;

export const refuseNestedSessions = (): void => {
  isRefused = true;
};

/** Runs what a transaction does. */
export const holdingSession = async <T>(work: Work, run: () => Promise<T>): Promise<T> => {
  if (!isRefused) return run();
  const holding: Holding = { work, isOpen: true };
  try {
    return await held.run(holding, run);
  } finally {
    holding.isOpen = false;
  }
};

/** Work of its own, such as the relay that a transaction wakes, is nobody's second session. Nor is what a test does by itself: calls and jobs have names. */
export const requireNotNested = (work: Work): void => {
  const holding = held.getStore();
  if (holding?.isOpen === true && holding.work === work && isNamed(work))
    throw new Error("a transaction asks for a second session; pass it on to whoever reads");
};
