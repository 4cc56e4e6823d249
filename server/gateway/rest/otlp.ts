// OTLP over HTTP: reads an export request in JSON or protobuf, plain or gzip'd, into its JSON form, and answers in the request's own encoding.
import { constants, gunzipSync } from "node:zlib";
import { AppError } from "../../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../http/http-message.ts";
import { decodeOtlp, encodeOtlp, type Message } from "./otlp-messages.ts";
import { invalid } from "./parse.ts";

export const PROTOBUF = "application/x-protobuf";
export const OTLP_TYPES: readonly string[] = ["application/json", PROTOBUF];
type Head = Pick<HttpRequest, "headers">;

const typeOf = ({ headers }: Head): string | undefined => headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
export const isProtobuf = (request: Head): boolean => typeOf(request) === PROTOBUF;

const unzipped = (body: Uint8Array, maxBytes: number): Uint8Array => {
  try {
    return gunzipSync(body, { maxOutputLength: maxBytes, finishFlush: constants.Z_FINISH });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw new AppError("PAYLOAD_TOO_LARGE", { details: { maxBytes } });
    throw invalid("body", "is not valid gzip");
  }
};

/** As sent, or unzipped; never more than `maxBytes`. */
export const contentOf = ({ headers }: Head, body: Uint8Array, maxBytes: number): Uint8Array => {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding === "gzip") return unzipped(body, maxBytes);
  if (encoding !== "identity") throw new AppError("UNSUPPORTED_MEDIA_TYPE", { details: { accepted: OTLP_TYPES, acceptedEncodings: ["gzip", "identity"] } });
  return body;
};

/** Deeper values are left out. */
const MAX_DEPTH = 4;
const own = (message: Message, field: string): unknown => (Object.hasOwn(message, field) ? message[field] : undefined);
const list = (message: Message, field: string): readonly Message[] => (own(message, field) as readonly Message[] | undefined) ?? [];
const bytes = (message: Message, field: string): Buffer | undefined => own(message, field) as Buffer | undefined;
const text = (message: Message, field: string): string | undefined => bytes(message, field)?.toString("utf8");
const hex = (message: Message, field: string): string | undefined => bytes(message, field)?.toString("hex");
const whole = (message: Message, field: string): string | undefined => own(message, field)?.toString();

const nested = (name: string, encoded: Buffer): readonly Message[] => {
  try {
    return list(decodeOtlp(name, encoded), "values");
  } catch {
    return [];
  }
};

const toValue = (value: Message | undefined, depth = 0): Message => {
  if (value === undefined || depth >= MAX_DEPTH) return {};
  const [array, pairs] = [bytes(value, "arrayValue"), bytes(value, "kvlistValue")];
  if (array !== undefined) return { arrayValue: { values: nested("ArrayValue", array).map((each) => toValue(each, depth + 1)) } };
  if (pairs !== undefined) return { kvlistValue: { values: nested("KeyValueList", pairs).map((each) => toPair(each, depth + 1)) } };
  return {
    stringValue: text(value, "stringValue"),
    boolValue: own(value, "boolValue"),
    intValue: whole(value, "intValue"),
    doubleValue: own(value, "doubleValue"),
    bytesValue: bytes(value, "bytesValue")?.toString("base64"),
  };
};
const toPair = (pair: Message, depth = 0): Message => ({ key: text(pair, "key"), value: toValue(own(pair, "value") as Message | undefined, depth) });
const attributes = (message: Message): readonly Message[] => list(message, "attributes").map((pair) => toPair(pair));
const ids = (message: Message): Message => ({ traceId: hex(message, "traceId"), spanId: hex(message, "spanId") });

const toSpan = (encoded: Uint8Array): Message | null => {
  try {
    const span = decodeOtlp("Span", encoded);
    const status = own(span, "status") as Message | undefined;
    return {
      ...ids(span),
      parentSpanId: hex(span, "parentSpanId"),
      name: text(span, "name"),
      kind: own(span, "kind"),
      startTimeUnixNano: whole(span, "startTimeUnixNano"),
      endTimeUnixNano: whole(span, "endTimeUnixNano"),
      attributes: attributes(span),
      events: list(span, "events").map((each) => ({
        timeUnixNano: whole(each, "timeUnixNano"),
        name: text(each, "name"),
        attributes: attributes(each),
      })),
      links: list(span, "links").map((each) => ({ ...ids(each), attributes: attributes(each) })),
      ...(status === undefined ? {} : { status: { message: text(status, "message"), code: own(status, "code") } }),
    };
  } catch {
    return null;
  }
};

const toResourceSpans = (message: Message): Message => ({
  resource: { attributes: attributes((own(message, "resource") as Message | undefined) ?? {}) },
  scopeSpans: list(message, "scopeSpans").map((each) => {
    const scope = (own(each, "scope") as Message | undefined) ?? {};
    return {
      scope: { name: text(scope, "name"), version: text(scope, "version") },
      spans: ((own(each, "spans") as readonly Uint8Array[] | undefined) ?? []).map(toSpan),
    };
  }),
});

/** The JSON form of an ExportTraceServiceRequest in protobuf; a span that is broken is null. */
export const readProtobuf = (content: Uint8Array): Record<string, unknown> => {
  try {
    return { resourceSpans: list(decodeOtlp("Request", content), "resourceSpans").map(toResourceSpans) };
  } catch {
    throw invalid("body", "is not a valid ExportTraceServiceRequest in protobuf", "malformed_protobuf");
  }
};

/** The result without an envelope. */
export const renderOtlp = (request: Head, result: unknown, head: Pick<HttpResponse, "status" | "headers">): HttpResponse =>
  isProtobuf(request)
    ? { ...head, headers: { ...head.headers, "Content-Type": PROTOBUF }, body: encodeOtlp("Response", result as Message) }
    : { ...head, body: JSON.stringify(result) };

/** Canonical codes of google.rpc.Status, by HTTP status. */
const RPC_CODES: ReadonlyMap<number, number> = new Map([
  [400, 3],
  [401, 16],
  [403, 7],
  [404, 5],
  [413, 8],
  [415, 3],
  [429, 8],
  [503, 14],
]);
const INTERNAL = 13;

/** An exporter that sends protobuf reads its errors as google.rpc.Status. */
export const asRpcStatus = (refusal: HttpResponse, { code, message }: Pick<AppError, "code" | "message">): HttpResponse => ({
  ...refusal,
  headers: { ...refusal.headers, "Content-Type": PROTOBUF },
  body: encodeOtlp("RpcStatus", { code: RPC_CODES.get(refusal.status) ?? INTERNAL, message: `${code}: ${message}` }),
});
