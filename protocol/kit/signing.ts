// v1 signatures of agents: headers, signed message, sign and verify.
import { createHmac, timingSafeEqual } from "node:crypto";

export const HEADERS = {
  agentId: "x-svc-agent-id",
  tenantId: "x-svc-tenant-id",
  timestamp: "x-svc-timestamp",
  signature: "x-svc-signature",
} as const;

/** Clock tolerance in either direction, in milliseconds. */
export const SKEW_TOLERANCE_MS = 300_000;

// Strict, because body and timestamp are signed without a separator: in a loose form, characters could move from one to the other under the same signature.
const TIMESTAMP = /^20\d{2}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const SIGNATURE = /^[0-9a-f]{64}$/;

/** Milliseconds since 1970; null unless the text has the strict ISO 8601 form. */
export const parseTimestamp = (text: string): number | null => {
  if (!TIMESTAMP.test(text)) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
};

/** hex(HMAC-SHA256(secret, body + timestamp)). The key is the secret's UTF-8 bytes; the body is signed byte for byte. */
export const sign = (secret: string, body: string | Uint8Array, timestamp: string): string =>
  createHmac("sha256", secret).update(body).update(timestamp).digest("hex");

/** Compares in constant time; returns false at once for a signature that is not 64 lowercase hex digits. */
export const verify = (secret: string, body: string | Uint8Array, timestamp: string, signature: string): boolean =>
  SIGNATURE.test(signature) && timingSafeEqual(createHmac("sha256", secret).update(body).update(timestamp).digest(), Buffer.from(signature, "hex"));

export interface AgentIdentity {
  readonly agentId: string;
  readonly tenantId: string;
  readonly secret: string;
}

/** The four headers of a signed request; an upgrade signs the empty body. `now` is the agent's estimate of the server's time. */
export const signedHeaders = ({ agentId, tenantId, secret }: AgentIdentity, body: string | Uint8Array, now: Date): Record<string, string> => {
  const timestamp = now.toISOString();
  return { [HEADERS.agentId]: agentId, [HEADERS.tenantId]: tenantId, [HEADERS.timestamp]: timestamp, [HEADERS.signature]: sign(secret, body, timestamp) };
};
