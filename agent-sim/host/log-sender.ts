// Sends lines of apps' logs to the gateway, in chunks: the end of a log, or what comes for as long as somebody watches. Reads no faster than it can send.
import { z } from "zod";
import type { LogChunkHead, LogLine } from "../../protocol/index.ts";
import { type Agent, callWithRetry, hasSucceeded, NoAnswer, noop, pause, type Time } from "../agent/index.ts";
import { type Host, refuse } from "./host.ts";
import { toLogLine } from "./log-line.ts";

const PATH = "/v1/agent/logs";
const LOOK_MS = 500;
/** The gateway learns that the agent still follows, and the agent whether anybody watches. */
const KEEP_ALIVE_MS = 15_000;
/** Then the gateway has given the follow up. */
const PATIENCE_MS = 40_000;
const MAX_CHUNK_BYTES = 196_608;
const MAX_WAITING_BYTES = 524_288;
const MAX_TAIL_BYTES = 1_048_576;
const MAX_TAIL_LINES = 1_000;
const MAX_FOLLOWS = 16;

const Answer = z.object({ data: z.object({ watched: z.boolean() }) });

export interface TailOrder {
  readonly appId: string;
  readonly followId: string;
  readonly tail: number;
  readonly since: string | null;
}

export interface FollowOrder {
  readonly appId: string;
  readonly followId: string;
  readonly seconds: number;
  readonly since: string | null;
}

export interface LogSender {
  /** Resolves once the gateway has the lines. Rejects with HostFailure for an app that is not there. */
  sendTail(order: TailOrder): Promise<{ readonly lines: number }>;
  /** Begins to send, or goes on until the new time. */
  follow(order: FollowOrder): { readonly until: string };
  stop(): void;
}

export interface LogSenderOptions {
  readonly host: Pick<Host, "tail" | "follow">;
  readonly call: Agent["call"];
  readonly time: Time;
}

/** A queue of encoded lines with a known size. */
const createLines = () => {
  const lines: string[] = [];
  let bytes = 0;
  return {
    push: (line: LogLine): void => {
      const text = JSON.stringify(line);
      bytes += Buffer.byteLength(text) + 1;
      lines.push(text);
    },
    /** As many as fit into a chunk. */
    take: (): string[] => {
      const taken: string[] = [];
      for (let left = MAX_CHUNK_BYTES; lines[0] !== undefined; ) {
        const size = Buffer.byteLength(lines[0]) + 1;
        if (size > left) break;
        left -= size;
        bytes -= size;
        taken.push(lines.shift() as string); // as: there is one
      }
      return taken;
    },
    get bytes() {
      return bytes;
    },
    get length() {
      return lines.length;
    },
  };
};
type Lines = ReturnType<typeof createLines>;

interface Follow {
  readonly abort: AbortController;
  readonly waiting: Lines;
  untilMs: number;
  /** The app logs nothing more. */
  isOver: boolean;
}

const sinceMs = (since: string | null): number => (since === null ? Number.NEGATIVE_INFINITY : Date.parse(since));
/** The newest lines that fit. */
const bounded = (lines: readonly LogLine[]): readonly LogLine[] => {
  let left = MAX_TAIL_BYTES;
  const first = lines.findLastIndex((line) => {
    left -= Buffer.byteLength(line.text) + 80;
    return left < 0;
  });
  return lines.slice(first + 1);
};

