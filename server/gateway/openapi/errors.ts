// Lists the errors that an operation may return, with their schema and examples.
import { AT, IDS } from "../../../protocol/guide/index.ts";
import { ERROR_CODES, ERRORS, type ErrorCode, LIMITS, messageOf, type Operation, TOKEN_REFUSALS } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { Prefix } from "../http/request-info.ts";
import { errorBody } from "../rest/envelope.ts";
import { takesBody } from "../rest/rest-input.ts";
import { isKeyed } from "./headers.ts";
import type { Json } from "./schemas.ts";

const openTo = (op: Operation): readonly ErrorCode[] => (op.auth.includes("public") ? [] : ["UNAUTHORIZED", "FORBIDDEN", "RATE_LIMIT_EXCEEDED"]);

/** The error codes that a call of this operation may return, by HTTP status. */
export const codesOf = (op: Operation, changesVersioned = false): ReadonlyMap<number, readonly ErrorCode[]> => {
  const open = op.auth.includes("public");
  const withBody = op.rest.some((rest) => takesBody(rest.split(" ")[0] ?? ""));
  const when = (holds: boolean, ...codes: readonly ErrorCode[]): readonly ErrorCode[] => (holds ? codes : []);
  const codes: readonly ErrorCode[] = [
    "VALIDATION_FAILED",
    "URI_TOO_LONG",
    "INTERNAL_ERROR",
    "SERVICE_UNAVAILABLE",
    "DATABASE_BUSY",
    "DATABASE_UNAVAILABLE",
    "DATABASE_READ_ONLY",
    "DATABASE_FULL",
    // Also without a credential: by its address.
    "ENTITY_BLOCKED",
    ...op.errors,
    ...openTo(op),
    // The gateway verifies a credential before it checks whether the operation accepts its kind.
    ...when(!open, "INVALID_SIGNATURE", "IDENTITY_PROVIDER_UNAVAILABLE", "API_KEY_IP_DENIED"),
    ...when(op.permission === "platform", "ADMIN_REQUIRED"),
    ...when(LIMITS[op.limit].length > 0, "RATE_LIMIT_EXCEEDED"),
    ...when(withBody, "MALFORMED_JSON", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"),
    ...when(op.kind === "mutation" && op.tenancy === "tenant" && !open && op.whileSuspended !== true, "TENANT_SUSPENDED"),
    ...when(changesVersioned, "VERSION_CONFLICT"),
    ...when(isKeyed(op), "IDEMPOTENCY_KEY_INVALID", "IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_IN_PROGRESS"),
  ];
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set(codes)) byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code]);
  return byStatus;
};

const timestamp = { type: "string", format: "date-time" };

const REASONS = Object.entries(TOKEN_REFUSALS).map(([reason, meaning]) => `- \`${reason}\`: ${meaning}`);
const DETAILS = `Facts about this error, such as the invalid fields. For an access token that is refused with UNAUTHORIZED, \`reason\` is one of:\n\n${REASONS.join("\n")}`;

export const errorSchema = (prefix: Prefix): Json => ({
  type: "object",
  description: "The error body of every operation.",
  required: ["success", "error", "code", "message", "retryable", "timestamp", "requestId", "meta"],
  properties: {
    success: { type: "boolean", const: false },
    code: { type: "string", enum: ERROR_CODES, description: "What went wrong. The meaning of a code never changes; `GET /errors` explains each." },
    message: { type: "string", description: "The same in a sentence for people." },
    retryable: { type: "boolean", description: "Whether the same call may succeed later: true for 429 and 5xx." },
    timestamp,
    requestId: { type: "string", description: "Identifies this request in the gateway's log." },
    retryAfter: { type: "number", description: "Seconds to wait before the next attempt." },
    details: { type: "object", additionalProperties: true, description: DETAILS },
    meta: { $ref: "#/components/schemas/Meta" },
    error:
      prefix === "/v1"
        ? {
            type: "object",
            required: ["code", "message", "details"],
            properties: { code: { type: "string" }, message: { type: "string" }, details: { type: "object", additionalProperties: true } },
          }
        : { type: "string", description: "The message." },
  },
});

/** A value for each placeholder in a message, so that examples read like real answers. */
const PLACEHOLDERS: ReadonlyMap<string, unknown> = new Map<string, unknown>(
  Object.entries({
    ...IDS,
    code: "NO_SUCH_CODE",
    from: "completed",
    maxBytes: 1_048_576,
    resource: "hosts",
    slug: "acme",
    status: "succeeded",
    to: "downloading",
    type: "reboot",
  }),
);

const detailsOf = (code: ErrorCode): Json | undefined => {
  if (code === "DATABASE_BUSY") return { reason: "lock_timeout" };
  if (code === "VALIDATION_FAILED")
    return { issues: [{ path: "name", code: "invalid_type", message: "Invalid input: expected string, received undefined", expected: "string" }] };
  const named = [...ERRORS[code].message.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [name, PLACEHOLDERS.get(name)]);
  return named.length === 0 ? undefined : Object.fromEntries(named);
};

export const errorExamples = (prefix: Prefix): Json =>
  Object.fromEntries(
    ERROR_CODES.map((code) => {
      const value = errorBody(new AppError(code, { details: detailsOf(code) }), { requestId: IDS.requestId, shape: prefix === "/v1" ? "b" : "a" }, AT);
      return [code, { summary: messageOf(code, detailsOf(code)), value }];
    }),
  );
