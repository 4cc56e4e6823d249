// Which refusals look like an attack. Only failed calls come here, so a good one pays nothing for it.
import type { SecurityEventType } from "../../../protocol/index.ts";
import { HEADERS } from "../../../protocol/index.ts";
import type { AppError, Concerned } from "../../core/errors.ts";
import type { SecurityWatch } from "../../core/ports/security.ts";
import type { OpenScope, Principal } from "../../core/scope.ts";
import type { RequestInfo } from "../http/request-info.ts";

/** Refusals of everyday life: no credential at all, an old token, a page that does not say its tenant. */
const EVERYDAY: ReadonlySet<string> = new Set(["missing", "missing_header", "missing_tenant", "missing_tenant_header", "expired"]);
const SIGNATURES: ReadonlyMap<string, SecurityEventType> = new Map([
  ["bad_signature", "signature.invalid_burst"],
  ["replayed", "signature.replayed"],
  ["signature_reused_elsewhere", "signature.replayed"],
]);
const FORBIDDEN: ReadonlyMap<string, SecurityEventType> = new Map([
  ["tenant_mismatch", "cross_tenant.attempt"],
  ["not_own_device", "cross_tenant.attempt"],
]);
const BUCKETS: ReadonlyMap<string, SecurityEventType> = new Map([
  ["failed_auth", "auth.failed_burst"],
  ["connect.failures", "signature.invalid_burst"],
  ["pairing.guess.ip", "pairing.bruteforce"],
  ["pairing.guess.all", "pairing.bruteforce"],
  ["pairing.autoActivate.ip", "pairing.bruteforce"],
]);

const word = (details: AppError["details"], name: string): string => {
  const value = details?.[name];
  return typeof value === "string" ? value : "";
};

/** Null for a refusal that tells of no attack. */
const typeOf = ({ code, details }: AppError): SecurityEventType | null => {
  const reason = word(details, "reason");
  switch (code) {
    case "UNAUTHORIZED":
      return EVERYDAY.has(reason) ? null : "auth.failed_burst";
    case "INVALID_SIGNATURE":
      return SIGNATURES.get(reason) ?? null;
    case "FORBIDDEN":
      return FORBIDDEN.get(reason) ?? null;
    case "RATE_LIMIT_EXCEEDED":
      return BUCKETS.get(word(details, "bucket")) ?? null;
    case "PRIVILEGE_ESCALATION":
      return "privilege.escalation_attempt";
    case "DEVICE_ALREADY_PAIRED":
      return "device.takeover_attempt";
    case "API_KEY_IP_DENIED":
      return "api_key.used_from_new_ip";
    default:
      return null;
  }
};

const ofPrincipal = (tenantId: string | null, principal: Principal): Concerned => {
  // What an administrator does in a member's name must not get the member blocked.
  if (principal.kind === "user") return { tenantId, entityType: "user", entityId: principal.impersonator?.adminId ?? principal.userId };
  return principal.kind === "apiKey"
    ? { tenantId, entityType: "key", entityId: principal.keyId }
    : { tenantId, entityType: "device", entityId: principal.deviceId };
};

const concernedBy = (error: AppError, scope: OpenScope | null, ip: string): Concerned => {
  if (error.about !== undefined) return error.about;
  if (error.code === "DEVICE_ALREADY_PAIRED" && scope !== null)
    return { tenantId: scope.tenantId, entityType: "device", entityId: word(error.details, "deviceId") };
  return scope?.principal == null ? { tenantId: null, entityType: "ip", entityId: ip } : ofPrincipal(scope.tenantId, scope.principal);
};

interface Refused {
  readonly entry: { readonly id: string };
  readonly info: Pick<RequestInfo, "ip">;
}

export const watchRefusal = (error: AppError, { entry, info }: Refused, scope: OpenScope | null, watch: SecurityWatch): void => {
  const type = typeOf(error);
  if (type === null) return;
  const { ip } = info;
  watch.note({ ...concernedBy(error, scope, ip), type, ipAddress: ip, reason: word(error.details, "reason") || error.code, operation: entry.id });
};

interface Upgrade {
  readonly ip: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A refused socket: what a call calls a bad credential is a bad signature here. */
export const watchUpgrade = (error: AppError, { ip, headers }: Upgrade, watch: SecurityWatch): void => {
  const type = headers[HEADERS.signature] === undefined ? null : typeOf(error);
  if (type === null) return;
  const ofSocket = type === "auth.failed_burst" ? "signature.invalid_burst" : type;
  watch.note({ ...concernedBy(error, null, ip), type: ofSocket, ipAddress: ip, reason: word(error.details, "reason") || error.code, operation: "socket" });
};
