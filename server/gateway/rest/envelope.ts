// How answers look on the REST side: the success envelope, both error shapes, both styles of paging.
import { type Details, FIRST, isRetryable, type Operation, type Page, type PageQuery, toPagination, toWindow } from "../../../protocol/index.ts";
import type { AppError } from "../../core/errors.ts";
import type { RequestInfo } from "../http/request-info.ts";

type Json = Record<string, unknown>;

/** The fields of a failure that both shapes and tRPC share. */
export const errorFields = (error: AppError, requestId: string, timestamp: string): Json => ({
  code: error.code,
  retryable: isRetryable(error.code),
  timestamp,
  requestId,
  ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
  ...(error.details === undefined ? {} : { details: error.details }),
});

/** Shape A has the message in `error`, shape B an object; all other fields stand in both. */
export const errorBody = (error: AppError, { requestId, shape }: Pick<RequestInfo, "requestId" | "shape">, timestamp: string): Json => ({
  success: false,
  error: shape === "a" ? error.message : { code: error.code, message: error.message, details: error.details ?? ({} satisfies Details) },
  message: error.message,
  ...errorFields(error, requestId, timestamp),
  meta: { timestamp, requestId },
});

const fieldOf = (location: string): string | undefined => [...location.matchAll(/\{(\w+)\}/g)].at(-1)?.[1];

/** `/devices/{deviceId}` with the result's own values, below /v1. */
export const locationOf = (op: Operation, result: unknown): string | null =>
  op.location === undefined ? null : `/v1${op.location.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((result as Json)[name])))}`;

/** What a creation shows at top level beside `data`: quick-starts read id, status and url from there. */
const hoisted = (op: Operation, result: Json): Json => {
  const field = op.location === undefined ? undefined : fieldOf(op.location);
  const id = field === undefined ? undefined : result[field];
  return {
    ...(id === undefined ? {} : { id }),
    ...(typeof result["status"] === "string" ? { status: result["status"] } : {}),
    ...(typeof result["url"] === "string" ? { url: result["url"] } : {}),
  };
};

const page = (op: Operation, input: PageQuery, result: Page<unknown>): Json => (op.list === "plain" ? {} : { pagination: toPagination(input, result) });

/** A creation repeats id, status and url beside `data`. */
const creation = (op: Operation, record: Json, meta: Json): Json => {
  const extra = hoisted(op, record);
  return { ...(op.flat ? record : {}), success: true, data: { ...record, ...("id" in extra ? { id: extra["id"] } : {}) }, meta, ...extra };
};

/** The body of a success as JSON text; null for 204 and 303. */
export const successText = (
  op: Operation,
  input: unknown,
  result: unknown,
  { requestId, timestamp }: { requestId: string; timestamp: string },
): string | null => {
  if (op.status === 204 || op.status === 303) return null;
  const meta = { timestamp, requestId };
  if (op.list !== undefined) {
    const { items, total: _, nextCursor: __, ...beside } = result as Page<unknown>;
    return JSON.stringify({ success: true, data: items, ...beside, meta: { ...meta, ...page(op, input as PageQuery, result as Page<unknown>) } });
  }
  if (op.status === 201) return JSON.stringify(creation(op, result as Json, meta));
  // Concatenated as text: a flat record stands in its answer twice, and this serializes it once. Ids and times need no escape.
  const data = JSON.stringify(result);
  const envelope = `"success":true,"data":${data},"meta":{"timestamp":"${timestamp}","requestId":"${requestId}"}}`;
  return op.flat && data !== "{}" ? `${data.slice(0, -1)},${envelope}` : `{${envelope}`;
};

interface Address {
  readonly path: string;
  readonly params: URLSearchParams;
}

const linkTo = ({ path, params }: Address, rel: string, name: string, value: string): string => {
  const changed = new URLSearchParams(params);
  changed.set(name, value);
  return `<${path}?${changed}>; rel="${rel}"`;
};

/** RFC 8288 links of a paged list, in the style the caller used. */
export const pageLinks = (op: Operation, input: PageQuery, { total, nextCursor }: Page<unknown>, at: Address): string | null => {
  if (op.list === undefined || op.list === "plain") return null;
  if (total === undefined)
    return [linkTo(at, "first", "cursor", FIRST), ...(nextCursor === undefined ? [] : [linkTo(at, "next", "cursor", nextCursor)])].join(", ");
  const { limit, offset } = toWindow(input);
  const offsetStyle =
    input.limit !== undefined || input.offset !== undefined || (op.list === "offset" && input.page === undefined && input.pageSize === undefined);
  const last = Math.max(0, Math.ceil(total / limit) - 1) * limit;
  const link = (rel: string, to: number): string =>
    offsetStyle ? linkTo(at, rel, "offset", String(to)) : linkTo(at, rel, "page", String(Math.floor(to / limit) + 1));
  return [
    link("first", 0),
    ...(offset > 0 ? [link("prev", Math.max(0, offset - limit))] : []),
    ...(offset + limit < total ? [link("next", offset + limit)] : []),
    link("last", last),
  ].join(", ");
};
