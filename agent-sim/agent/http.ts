// HTTP calls with keep-alive, a timeout, and retries that follow the gateway's Retry-After.
import http from "node:http";
import https from "node:https";
import { z } from "zod";
import { LONGEST_WAIT_MS } from "./plan.ts";
import { between, type Random } from "./random.ts";
import { pause, type Time } from "./time.ts";

const TIMEOUT_MS = 20_000;
const MAX_ANSWER_BYTES = 16_777_216;

export interface HttpCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path below the base URL, with a leading slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent unchanged, because it may be signed. */
  readonly body?: string;
  /** Of the body; default: JSON. */
  readonly type?: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: unknown;
  /** The body as it came. */
  readonly text?: string;
}

export interface Http {
  /** Rejects with NoAnswer if the network or the peer fails. */
  call(request: HttpCall): Promise<HttpAnswer>;
  close(): void;
}

/** The request got no answer, so it may or may not have taken effect. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
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
const parse = (text: string): unknown => {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
};

export const createHttp = (url: string, maxSockets = 64): Http => {
  const base = new URL(url);
  const prefix = base.pathname.replace(/\/+$/, "");
  const secure = base.protocol === "https:";
  const pool = secure ? new https.Agent({ keepAlive: true, maxSockets }) : new http.Agent({ keepAlive: true, maxSockets });

  return {
    close: () => pool.destroy(),
    call: ({ method, path, headers = {}, body, type = "application/json" }) =>
      new Promise((resolve, reject) => {
        const fail = (error: Error): void => reject(new NoAnswer(error.message, { cause: error }));
        const all = { ...headers, ...(body === undefined ? {} : { "content-type": type, "content-length": String(Buffer.byteLength(body)) }) };
        const request = (secure ? https : http).request(
          { agent: pool, protocol: base.protocol, hostname: base.hostname.replace(/^\[|\]$/g, ""), port: base.port, method, path: prefix + path, headers: all },
          (response) =>
            read(response, (text) =>
              text === null
                ? fail(new Error("the response was cut off"))
                : resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parse(text), text }),
            ),
        );
        request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error("the request timed out")));
        request.on("error", fail);
        request.end(body);
      }),
  };
};

const Facts = z.object({ code: z.string().optional(), error: z.unknown().optional(), details: z.record(z.string(), z.unknown()).optional() });
/** Code and details of an error response, in either of its two shapes. */
export const errorOf = ({ body }: HttpAnswer): { readonly code: string; readonly details: Readonly<Record<string, unknown>> } => {
  const outer = Facts.safeParse(body).data;
  const inner = Facts.safeParse(outer?.error).data;
  return { code: outer?.code ?? inner?.code ?? "", details: { ...inner?.details, ...outer?.details } };
};

/** The gateway refused the request; a retry would not help. */
export class CallRefused extends Error {
  override readonly name = "CallRefused";
}

export const refusal = (what: string, answer: HttpAnswer): CallRefused =>
  new CallRefused(`${what}: ${answer.status} ${errorOf(answer).code} ${JSON.stringify(errorOf(answer).details)}`);

/** Retry-After in milliseconds, at most an hour; null without the header. */
export const retryAfterMs = ({ headers }: HttpAnswer): number | null => {
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(LONGEST_WAIT_MS, seconds * 1_000) : null;
};
export const isWorthRetry = (answer: HttpAnswer): boolean =>
  answer.status >= 500 || answer.status === 429 || errorOf(answer).code === "IDEMPOTENCY_IN_PROGRESS";

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
