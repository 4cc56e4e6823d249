// Checks the signatures of an agent as the gateway does, and notes what an agent must not send at all.

import { HEADERS, parseTimestamp, SKEW_TOLERANCE_MS, verify } from "../../kit/signing.ts";
import { HEADERS_V2, SKEW_AHEAD_V2_MS, verifyV2 } from "../../kit/signing-v2.ts";
import type { Time } from "../../kit/timers.ts";
import type { BrokenRule } from "../verdict.ts";
import { type HeardCall, headerOf, type KitReply, refuseCall } from "./reply.ts";

export interface KitIdentity {
  readonly deviceId: string;
  readonly agentId: string;
  readonly tenantId: string;
}

export interface SignatureRules {
  readonly identity: KitIdentity;
  /** The secrets that count now. */
  secrets: string[];
  /** The gateway's clock minus that of this machine. */
  clockOffsetMs: number;
  /** The device is locked to v2. */
  needsV2: boolean;
  /** Called with the secret of each good signature. */
  onUse: (secret: string) => void;
}

export interface SignatureCheck {
  /** Null: the signature is good. */
  check(call: HeardCall): KitReply | null;
  checkProof(nonce: string, proof: { readonly timestamp: string; readonly signature: string }): boolean;
  readonly nowMs: () => number;
}

const FORBIDDEN = ["authorization", "x-api-key", "origin"];

export const createSignatureCheck = (rules: SignatureRules, time: Time, fault: (finding: BrokenRule) => void): SignatureCheck => {
  const stamps = new Set<string>();
  const nonces = new Set<string>();
  const nowMs = (): number => time.wallMs() + rules.clockOffsetMs;
  const invalid = (reason: string, details: Readonly<Record<string, unknown>> = {}): KitReply =>
    refuseCall(401, "INVALID_SIGNATURE", { details: { reason, ...details } });

  const skewOf = (timestamp: string, aheadMs: number): KitReply | null => {
    const atMs = parseTimestamp(timestamp);
    if (atMs === null) {
      fault({ rule: "R2.4", due: "a timestamp like 2026-01-02T03:04:05.678Z", seen: timestamp });
      return invalid("bad_timestamp");
    }
    const skewMs = Math.round(atMs - nowMs());
    const isGood = skewMs <= aheadMs && skewMs >= -SKEW_TOLERANCE_MS;
    return isGood ? null : invalid("timestamp_skew", { serverTime: new Date(nowMs()).toISOString(), skewMs });
  };
  const used = (secret: string): null => {
    rules.onUse(secret);
    return null;
  };
  const once = (timestamp: string): void => {
    if (stamps.has(timestamp)) fault({ rule: "R2.2", due: "a timestamp of its own for each signature", seen: `${timestamp} twice` });
    stamps.add(timestamp);
  };
  const checkV2 = (call: HeardCall, timestamp: string, signature: string): KitReply | null => {
    const nonce = headerOf(call, HEADERS_V2.nonce) ?? "";
    const request = { method: call.method, path: call.path, query: call.query, body: call.body };
    const signer = { tenantId: rules.identity.tenantId, agentId: rules.identity.agentId, timestamp, nonce, signature };
    const secret = rules.secrets.find((each) => verifyV2(each, request, signer));
    if (secret === undefined) return invalid("bad_signature");
    if (nonces.has(nonce)) {
      fault({ rule: "R16.1", due: "a nonce of its own for each request", seen: `${nonce} twice` });
      return invalid("replayed");
    }
    nonces.add(nonce);
    return skewOf(timestamp, SKEW_AHEAD_V2_MS) ?? used(secret);
  };

  /** Null: they are those of this agent, once each. */
  const headersOf = (call: HeardCall): KitReply | null => {
    for (const name of FORBIDDEN) if (call.headers.has(name)) fault({ rule: "R2.3", due: `no header ${name}`, seen: headerOf(call, name) ?? "" });
    for (const name of Object.values(HEADERS)) {
      const times = call.headers.get(name)?.length ?? 0;
      if (times === 1) continue;
      fault({ rule: "R2.3", due: `the header ${name}, once, in ${call.method} ${call.path}`, seen: `${times} times` });
      const hasNone = !call.headers.has("upgrade") && Object.values(HEADERS).every((each) => !call.headers.has(each));
      return refuseCall(401, "UNAUTHORIZED", { details: { reason: hasNone ? "missing" : "missing_header" } });
    }
    const [agentId, tenantId] = [headerOf(call, HEADERS.agentId), headerOf(call, HEADERS.tenantId)];
    if (agentId === rules.identity.agentId && tenantId === rules.identity.tenantId) return null;
    fault({ rule: "R2.3", due: "the agent's own ids", seen: `${agentId} and ${tenantId}` });
    return refuseCall(401, "UNAUTHORIZED", { details: { reason: "unknown_agent" } });
  };

  return {
    nowMs,
    check: (call) => {
      const wrong = headersOf(call);
      if (wrong !== null) return wrong;
      const timestamp = headerOf(call, HEADERS.timestamp) ?? "";
      const signatureV2 = headerOf(call, HEADERS_V2.signature);
      if (signatureV2 !== undefined) return checkV2(call, timestamp, signatureV2);
      if (rules.needsV2) return invalid("signature_version", { accepted: ["2"] });
      const secret = rules.secrets.find((each) => verify(each, call.body, timestamp, headerOf(call, HEADERS.signature) ?? ""));
      if (secret === undefined) return invalid("bad_signature");
      once(timestamp);
      return skewOf(timestamp, SKEW_TOLERANCE_MS) ?? used(secret);
    },
    checkProof: (nonce, { timestamp, signature }) => {
      once(timestamp);
      return rules.secrets.some((secret) => verify(secret, nonce, timestamp, signature)) && skewOf(timestamp, SKEW_TOLERANCE_MS) === null;
    },
  };
};
