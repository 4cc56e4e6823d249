// What the kit's gateway hears and answers over HTTP: the gateway's own answers, and those of things between it and an agent.
import { SIGNATURE_VERSIONS, SIGNATURE_VERSIONS_HEADER } from "../../kit/signing-v2.ts";

/** A request as it came, of an upgrade too. */
export interface HeardCall {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: string;
  /** By lower-case name; each with all values that were sent. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
  /** The body as JSON; null if it is none. */
  readonly json: Readonly<Record<string, unknown>> | null;
  readonly atMs: number;
}

export interface KitReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text: string;
  /** The connection breaks before the answer has ended. */
  readonly isCut?: true;
}

const OWN = { "content-type": "application/json", [SIGNATURE_VERSIONS_HEADER]: SIGNATURE_VERSIONS };
const meta = { timestamp: "2026-01-02T03:04:05.678Z", requestId: "req_kit" };

/** The gateway did what it was asked. */
export const accept = (data: unknown, { status = 200, headers = {}, beside = {} }: Partial<OwnReply> = {}): KitReply => ({
  status,
  headers: { ...OWN, ...headers },
  text: JSON.stringify({ success: true, data, ...beside, meta }),
});
interface OwnReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Fields beside `data`. */
  readonly beside: Readonly<Record<string, unknown>>;
}

/** The gateway refuses. */
export const refuseCall = (
  status: number,
  code: string,
  { details = {}, retryAfter }: { details?: Readonly<Record<string, unknown>>; retryAfter?: number } = {},
): KitReply => ({
  status,
  headers: { ...OWN, ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }) },
  text: JSON.stringify({
    success: false,
    error: { code, message: `the kit refuses with ${code}`, details },
    code,
    retryable: status === 429 || status >= 500,
    timestamp: meta.timestamp,
    requestId: meta.requestId,
    details,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    meta,
  }),
});

/** The answer of a proxy, a load balancer or a captive portal. */
export const foreignReply = (status: number, headers: Readonly<Record<string, string>> = {}): KitReply => ({
  status,
  headers: { "content-type": "text/html", ...headers },
  text: `<html><body>${status}: this is not the gateway</body></html>`,
});

/** Null for what is no JSON object. */
export const jsonObject = (text: string): HeardCall["json"] => {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as HeardCall["json"]) : null;
  } catch {
    return null;
  }
};

/** Where a redirect of something in between leads. */
export const ELSEWHERE = "/elsewhere";

export const headerOf = (call: Pick<HeardCall, "headers">, name: string): string | undefined => call.headers.get(name)?.[0];
