// How an agent proves itself: header names, the signed message, sign and verify. Used by server, simulator and tests alike.
import { createHmac, timingSafeEqual } from "node:crypto";

export const HEADERS = {
  agentId: "x-svc-agent-id",
  tenantId: "x-svc-tenant-id",
  timestamp: "x-svc-timestamp",
  signature: "x-svc-signature",
} as const;

/** Clock tolerance to either side, in milliseconds (interface section 5). */
export const SKEW_TOLERANCE_MS = 300_000;

// Strict on purpose: with a loose form, body "…+00" and timestamp "2026-…" could trade characters and keep their signature.
const TIMESTAMP = /^20\d{2}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const SIGNATURE = /^[0-9a-f]{64}$/;

/** Milliseconds since 1970, or null for anything but the strict ISO 8601 form. */
export const parseTimestamp = (text: string): number | null => {
  if (!TIMESTAMP.test(text)) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
};

/** hex(HMAC-SHA256(secret, body + timestamp)); the secret's UTF-8 bytes are the key, body is taken byte for byte. */
export const sign = (secret: string, body: string | Uint8Array, timestamp: string): string =>
  createHmac("sha256", secret).update(body).update(timestamp).digest("hex");

/** Constant time for signatures of the right form; any other form is refused before. */
export const verify = (secret: string, body: string | Uint8Array, timestamp: string, signature: string): boolean =>
  SIGNATURE.test(signature) && timingSafeEqual(createHmac("sha256", secret).update(body).update(timestamp).digest(), Buffer.from(signature, "hex"));

export interface AgentIdentity {
  readonly agentId: string;
  readonly tenantId: string;
  readonly secret: string;
}

/** The four headers of a signed request; an upgrade signs the empty body. `now` is the agent's idea of server time. */
export const signedHeaders = ({ agentId, tenantId, secret }: AgentIdentity, body: string | Uint8Array, now: Date): Record<string, string> => {
  const timestamp = now.toISOString();
  return { [HEADERS.agentId]: agentId, [HEADERS.tenantId]: tenantId, [HEADERS.timestamp]: timestamp, [HEADERS.signature]: sign(secret, body, timestamp) };
};
