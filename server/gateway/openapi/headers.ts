// The response headers, each described once, and the answers that carry them.
import { LIMITS, type Operation, SIGNATURE_VERSIONS_HEADER } from "../../../protocol/index.ts";
import type { Json } from "./schemas.ts";

const text = (description: string, example: string): Json => ({ description, schema: { type: "string" }, example });
const whole = (description: string, example: number): Json => ({ description, schema: { type: "integer" }, example });

export const HEADER_COMPONENTS = {
  "x-request-id": {
    ...text(
      "Id of this request, also in the body and in the gateway's log. It is your own if you send one of 8 to 64 letters, digits, - and _.",
      "req_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
    ),
    required: true,
  },
  "x-svc-error-shape": { description: "The error shape of this answer, if the request asked for one.", schema: { type: "string", enum: ["a", "b"] } },
  "X-RateLimit-Limit": whole("Calls per window that the tightest rate limit allows.", 100),
  "X-RateLimit-Remaining": whole("Calls left in the current window.", 97),
  "X-RateLimit-Reset": whole("When the limit is full again, in Unix seconds.", 1_797_033_600),
  RateLimit: text("The same limit in the IETF's form: calls left, seconds until it is full again.", '"standard";r=97;t=42'),
  "RateLimit-Policy": text("Calls per window, and the window in seconds.", '"standard";q=100;w=60'),
  "Retry-After": whole("Seconds to wait before the next attempt.", 1),
  "WWW-Authenticate": text("The credential that the operation needs.", "Bearer"),
  "Idempotent-Replayed": { description: "The gateway repeats the first answer to this Idempotency-Key.", schema: { type: "string", const: "true" } },
  ETag: text("The record's version, and in a read a checksum of the answer. Send it as If-Match or If-None-Match.", '"3-Xw0cMZ1T0mA"'),
  Location: text("Path of the created record.", "/v1/commands/cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R"),
  Link: text(
    "RFC 8288: first, prev, next and last page of a list, or the successor of a deprecated operation.",
    '</v1/devices?page=2&pageSize=20>; rel="next"',
  ),
  Deprecation: text("RFC 9745: since when the operation is deprecated, as @ and Unix seconds.", "@1797033600"),
  Sunset: text("RFC 8594: when the operation will be removed.", "Sat, 12 Jun 2027 00:00:00 GMT"),
  [SIGNATURE_VERSIONS_HEADER]: text("The versions of request signatures that this gateway accepts. An answer without this header is not the gateway's.", "1,2"),
} satisfies Readonly<Record<string, Json>>;

type HeaderName = keyof typeof HEADER_COMPONENTS;

const refs = (names: readonly HeaderName[]): Json => Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const RATE_LIMIT = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy"] as const;

const common = (op: Operation): readonly HeaderName[] => [
  "x-request-id",
  "x-svc-error-shape",
  ...(LIMITS[op.limit].length > 0 ? RATE_LIMIT : []),
  SIGNATURE_VERSIONS_HEADER,
  ...(isKeyed(op) ? (["Idempotent-Replayed"] as const) : []),
];

/** Whether the operation honours an Idempotency-Key. */
export const isKeyed = ({ idempotency, auth }: Operation): boolean => idempotency !== "none" && !auth.includes("public");

export const successHeaders = (op: Operation, isVersioned: boolean): Json => ({
  ...refs([
    ...common(op),
    ...(isVersioned ? (["ETag"] as const) : []),
    ...(op.location === undefined ? [] : (["Location"] as const)),
    ...((op.list !== undefined && op.list !== "plain") || op.deprecated !== undefined ? (["Link"] as const) : []),
    ...(op.deprecated === undefined ? [] : (["Deprecation", "Sunset"] as const)),
  ]),
  ...(op.plain?.filename === undefined ? {} : { "Content-Disposition": { description: "The name of the file.", schema: { type: "string" } } }),
  ...Object.fromEntries(Object.entries(op.responseHeaders ?? {}).map(([name, description]) => [name, { description, schema: { type: "string" } }])),
});

/** The headers of an error with this status, from any operation. */
export const errorHeaders = (status: number): Json =>
  refs([
    "x-request-id",
    "x-svc-error-shape",
    ...RATE_LIMIT,
    SIGNATURE_VERSIONS_HEADER,
    "Idempotent-Replayed",
    ...(status === 409 || status === 429 || status === 503 ? (["Retry-After"] as const) : []),
    ...(status === 401 ? (["WWW-Authenticate"] as const) : []),
  ]);