export const createLogSender = ({ host, call, time }: LogSenderOptions): LogSender => {
  const follows = new Map<string, Follow>();
  const stopped = new AbortController();

  /** Returns whether the gateway wants more. */
  const send = async (head: Partial<LogChunkHead>, lines: readonly string[], signal: AbortSignal): Promise<boolean> => {
    const chunk = [JSON.stringify(head), ...lines, ""].join("\n");
    const retry = { time, random: Math.random, untilMs: time.elapsedMs() + PATIENCE_MS, signal };
    try {
      const answer = await callWithRetry(() => call("POST", PATH, chunk), retry);
      return hasSucceeded(answer) && Answer.safeParse(answer.body).data?.data.watched === true;
    } catch (error) {
      if (error instanceof NoAnswer) return false;
      throw error;
    }
  };
  const read = async (appId: string, count: number, since: string | null): Promise<readonly LogLine[]> => {
    const lines = await host.tail(appId, count);
    return lines.map((line) => toLogLine(line, time.wallMs())).filter(({ at }) => Date.parse(at) >= sinceMs(since));
  };

  /** Reads on only while there is room: what waits is in the log itself. */
  const collect = async (coming: AsyncIterable<string>, { abort: { signal }, waiting }: Follow): Promise<void> => {
    for await (const line of coming) {
      waiting.push(toLogLine(line, time.wallMs()));
      while (waiting.bytes > MAX_WAITING_BYTES && !signal.aborted) await pause(time, LOOK_MS, signal);
    }
  };
  const sendWaiting = async (followId: string, follow: Follow): Promise<void> => {
    const { abort, waiting } = follow;
    let sentAtMs = Number.NEGATIVE_INFINITY;
    for (let n = 1; !abort.signal.aborted && time.elapsedMs() < follow.untilMs; ) {
      const { isOver } = follow;
      if (waiting.length > 0 || isOver || time.elapsedMs() - sentAtMs >= KEEP_ALIVE_MS) {
        const lines = waiting.take();
        const done = isOver && waiting.length === 0;
        if (!(await send({ followId, n, done }, lines, abort.signal)) || done) return;
        n += 1;
        sentAtMs = time.elapsedMs();
      }
      await pause(time, LOOK_MS, abort.signal);
    }
  };
  const run = async (followId: string, follow: Follow, coming: AsyncIterable<string>): Promise<void> => {
    const reading = collect(coming, follow).finally(() => {
      follow.isOver = true;
    });
    try {
      await sendWaiting(followId, follow);
    } finally {
      follow.abort.abort();
      follows.delete(followId);
      await reading.catch(noop);
    }
  };

  return {
    sendTail: async ({ appId, followId, tail, since }) => {
      const all = await read(appId, tail, since);
      const lines = bounded(all);
      const waiting = createLines();
      for (const line of lines) waiting.push(line);
      for (let n = 1, watched = true; watched && (n === 1 || waiting.length > 0); n += 1) {
        const part = waiting.take();
        watched = await send({ followId, n, done: waiting.length === 0, truncated: lines.length < all.length }, part, stopped.signal);
      }
      return { lines: lines.length };
    },
    follow: ({ appId, followId, seconds, since }) => {
      const untilMs = time.elapsedMs() + seconds * 1_000;
      const until = new Date(time.wallMs() + seconds * 1_000).toISOString();
      const known = follows.get(followId);
      if (known !== undefined) {
        known.untilMs = untilMs;
        return { until };
      }
      if (follows.size >= MAX_FOLLOWS) return refuse("TOO_MANY_FOLLOWS", `the agent follows at most ${MAX_FOLLOWS} logs`);
      const follow: Follow = { abort: new AbortController(), waiting: createLines(), untilMs, isOver: false };
      const coming = host.follow(appId, follow.abort.signal);
      follows.set(followId, follow);
      const missed = since === null ? Promise.resolve([]) : read(appId, MAX_TAIL_LINES, new Date(sinceMs(since) + 1).toISOString());
      void missed
        .then((lines) => {
          for (const line of lines) follow.waiting.push(line);
          return run(followId, follow, coming);
        })
        .catch(noop);
      return { until };
    },
    stop: () => {
      stopped.abort();
      for (const { abort } of follows.values()) abort.abort();
    },
  };
};

const asked = { appId: z.string().min(1).max(128), followId: z.string().min(1).max(64), since: z.iso.datetime({ offset: true }).nullable() };
export const TailPayload = z.object({ ...asked, tail: z.int().min(1).max(MAX_TAIL_LINES) });
export const FollowPayload = z.object({ ...asked, seconds: z.int().min(1).max(3_600) });
