// One run of a load test: so many workers call the endpoints in turn, at a bounded pace, until the time is over or the run is stopped.
import type { LoadTestResults } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { LoadAnswer } from "../../core/ports/load-calls.ts";

export interface LoadPlan {
  readonly durationMs: number;
  readonly concurrency: number;
  readonly endpoints: readonly { readonly endpoint: string; readonly operation: string; readonly target: string }[];
}

export interface LoadRunDeps {
  readonly clock: Clock;
  readonly get: (target: string) => Promise<LoadAnswer>;
  /** Resolves when the next call may begin. */
  readonly turn: (signal: AbortSignal) => Promise<void>;
}

type Measured = Omit<LoadTestResults, "outcome" | "reason" | "finishedAt">;

class Samples {
  readonly times: number[] = [];
  failed = 0;

  add(ms: number, ok: boolean): void {
    this.times.push(ms);
    if (!ok) this.failed += 1;
  }

  get shown(): { requests: number; failed: number; latencyMs: LoadTestResults["latencyMs"] } {
    const sorted = Float64Array.from(this.times).sort();
    const at = (share: number): number => rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
    return { requests: sorted.length, failed: this.failed, latencyMs: { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: rounded(sorted.at(-1) ?? 0) } };
  }
}

const rounded = (ms: number): number => Math.round(ms * 100) / 100;

export const createLoadRun = ({ durationMs, concurrency, endpoints }: LoadPlan, { clock, get, turn }: LoadRunDeps) => {
  const all = new Samples();
  const each = endpoints.map(() => new Samples());
  const errors = new Map<string, number>();
  const startedMs = clock.elapsed();
  let next = 0;

  const callOnce = async (): Promise<void> => {
    const index = next % endpoints.length;
    next += 1;
    const begun = clock.elapsed();
    const { code } = await get(endpoints[index]?.target ?? "");
    const ms = clock.elapsed() - begun;
    all.add(ms, code === null);
    each[index]?.add(ms, code === null);
    if (code !== null) errors.set(code, (errors.get(code) ?? 0) + 1);
  };
  const isOver = (): boolean => clock.elapsed() - startedMs >= durationMs;

  return {
    run: async (signal: AbortSignal): Promise<void> => {
      const worker = async (): Promise<void> => {
        while (!isOver() && !signal.aborted) {
          await turn(signal);
          if (!isOver() && !signal.aborted) await callOnce();
        }
      };
      await Promise.all(Array.from({ length: concurrency }, worker));
    },
    measured: (): Measured => {
      const seconds = (clock.elapsed() - startedMs) / 1_000;
      const shown = all.shown;
      return {
        progress: Math.min(1, rounded((seconds * 1_000) / durationMs)),
        ...shown,
        requestsPerSecond: seconds === 0 ? 0 : rounded(shown.requests / seconds),
        errors: Object.fromEntries(errors),
        endpoints: endpoints.map(({ endpoint, operation }, index) => ({ endpoint, operation, ...(each[index] ?? new Samples()).shown })),
      };
    },
  };
};

/** Gives turns at most so often, to all runs of this node together, so that no test starves other callers. */
export const createPace = (perSecond: number, clock: Clock) => {
  const stepMs = 1_000 / perSecond;
  let nextMs = Number.NEGATIVE_INFINITY;
  return (signal: AbortSignal): Promise<void> => {
    const now = clock.elapsed();
    nextMs = Math.max(now, nextMs + stepMs);
    const waitMs = nextMs - now;
    if (waitMs < 1) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      signal.addEventListener("abort", done, { once: true });
    });
  };
};
