// HMAC verification of an agent's signed request: over the raw bytes, in constant time, with the same answer for every wrong signature.
import { parseTimestamp, SKEW_AHEAD_V2_MS, SKEW_TOLERANCE_MS, verify, verifyV2 } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, type Concerned } from "../../core/errors.ts";
import type { AgentRecord, AgentRegistry } from "../../core/ports/agent-registry.ts";
import { accessChanged } from "../call/stream-reauthorizer.ts";
import { takesBody } from "../rest/rest-input.ts";
import type { Credential } from "./credentials.ts";

export interface AgentAuthDeps {
  readonly agents: Pick<AgentRegistry, "find" | "promote">;
  readonly clock: Clock;
}

export type AgentCredential = Extract<Credential, { kind: "agent" }>;

const invalid = (reason: string, details: Record<string, unknown> = {}, about?: Concerned): AppError =>
  new AppError("INVALID_SIGNATURE", { details: { reason, ...details }, about });

/** The device that somebody calls in the name of; undefined for an agent that does not exist. */
export const concernedDevice = (record: AgentRecord | null): Concerned | undefined =>
  record === null ? undefined : { tenantId: record.tenantId, entityType: "device", entityId: record.deviceId };

// A stand-in to compare with, so that an unknown agent takes as long as a known one.
const NOBODY = "no agent has this secret";

/** The secret that made the signature, or null. A wrong signature is always compared with two. */
export const matchSecret = (record: AgentRecord | null, signed: { body: string | Uint8Array; timestamp: string; signature: string }): string | null =>
  matchBy(record, (secret) => verify(secret, signed.body, signed.timestamp, signed.signature));

const matchBy = (record: AgentRecord | null, isGood: (secret: string) => boolean): string | null => {
  const [current = NOBODY, pending = NOBODY] = record?.secrets ?? [];
  const byCurrent = isGood(current);
  // Only the maker of a good signature is answered sooner.
  if (byCurrent && record !== null && current !== NOBODY) return current;
  const byPending = isGood(pending);
  return byPending && record !== null && pending !== NOBODY ? pending : null;
};

/** Verifies v2 whenever any part of it is there, even if v1 is good too: an attacker who strips one header must not choose the version. */
export const matchCredential = (record: AgentRecord | null, credential: AgentCredential, body: string | Uint8Array): string | null => {
  const { v2, tenantId, agentId, timestamp } = credential;
  if (v2 === null) return matchSecret(record, { body, timestamp, signature: credential.signature });
  return matchBy(record, (secret) =>
    verifyV2(secret, { ...credential.request, body }, { tenantId, agentId, timestamp, nonce: v2.nonce, signature: v2.signature }),
  );
};

/** Throws for an agent that is locked to v2 and sends v1 alone. Call it after the signature proved good, so that only its maker learns this. */
export const checkVersion = ({ minSignatureVersion }: AgentRecord, version: 1 | 2): void => {
  if (version < minSignatureVersion) throw invalid("signature_version", { accepted: [minSignatureVersion] });
};

export const versionOf = ({ v2 }: AgentCredential): 1 | 2 => (v2 === null ? 1 : 2);

export const aheadMs = ({ v2 }: AgentCredential): number => (v2 === null ? SKEW_TOLERANCE_MS : SKEW_AHEAD_V2_MS);

/** Tells the server's time, so use it only for a caller that has proven the secret. */
export const skewed = (timestampMs: number, now: Date): AppError =>
  invalid("timestamp_skew", { serverTime: now.toISOString(), skewMs: timestampMs - now.getTime() });

/** Throws when the timestamp is out of tolerance. */
export const checkSkew = (timestampMs: number, now: Date, aheadMs = SKEW_TOLERANCE_MS): void => {
  const skewMs = timestampMs - now.getTime();
  if (skewMs > aheadMs || skewMs < -SKEW_TOLERANCE_MS) throw skewed(timestampMs, now);
};

const revoked = (): AppError => new AppError("FORBIDDEN", { details: { reason: "device_revoked" } });

/**
 * For a call that lasts. Its signature was good, and its time is over by now. An agent whose secret was rotated meanwhile calls again with the new
 * one; a thief of the old one cannot.
 */
export const createAgentRecheck =
  ({ agents }: Pick<AgentAuthDeps, "agents">) =>
  async (credential: AgentCredential, body: Uint8Array): Promise<AgentRecord> => {
    const record = await agents.find(credential.agentId);
    if (record?.revoked === true) throw revoked();
    if (record === null || matchCredential(record, credential, body) === null) throw accessChanged();
    return record;
  };

export const createAgentAuth =
  ({ agents, clock }: AgentAuthDeps) =>
  async (credential: AgentCredential, body: Uint8Array): Promise<AgentRecord> => {
    // A signature over text that somebody else chose, such as the nonce of a hello, must not pass for a signed request.
    if (body.byteLength > 0 && !takesBody(credential.request.method)) throw new AppError("VALIDATION_FAILED", { details: { reason: "body_not_allowed" } });
    const timestampMs = parseTimestamp(credential.timestamp);
    if (timestampMs === null) throw invalid("bad_timestamp");
    const found = await agents.find(credential.agentId);
    const record = found?.tenantId === credential.tenantId ? found : null;
    const secret = matchCredential(record, credential, body);
    // A removed agent has no secrets and can prove nothing; without this answer it would come back for ever.
    if (record?.revoked === true) throw revoked();
    if (record === null || secret === null) throw invalid("bad_signature", {}, concernedDevice(record));
    checkVersion(record, versionOf(credential));
    checkSkew(timestampMs, clock.now(), aheadMs(credential));
    if (secret === record.secrets[1]) await agents.promote(record.agentId, secret);
    return record;
  };
