// Several gateway processes on one port: starts them, starts again whoever dies, and passes on the order to stop. It serves nothing itself.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "./platform/log.ts";

export interface WorkersDeps {
  readonly count: number;
  /** The program of a worker; it is told its number by `--worker`. */
  readonly script: string;
  readonly listenOn: { readonly host: string; readonly port: number };
  readonly log: Log;
  readonly backoff?: Backoff;
}

export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
  /** Who lived this long begins anew. */
  readonly stableMs: number;
}

export interface Workers {
  /** Resolves when all serve for the first time; rejects when one ends before that. */
  readonly ready: Promise<void>;
  /** Resolves with the exit code once all have ended. A second call ends them at once. */
  stop(): Promise<number>;
  pids(): readonly number[];
}

const BACKOFF: Backoff = { baseMs: 500, capMs: 30_000, stableMs: 60_000 };
export const READY = "ready";

/** The port is shared among the workers; nobody else may have it. */
export const checkFree = async ({ host, port }: WorkersDeps["listenOn"]): Promise<void> => {
  const probe = createServer();
  probe.listen({ host, port, exclusive: true });
  await once(probe, "listening");
  probe.close();
  await once(probe, "close");
};

export const startWorkers = ({ count, script, log, backoff = BACKOFF }: Omit<WorkersDeps, "listenOn">): Workers => {
  const children = new Map<number, ChildProcess>();
  const stopping = new AbortController();
  let orders = 0;

  /** One life of one worker. */
  const live = async (index: number, onReady: () => void): Promise<number> => {
    const child = fork(script, ["--worker", String(index)], { stdio: "inherit" });
    children.set(index, child);
    child.on("message", (word) => {
      if (word === READY) onReady();
    });
    const [code] = (await once(child, "exit")) as [number | null];
    children.delete(index);
    return code ?? 1;
  };

  const keep = async (index: number, first: { resolve(): void; reject(error: Error): void }): Promise<number> => {
    let failures = 0;
    for (;;) {
      const startedAt = performance.now();
      const code = await live(index, first.resolve);
      if (stopping.signal.aborted) return code;
      first.reject(new Error(`worker ${index} ended with ${code} before it was ready`));
      failures = performance.now() - startedAt >= backoff.stableMs ? 0 : failures + 1;
      const pauseMs = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.max(0, failures - 1));
      log.error({ worker: index, code, pauseMs }, "a worker ended; starting it again");
      await delay(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return code;
    }
  };

  const lives: Promise<number>[] = [];
  const readies = Array.from({ length: count }, (_, index) => new Promise<void>((resolve, reject) => void lives.push(keep(index, { resolve, reject }))));
  return {
    ready: Promise.all(readies).then(() => undefined),
    stop: async () => {
      stopping.abort();
      orders += 1;
      for (const child of children.values()) child.kill(orders > 1 ? "SIGKILL" : "SIGTERM");
      return Math.max(...(await Promise.all(lives)));
    },
    pids: () => [...children.values()].flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
  };
};
