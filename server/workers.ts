// Supervisor of several gateway processes on one port: starts them, restarts one that dies, replaces them one by one and forwards the signal to stop.
// It serves no requests itself.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "./platform/telemetry/log.ts";

export interface WorkersDeps {
  readonly count: number;
  /** The program of a worker. `--worker` passes its number, `--generation` how often all workers were replaced before. */
  readonly script: string;
  readonly log: Log;
  readonly backoff?: Backoff;
  /** Words that every worker gets beside its number. */
  readonly words?: readonly string[];
}

/** A connection of the edge, as the supervisor hands it to a worker. */
export type EdgeKind = "edge" | "edge-http";
export const isEdgeKind = (message: unknown): message is EdgeKind => message === "edge" || message === "edge-http";

export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
  /** A worker that ran this long resets the backoff. */
  readonly stableMs: number;
}

export interface Workers {
  /** Resolves when all workers serve for the first time; rejects when one ends before that. */
  readonly ready: Promise<void>;
  /** Rolling restart: each new worker serves before the old one shuts down. Stops and rejects when a new one does not start. */
  renew(): Promise<void>;
  /** Resolves with the exit code once all workers have ended. A second call kills them. */
  stop(): Promise<number>;
  pids(): readonly number[];
  /** Sends this to one worker that serves. */
  tell(message: object): void;
  /** Hands a connection to the workers that serve, in turn. */
  hand(kind: EdgeKind, socket: Socket): void;
}

const BACKOFF: Backoff = { baseMs: 500, capMs: 30_000, stableMs: 60_000 };
/** A worker sends this when it serves. */
export const READY = "ready";
/** A worker gets this when its successor serves. */
export const REPLACED = "replaced";

/** One process of a worker. */
interface WorkerProcess {
  readonly child: ChildProcess;
  /** Rejects when the process ends before it serves. */
  readonly ready: Promise<void>;
  readonly ended: Promise<number>;
}

const begin = (script: string, words: readonly string[]): WorkerProcess => {
  const child = fork(script, words, { stdio: "inherit" });
  const ended = once(child, "exit").then(([code]) => (code as number | null) ?? 1);
  const ready = new Promise<void>((resolve, reject) => {
    child.on("message", (word) => {
      if (word === READY) resolve();
    });
    void ended.then((code) => reject(new Error(`worker ${words[1]} ended with ${code} before it was ready`)));
  });
  // Not every caller waits for it.
  ready.catch(() => undefined);
  return { child, ready, ended };
};

export const startWorkers = ({ count, script, log, backoff = BACKOFF, words = [] }: WorkersDeps): Workers => {
  const running = new Set<WorkerProcess>();
  const current = new Map<number, WorkerProcess>();
  /** The successor of a worker that is about to be replaced. */
  const successors = new Map<number, WorkerProcess>();
  /** The worker of each number that serves now. */
  const serving = new Map<number, WorkerProcess>();
  const stopping = new AbortController();
  let turn = 0;
  let stops = 0;
  let generations = 0;
  let renewing: Promise<void> | null = null;

  const start = (index: number, generation: number): WorkerProcess => {
    const worker = begin(script, ["--worker", String(index), "--generation", String(generation), ...words]);
    running.add(worker);
    void worker.ready.then(
      () => serving.set(index, worker),
      () => undefined,
    );
    void worker.ended.then(() => {
      running.delete(worker);
      if (serving.get(index) === worker) serving.delete(index);
    });
    return worker;
  };

  /** Keeps one worker running; returns the exit code of its last process. */
  const keep = async (index: number): Promise<number> => {
    let failures = 0;
    for (;;) {
      const startedAt = performance.now();
      const worker = successors.get(index) ?? start(index, 0);
      successors.delete(index);
      current.set(index, worker);
      const code = await worker.ended;
      if (stopping.signal.aborted) return code;
      if (successors.has(index)) continue;
      failures = performance.now() - startedAt >= backoff.stableMs ? 0 : failures + 1;
      const pauseMs = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.max(0, failures - 1));
      log.error({ worker: index, code, pauseMs }, "restarting a worker that ended");
      await delay(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return code;
    }
  };

  const renewOne = async (index: number): Promise<void> => {
    const old = current.get(index);
    const successor = start(index, generations);
    successors.set(index, successor);
    try {
      await successor.ready;
    } catch (error) {
      if (successors.get(index) === successor) successors.delete(index);
      throw error;
    }
    if (old === undefined || !running.has(old)) return;
    old.child.send(REPLACED);
    await old.ended;
  };

  const renewAll = async (): Promise<void> => {
    generations += 1;
    for (let index = 0; index < count && !stopping.signal.aborted; index += 1) await renewOne(index);
  };

  const kept = Array.from({ length: count }, (_, index) => keep(index));
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
      stops += 1;
      for (const { child } of running) child.kill(stops > 1 ? "SIGKILL" : "SIGTERM");
      const codes = await Promise.all([...kept, ...[...running].map(({ ended }) => ended)]);
      return Math.max(...codes);
    },
    tell: (message) => void [...current.values()].find(({ child }) => child.connected)?.child.send(message),
    hand: (kind, socket) => {
      const ready = [...serving.values()].filter(({ child }) => child.connected);
      const worker = ready[turn % Math.max(1, ready.length)];
      turn += 1;
      if (worker === undefined) return void socket.destroy();
      worker.child.send(kind, socket, (error) => {
        if (error !== null) socket.destroy();
      });
    },
    pids: () => [...running].flatMap(({ child: { pid } }) => (pid === undefined ? [] : [pid])),
  };
};

/** Accepts the connections of one port of the edge for all workers: each speaks for as long as it likes, so the port outlives every worker. */
export const acceptFor = async (workers: Pick<Workers, "hand">, kind: EdgeKind, at: { readonly host: string; readonly port: number }): Promise<Server> => {
  const server = createServer({ pauseOnConnect: true }, (socket) => workers.hand(kind, socket));
  server.listen({ ...at, exclusive: true });
  await once(server, "listening");
  return server;
};
