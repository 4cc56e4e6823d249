// Plain HTTP calls with kept connections, a bound on each, and patience as the gateway asks for it.
import http from "node:http";
import https from "node:https";
import { z } from "zod";
import { LONGEST_WAIT_MS } from "./plan.ts";
import { between, type Random } from "./random.ts";
import { pause, type Time } from "./time.ts";

const TIMEOUT_MS = 20_000;
const MAX_ANSWER_BYTES = 16_777_216;

export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below the base address, with its leading slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is: what was signed is what is sent. */
  readonly body?: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: unknown;
}

export interface Http {
  /** Rejects with NoAnswer when the network or the peer fails. */
  call(request: HttpRequest): Promise<HttpAnswer>;
  close(): void;
}

/** Nobody knows whether the request was carried out. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

const read = (response: http.IncomingMessage, done: (text: string | null) => void): void => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) response.destroy(new Error("the answer is too large"));
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
    call: ({ method, path, headers = {}, body }) =>
      new Promise((resolve, reject) => {
        const fail = (error: Error): void => reject(new NoAnswer(error.message, { cause: error }));
        const all = { ...headers, ...(body === undefined ? {} : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }) };
        const request = (secure ? https : http).request(
          { agent: pool, protocol: base.protocol, hostname: base.hostname.replace(/^\[|\]$/g, ""), port: base.port, method, path: prefix + path, headers: all },
          (response) =>
            read(response, (text) =>
              text === null
                ? fail(new Error("the answer broke off"))
                : resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parse(text) }),
            ),
        );
        request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error("no answer in time")));
        request.on("error", fail);
        request.end(body);
      }),
  };
};

const Facts = z.object({ code: z.string().optional(), error: z.unknown().optional(), details: z.record(z.string(), z.unknown()).optional() });
/** Code and details of an error answer, whichever of the two shapes it has. */
export const errorOf = ({ body }: HttpAnswer): { readonly code: string; readonly details: Readonly<Record<string, unknown>> } => {
  const outer = Facts.safeParse(body).data;
  const inner = Facts.safeParse(outer?.error).data;
  return { code: outer?.code ?? inner?.code ?? "", details: { ...inner?.details, ...outer?.details } };
};

/** The gateway said no, and a retry would not change it. */
export class Refused extends Error {
  override readonly name = "Refused";
}

export const refusal = (what: string, answer: HttpAnswer): Refused =>
  new Refused(`${what}: ${answer.status} ${errorOf(answer).code} ${JSON.stringify(errorOf(answer).details)}`);

/** What the gateway asks to wait, in ms, an hour at most; null when it does not say. */
export const retryAfterMs = ({ headers }: HttpAnswer): number | null => {
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(LONGEST_WAIT_MS, seconds * 1_000) : null;
};
export const isWorthRetry = (answer: HttpAnswer): boolean =>
  answer.status >= 500 || answer.status === 429 || errorOf(answer).code === "IDEMPOTENCY_IN_PROGRESS";

export interface Patience {
  readonly time: Time;
  readonly random: Random;
  /** On the monotonic clock. */
  readonly untilMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onRetry?: (why: string) => void;
}

const STEP_MS = { base: 200, cap: 5_000 };

/** Tries until there is an answer that no retry would change. Rejects with NoAnswer when the time is over; `attempt` must be safe to repeat. */
export const persist = async (attempt: () => Promise<HttpAnswer>, { time, random, untilMs, signal, onRetry }: Patience): Promise<HttpAnswer> => {
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
    if (signal?.aborted || time.elapsedMs() + waitMs >= untilMs) throw new NoAnswer(`given up: ${why}`);
    onRetry?.(why);
    await pause(time, waitMs, signal);
  }
};
