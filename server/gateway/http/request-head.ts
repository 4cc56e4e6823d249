// Rejects a request head that two readers may read differently, before anything else looks at the request.
import { AppError } from "../../core/errors.ts";
import type { HttpRequest } from "./http-message.ts";

/** Two lines of one of these contradict each other; lines of any other header are one list. */
const SINGLE: ReadonlySet<string> = new Set([
  ...["host", "content-length", "transfer-encoding", "content-type", "content-encoding"],
  ...["authorization", "x-api-key", "idempotency-key", "x-idempotency-key", "if-match"],
  ...["origin", "access-control-request-method", "traceparent", "last-event-id", "trpc-accept"],
  ...["sec-websocket-key", "sec-websocket-version"],
]);
const OWN_PREFIX = "x-svc-";

/** Called only for a name that came before. */
export const isSingle = (name: string): boolean => SINGLE.has(name) || name.startsWith(OWN_PREFIX);

const DIGITS = /^\d+$/;
/** A name or an address, and a port; userinfo has no place here. */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]+|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

const refused = (reason: string, header: string): AppError => new AppError("VALIDATION_FAILED", { details: { reason, header } });

/**
 * Null for a good one. A proxy may see the end of a refused request elsewhere than we do, so the refusal is the last answer of its connection.
 */
export const headFault = ({ headers, repeated }: Pick<HttpRequest, "headers" | "repeated">): AppError | null => {
  if (repeated.size > 0) return refused("repeated_header", [...repeated].join(", "));
  const { host, "content-length": length, "transfer-encoding": encoding } = headers;
  if (host === undefined || !HOST.test(host)) return refused("bad_host", "host");
  if (length !== undefined && (!DIGITS.test(length) || encoding !== undefined)) return refused("bad_framing", "content-length");
  if (encoding !== undefined && encoding.toLowerCase() !== "chunked") return refused("bad_framing", "transfer-encoding");
  return null;
};

/**
 * Its body came in chunks. The library takes odd and empty chunk sizes for the end and a proxy may see the end elsewhere, so the answer to
 * such a request is the last of its connection.
 */
export const isChunked = ({ headers }: Pick<HttpRequest, "headers">): boolean => headers["transfer-encoding"] !== undefined;
