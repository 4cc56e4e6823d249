// v2 signatures of agents: they also cover method, path, query, identity and a nonce, so each is valid for a single request.
import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { type AgentIdentity, signedHeaders } from "./signing.ts";

export const HEADERS_V2 = {
  version: "x-svc-signature-version",
  /** Names the secret; optional. */
  keyId: "x-svc-key-id",
  nonce: "x-svc-nonce",
  signature: "x-svc-signature-v2",
} as const;

/** Every response of the gateway lists the versions that it accepts. By this header an agent knows the gateway's answers from those of proxies. */
export const SIGNATURE_VERSIONS_HEADER = "x-svc-sig-versions";
export const SIGNATURE_VERSIONS = "1,2";

/** How far a v2 timestamp may lie ahead of the gateway's clock. Behind it, the tolerance of v1 holds. */
export const SKEW_AHEAD_V2_MS = 60_000;

const NONCE = /^[A-Za-z0-9_-]{22}$/;
const SIGNATURE = /^[0-9a-f]{64}$/;

export interface SignedRequest {
  /** Upper case. */
  readonly method: string;
  /** As sent; /api/v1 stands for /v1. */
  readonly path: string;
  /** As sent, without the question mark. */
  readonly query: string;
  readonly body: string | Uint8Array;
}

export interface SignerV2 {
  readonly tenantId: string;
  readonly agentId: string;
  readonly timestamp: string;
  readonly nonce: string;
}

/** Derives a key for REST signatures, so that no other use of the secret shares it. */
export const restKey = (secret: string): Buffer => Buffer.from(hkdfSync("sha256", secret, "", "svc/agent-rest/v2", 32));

// Sorts the raw pairs by their bytes. It decodes nothing, so two encodings of one query stay different.
const sortedQuery = (query: string): string =>
  query
    .split("&")
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .join("&");

const canonicalV2 = ({ method, path, query, body }: SignedRequest, { tenantId, agentId, timestamp, nonce }: SignerV2): string =>
  [
    "SVC-HMAC-SHA256-V2",
    method,
    path.replace(/^\/api\/v1(?=\/|$)/, "/v1"),
    sortedQuery(query),
    tenantId,
    agentId,
    timestamp,
    nonce,
    createHash("sha256").update(body).digest("hex"),
  ].join("\n");

const macV2 = (secret: string, request: SignedRequest, signer: SignerV2): Buffer =>
  createHmac("sha256", restKey(secret)).update(canonicalV2(request, signer)).digest();

export const signV2 = (secret: string, request: SignedRequest, signer: SignerV2): string => macV2(secret, request, signer).toString("hex");

/** Compares in constant time; returns false at once for a nonce or signature of another form. */
export const verifyV2 = (secret: string, request: SignedRequest, signer: SignerV2 & { readonly signature: string }): boolean =>
  NONCE.test(signer.nonce) && SIGNATURE.test(signer.signature) && timingSafeEqual(macV2(secret, request, signer), Buffer.from(signer.signature, "hex"));

/** Headers with a v1 and a v2 signature, so that a gateway that only knows v1 accepts the request too. `target` is path and query. */
export const signedHeadersV2 = (
  identity: AgentIdentity,
  { method, target, body }: { readonly method: string; readonly target: string; readonly body: string | Uint8Array },
  now: Date,
): Record<string, string> => {
  const [path = "", query = ""] = target.split("?", 2);
  const nonce = randomBytes(16).toString("base64url");
  const signature = signV2(identity.secret, { method, path, query, body }, { ...identity, timestamp: now.toISOString(), nonce });
  return { ...signedHeaders(identity, body, now), [HEADERS_V2.version]: "2", [HEADERS_V2.nonce]: nonce, [HEADERS_V2.signature]: signature };
};

const NAMES_V2 = Object.values(HEADERS_V2);

/** True if the request has any v2 header; then only its v2 signature counts. */
export const isSecondForm = (headers: Readonly<Record<string, string | undefined>>): boolean => NAMES_V2.some((name) => headers[name] !== undefined);
