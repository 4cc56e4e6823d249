// What a tRPC request says: its calls, their inputs, and what its answer's headers say of a failure.
import type { TRPCProcedureType } from "@trpc/server";
import { AppError } from "../../core/errors.ts";
import type { HttpRequest } from "../http/http-message.ts";
import { invalid } from "../rest/parse.ts";
import { readBodyObject } from "../rest/rest-input.ts";

export const TRPC_PATH = "/trpc/";
export const MAX_BATCH = 20;

export interface Unary {
  readonly paths: readonly string[];
  readonly batch: boolean;
  readonly type: TRPCProcedureType;
  readonly inputs: (index: number) => unknown;
}

/** A client asks for events this way; every other call gets one whole answer, whatever it accepts. */
export const wantsEvents = ({ headers, query }: HttpRequest): boolean =>
  headers["accept"]?.includes("text/event-stream") === true || /(?:^|&)connectionParams=/.test(query);

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new AppError("MALFORMED_JSON");
  }
};

export const checkMethod = ({ method }: HttpRequest): void => {
  if (method !== "GET" && method !== "POST") throw new AppError("METHOD_NOT_ALLOWED", { details: { allow: ["GET", "POST"] } });
};

/** One of the two parameters of a unary call, percent-decoded. */
const parameter = (query: string, name: "batch" | "input"): string | null => {
  const start = `${name}=`;
  for (let from = 0; from < query.length; ) {
    const next = query.indexOf("&", from);
    const end = next < 0 ? query.length : next;
    if (query.startsWith(start, from)) return decodeURIComponent(query.slice(from + start.length, end).replaceAll("+", " "));
    from = end + 1;
  }
  return null;
};

export const readUnary = (request: HttpRequest, body: Uint8Array): Unary => {
  checkMethod(request);
  const batch = parameter(request.query, "batch") === "1";
  const path = request.path.slice(TRPC_PATH.length);
  const paths = batch ? path.split(",").map(decodeURIComponent) : [path];
  if (paths.length > MAX_BATCH) throw invalid("batch", `has more than ${MAX_BATCH} calls`);
  const given = parameter(request.query, "input");
  const raw =
    request.method === "GET"
      ? given === null
        ? undefined
        : parseJson(given)
      : body.byteLength === 0
        ? undefined
        : readBodyObject(body, request.headers["content-type"]);
  if (batch && raw !== undefined && (typeof raw !== "object" || raw === null)) throw invalid("input", "must be an object of inputs by index");
  return {
    paths,
    batch,
    type: request.method === "GET" ? "query" : "mutation",
    inputs: (index) => (batch ? (raw as Record<string, unknown> | undefined)?.[String(index)] : raw),
  };
};

export const failureHeaders = (failure: AppError | null): Record<string, string> => {
  const allow = failure?.code === "METHOD_NOT_ALLOWED" ? failure.details?.["allow"] : undefined;
  return {
    ...(failure?.retryAfter === undefined ? {} : { "Retry-After": String(Math.max(1, Math.ceil(failure.retryAfter))) }),
    ...(failure?.status === 401 ? { "WWW-Authenticate": "Bearer" } : {}),
    ...(Array.isArray(allow) ? { Allow: allow.join(", ") } : {}),
  };
};

/** What tRPC's own handler reads; credentials and the rest are ours. */
const STREAM_HEADERS = ["accept", "content-type", "last-event-id", "trpc-accept"] as const;
/** `Headers` refuses what HTTP lets through. */
const printable = (value: string): string => value.replace(/[^\x20-\x7e]/g, "?");

export const toStreamHeaders = ({ headers }: HttpRequest): Headers =>
  new Headers(STREAM_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, printable(headers[name])]])));
