// HTTP calls with keep-alive, a time limit, and retries that follow the gateway's Retry-After. Every answer is the gateway's own; see answers.ts.
import http from "node:http";
import https from "node:https";
import { type Expected, errorOf, type HttpAnswer, isWorthRetry, NoAnswer, ownAnswer, retryAfterMs } from "./answers.ts";
import { createConnections } from "./proxies.ts";
import { between, type Random } from "./timing/random.ts";
import { pause, systemTime, type Time } from "./timing/time.ts";

/** Without a byte. */
const IDLE_MS = 20_000;
/** From the request to the last byte of its answer. */
const WITHIN_MS = 60_000;
const MAX_ANSWER_BYTES = 16_777_216;

export interface HttpCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below the base URL, with a leading slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent unchanged, because it may be signed. */
  readonly body?: string;
  /** The body's type; default: JSON. */
  readonly type?: string;
  /** What the answer is; default: an envelope. */
  readonly expects?: Expected;
  readonly withinMs?: number;
}

export interface Http {
  /** Rejects with NoAnswer if the network fails, or if something else than the gateway answers. Follows no redirect. */
  call(request: HttpCall): Promise<HttpAnswer>;
  close(): void;
}

const read = (response: http.IncomingMessage, done: (text: string | null) => void): void => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) response.destroy(new Error("the response is too large"));
    else chunks.push(chunk);
  });
  response.on("end", () => done(Buffer.concat(chunks).toString("utf8")));
  response.on("error", () => done(null));
};

export const createHttp = (url: string, maxSockets = 64): Http => {
  const base = new URL(url);
  const prefix = base.pathname.replace(/\/+$/, "");
  const secure = base.protocol === "https:";
  const pool = createConnections(secure, { keepAlive: true, maxSockets });

  return {
    close: () => pool.destroy(),
    call: ({ method, path, headers = {}, body, type = "application/json", expects, withinMs = WITHIN_MS }) =>
      new Promise((resolve, reject) => {
        const all = { ...headers, ...(body === undefined ? {} : { "content-type": type, "content-length": String(Buffer.byteLength(body)) }) };
        const request = (secure ? https : http).request({
          agent: pool,
          protocol: base.protocol,
          hostname: base.hostname.replace(/^\[|\]$/g, ""),
          port: base.port,
          method,
          path: prefix + path,
          headers: all,
        });
        const cancel = systemTime.after(withinMs, () => request.destroy(new Error("the answer took too long")));
        const fail = (error: Error): void => {
          cancel();
          reject(error instanceof NoAnswer ? error : new NoAnswer(error.message, { cause: error }));
        };
        const take = (response: http.IncomingMessage, text: string | null): void => {
          cancel();
          try {
            if (text === null) throw new NoAnswer("the response was cut off");
            resolve(ownAnswer({ status: response.statusCode ?? 0, headers: response.headers, text }, expects));
          } catch (error) {
            reject(error);
          }
        };
        request.on("response", (response) => read(response, (text) => take(response, text)));
        request.setTimeout(IDLE_MS, () => request.destroy(new Error("the request timed out")));
        request.on("error", fail);
        request.end(body);
      }),
  };
};

export interface RetryOptions {
  readonly time: Time;
  readonly random: Random;
  /** Deadline on the monotonic clock. */
  readonly untilMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onRetry?: (why: string) => void;
}

const STEP_MS = { base: 200, cap: 5_000 };

/** Retries until the answer is final. Rejects with NoAnswer at the deadline. `attempt` must be safe to repeat. */
export const callWithRetry = async (attempt: () => Promise<HttpAnswer>, { time, random, untilMs, signal, onRetry }: RetryOptions): Promise<HttpAnswer> => {
  for (let n = 0; ; n += 1) {
    const answer = await attempt().catch((error: unknown) => {
      if (error instanceof NoAnswer) return error;
      throw error;
    });
    if (!(answer instanceof NoAnswer) && !isWorthRetry(answer)) return answer;
    const why = answer instanceof NoAnswer ? answer.message : `${answer.status} ${errorOf(answer).code}`;
    const told = answer instanceof NoAnswer ? null : retryAfterMs(answer);
    const waitMs =
      told === null ? random() * Math.min(STEP_MS.cap, STEP_MS.base * 2 ** Math.min(n, 10)) : told * between(random, 1, 1.1) + random() * STEP_MS.base;
    if (signal?.aborted || time.elapsedMs() + waitMs >= untilMs) throw new NoAnswer(`gave up: ${why}`);
    onRetry?.(why);
    await pause(time, waitMs, signal);
  }
};
