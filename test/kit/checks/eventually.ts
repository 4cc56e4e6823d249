// Waits until an assertion holds by trying it again, so that no test guesses how long that takes.
import { setTimeout as delay } from "node:timers/promises";

const BOUND_MS = 10_000;
const STEP_MS = 20;

/** Resolves with the first result that does not throw; after the bound, rejects with the last error. */
export const eventually = async <T>(ask: () => T | Promise<T>, boundMs = BOUND_MS): Promise<T> => {
  const deadline = performance.now() + boundMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await delay(STEP_MS);
    }
  }
};
