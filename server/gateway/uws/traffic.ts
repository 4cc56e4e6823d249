// Counts a listener's open connections, unanswered requests and streams, and so knows when it can close without cutting anybody off.
import type { LazyAbortController } from "../../core/lifecycle/lazy-abort.ts";

export interface Traffic {
  /** What ends each open stream. */
  readonly streams: Set<LazyAbortController>;
  /** Changes the count of connections, sockets aside. */
  connected(change: number): void;
  began(): void;
  ended(): void;
  leave(lingerMs: number): void;
  readonly isLeaving: boolean;
  /** Resolves when no request waits for its answer and, after `leave`, when all connections have gone or had their time. */
  quiet(): Promise<void>;
}

const ANSWERED_WITHIN_MS = 10_000;
const LOOK_MS = 20;

export const createTraffic = (): Traffic => {
  const streams = new Set<LazyAbortController>();
  let underWay = 0;
  let connections = 0;
  let untilMs: number | null = null;

  // A request may be on its way over a connection that looks idle, so we never end one: its next answer, its caller or the idle timeout does.
  const isBusy = (sinceMs: number): boolean => {
    const now = performance.now();
    return (underWay > 0 && now - sinceMs < ANSWERED_WITHIN_MS) || (connections > 0 && now < (untilMs ?? 0));
  };

  return {
    streams,
    connected: (change) => {
      connections += change;
    },
    began: () => {
      underWay += 1;
    },
    ended: () => {
      underWay -= 1;
    },
    leave: (lingerMs) => {
      untilMs ??= performance.now() + lingerMs;
    },
    get isLeaving() {
      return untilMs !== null;
    },
    quiet: async () => {
      for (const sinceMs = performance.now(); isBusy(sinceMs); ) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    },
  };
};
