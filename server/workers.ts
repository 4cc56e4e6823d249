// Several gateway processes on one port: starts them, starts again whoever dies, replaces them one after another, and passes on the order to stop.
// It serves nothing itself.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "./platform/log.ts";

export interface WorkersDeps {
  readonly count: number;
  /** The program of a worker; it is told its number by `--worker`, and by `--generation` how often all were replaced before. */
  readonly script: string;
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
  /** Replaces all, one after another: each new one serves before the old one is told to leave. Rejects, and goes no further, when a new one does not start. */
  renew(): Promise<void>;
  /** Resolves with the exit code once all have ended. A second call ends them at once. */
  stop(): Promise<number>;
  pids(): readonly number[];
}

const BACKOFF: Backoff = { baseMs: 500, capMs: 30_000, stableMs: 60_000 };
/** What a worker says when it serves. */
export const READY = "ready";
/** What it is told when another serves in its place. */
export const REPLACED = "replaced";

/** One process in the place of a worker. */
interface Life {
  readonly child: ChildProcess;
  /** Rejects when it ends before. */
  readonly ready: Promise<void>;
  readonly ended: Promise<number>;
}

const begin = (script: string, index: number, generation: number): Life => {
  const child = fork(script, ["--worker", String(index), "--generation", String(generation)], { stdio: "inherit" });
  const ended = once(child, "exit").then(([code]) => (code as number | null) ?? 1);
  const ready = new Promise<void>((resolve, reject) => {
    child.on("message", (word) => {
      if (word === READY) resolve();
    });
    void ended.then((code) => reject(new Error(`worker ${index} ended with ${code} before it was ready`)));
  });
  // Not everybody waits for it.
  ready.catch(() => undefined);
  return { child, ready, ended };
};

export const startWorkers = ({ count, script, log, backoff = BACKOFF }: WorkersDeps): Workers => {
  const living = new Set<Life>();
  const current = new Map<number, Life>();
  /** Who takes over when the one in place ends. */
  const heirs = new Map<number, Life>();
  const stopping = new AbortController();
  let orders = 0;
  let generations = 0;
  let renewing: Promise<void> | null = null;

  const start = (index: number, generation: number): Life => {
    const life = begin(script, index, generation);
    living.add(life);
    void life.ended.then(() => living.delete(life));
    return life;
  };

  /** Keeps one place filled; answers the exit code of the last who held it. */
  const keep = async (index: number): Promise<number> => {
    let failures = 0;
    for (;;) {
      const startedAt = performance.now();
      const life = heirs.get(index) ?? start(index, 0);
      heirs.delete(index);
      current.set(index, life);
      const code = await life.ended;
      if (stopping.signal.aborted) return code;
      if (heirs.has(index)) continue;
      failures = performance.now() - startedAt >= backoff.stableMs ? 0 : failures + 1;
      const pauseMs = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.max(0, failures - 1));
      log.error({ worker: index, code, pauseMs }, "a worker ended; starting it again");
      await delay(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return code;
    }
  };

  const renewOne = async (index: number): Promise<void> => {
    const old = current.get(index);
    const heir = start(index, generations);
    heirs.set(index, heir);
    try {
      await heir.ready;
    } catch (error) {
      if (heirs.get(index) === heir) heirs.delete(index);
      throw error;
    }
    if (old === undefined || !living.has(old)) return;
    old.child.send(REPLACED);
    await old.ended;
  };

  const renewAll = async (): Promise<void> => {
    generations += 1;
    for (let index = 0; index < count && !stopping.signal.aborted; index += 1) await renewOne(index);
  };

  const places = Array.from({ length: count }, (_, index) => keep(index));
  return {
    ready: Promise.all([...current.values()].map(({ ready }) => ready)).then(() => undefined),
    renew: () => {
      renewing ??= renewAll().finally(() => {
        renewing = null;
      });
      return renewing;
    },
    stop: async () => {
      stopping.abort();
      orders += 1;
      for (const { child } of living) child.kill(orders > 1 ? "SIGKILL" : "SIGTERM");
      const codes = await Promise.all([...places, ...[...living].map(({ ended }) => ended)]);
      return Math.max(...codes);
    },
    pids: () => [...living].flatMap(({ child: { pid } }) => (pid === undefined ? [] : [pid])),
  };
};
