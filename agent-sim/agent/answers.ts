// Decides which answers are the gateway's own, and what they say. The only file of the agent that looks at status codes.
// A proxy without its backend answers 404, a captive portal 200: neither is the gateway's word, so neither may settle, stop or confirm anything.
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { readSeconds, SIGNATURE_VERSIONS_HEADER } from "../../protocol/index.ts";
import { LONGEST_WAIT_MS } from "./plan.ts";

/** `envelope`: JSON. `file`: bytes if the call succeeds, JSON if not. `foreign`: from another server, so that the caller must check what came. */
export type Expected = "envelope" | "file" | "foreign";

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** An answer that the gateway gave itself. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  /** The body as it came. */
  readonly text?: string;
}

/** The request got no answer of the gateway, so it may or may not have taken effect. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
};

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
/** Such answers have no body, so the header alone tells whose they are. */
const [NO_CONTENT, NOT_MODIFIED] = [204, 304];
const Envelope = z.looseObject({ success: z.boolean() });

/** Throws NoAnswer unless the gateway itself gave this answer. */
export const ownAnswer = ({ status, headers, text }: RawAnswer, expected: Expected = "envelope"): HttpAnswer => {
  if (expected === "foreign") return { status, headers, body: null, text };
  const foreign = (): never => {
    throw new NoAnswer(`something else than the gateway answered ${status}`);
  };
  if (!headers[SIGNATURE_VERSIONS_HEADER]) return foreign();
  if (status === NO_CONTENT || status === NOT_MODIFIED || (expected === "file" && isSuccess(status))) return { status, headers, body: null, text };
  const { data } = Envelope.safeParse(parse(text));
  return data?.success === isSuccess(status) ? { status, headers, body: data, text } : foreign();
};

/** The gateway did what it was asked. */
export const hasSucceeded = ({ status }: HttpAnswer): boolean => isSuccess(status);
/** The record is the one that the caller knows already. */
export const isUnchanged = ({ status }: HttpAnswer): boolean => status === NOT_MODIFIED;

const Facts = z.object({ code: z.string().optional(), error: z.unknown().optional(), details: z.record(z.string(), z.unknown()).optional() });
export interface GatewayError {
  readonly code: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;
}
/** Code and details of a refusal, in either of its two shapes. */
export const errorOf = ({ body }: Pick<HttpAnswer, "body">): GatewayError => {
  const outer = Facts.safeParse(body).data;
  const inner = Facts.safeParse(outer?.error).data;
  const details = { ...inner?.details, ...outer?.details };
  return { code: outer?.code ?? inner?.code ?? "", reason: typeof details["reason"] === "string" ? details["reason"] : "", details };
};

/** The gateway refused the request; a retry would not help. */
export class CallRefused extends Error {
  override readonly name = "CallRefused";
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}
export const refusal = (what: string, answer: HttpAnswer): CallRefused =>
  new CallRefused(`${what}: ${answer.status} ${errorOf(answer).code} ${JSON.stringify(errorOf(answer).details)}`, errorOf(answer).code);

/** A wait that the gateway names in seconds: in milliseconds, at most an hour; null if it names none. */
export const givenWaitMs = (seconds: unknown): number | null => {
  const read = readSeconds(seconds);
  return read === null ? null : Math.min(LONGEST_WAIT_MS, read * 1_000);
};
const Waiting = z.object({ retryAfter: z.unknown() });
/** The wait that the header or the body names. */
export const retryAfterMs = ({ headers, body }: Pick<HttpAnswer, "headers" | "body">): number | null =>
  givenWaitMs(headers["retry-after"] ?? Waiting.safeParse(body).data?.retryAfter);

export const isWorthRetry = (answer: HttpAnswer): boolean =>
  answer.status >= 500 || answer.status === 429 || errorOf(answer).code === "IDEMPOTENCY_IN_PROGRESS";
/** A retry would not change this refusal: the agent stops and asks REST. */
export const saysStop = ({ status }: Pick<HttpAnswer, "status">): boolean => status >= 400 && status < 500;

/** The gateway does not know this secret. */
export const refusesSecret = (answer: HttpAnswer): boolean => !hasSucceeded(answer) && errorOf(answer).reason === "bad_signature";
/** The gateway's time, if it refuses the request's timestamp. */
export const timeIfSkewed = (answer: HttpAnswer): number | null => {
  const { reason, details } = errorOf(answer);
  const atMs = reason === "timestamp_skew" && typeof details["serverTime"] === "string" ? Date.parse(details["serverTime"]) : Number.NaN;
  return Number.isNaN(atMs) ? null : atMs;
};

const Issues = z.object({ issues: z.array(z.object({ path: z.string() })).min(1) });
/** What a refused ack over REST means: the command is not known, the ack is unusable, or its output is too large. Null: send it again. */
export const ackRefusal = (answer: HttpAnswer): "unknown" | "refused" | "too large" | null => {
  const { code, details } = errorOf(answer);
  if (code === "COMMAND_NOT_FOUND") return "unknown";
  if (code === "PAYLOAD_TOO_LARGE") return "too large";
  // A complaint about headers is none about the ack: a proxy may have changed them.
  const issues = code === "VALIDATION_FAILED" ? Issues.safeParse(details).data?.issues : undefined;
  return issues?.some(({ path }) => !path.startsWith("header.")) ? "refused" : null;
};
