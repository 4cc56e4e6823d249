// Waits until an assertion holds by trying it again, so that no test guesses how long that takes.
import { setTimeout as delay } from "node:timers/promises";

const BOUND_MS = 20_000;
const STEP_MS = 20;

interface Patience {
  readonly boundMs?: number;
  /** Between two tries. An expensive one may ask for more. */
  readonly stepMs?: number;
}

/** Resolves with the first result that does not throw; after the bound, rejects with the last error. */
export const eventually = async <T>(ask: () => T | Promise<T>, patience: number | Patience = BOUND_MS): Promise<T> => {
  const { boundMs = BOUND_MS, stepMs = STEP_MS } = typeof patience === "number" ? { boundMs: patience } : patience;
  const deadline = performance.now() + boundMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await delay(stepMs);
    }
  }
};
