// Waits until an assertion holds by trying it again, so that no test guesses how long that takes.
import { setTimeout as delay } from "node:timers/promises";

const BOUND_MS = 20_000;
/** Soon again at first; later a try costs the processor more than it could save. */
const STEP_MS = 20;
const LONGEST_STEP_MS = 100;
const GROWTH = 1.5;

interface Patience {
  readonly boundMs?: number;
  /** Between the first two tries. An expensive one may ask for more. */
  readonly stepMs?: number;
}

/** Resolves with the first result that does not throw; after the bound, rejects with the last error. */
export const eventually = async <T>(ask: () => T | Promise<T>, patience: number | Patience = BOUND_MS): Promise<T> => {
  const { boundMs = BOUND_MS, stepMs = STEP_MS } = typeof patience === "number" ? { boundMs: patience } : patience;
  const deadline = performance.now() + boundMs;
  for (let waitMs = stepMs; ; waitMs = Math.max(stepMs, Math.min(LONGEST_STEP_MS, waitMs * GROWTH))) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await delay(waitMs);
    }
  }
};
