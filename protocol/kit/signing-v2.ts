// The second form of an agent's signature: it covers method, path, query, identity and a nonce too, so that it is good for one request only.
import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { type AgentIdentity, signedHeaders } from "./signing.ts";

export const HEADERS_V2 = {
  version: "x-svc-signature-version",
  /** Which secret; optional. */
  keyId: "x-svc-key-id",
  nonce: "x-svc-nonce",
  signature: "x-svc-signature-v2",
} as const;

/** On every answer to an agent: the versions that the gateway takes. */
export const SIGNATURE_VERSIONS_HEADER = "x-svc-sig-versions";
export const SIGNATURE_VERSIONS = "1,2";

/** A nonce makes waiting for a slow clock pointless: from the future a request may come by this much. The past is as for the first form. */
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

/** A key of its own for each purpose, from the one secret. */
export const restKey = (secret: string): Buffer => Buffer.from(hkdfSync("sha256", secret, "", "svc/agent-rest/v2", 32));

// Raw pairs in the order of their bytes: nothing is decoded, so nothing can be encoded in two ways.
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

/** Constant time for nonce and signature of the right form; any other form is refused before. */
export const verifyV2 = (secret: string, request: SignedRequest, signer: SignerV2 & { readonly signature: string }): boolean =>
  NONCE.test(signer.nonce) && SIGNATURE.test(signer.signature) && timingSafeEqual(macV2(secret, request, signer), Buffer.from(signer.signature, "hex"));

/** Both forms together, so that a gateway which knows only the first accepts the request as well. `target` is path and query. */
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

/** True when any header of the second form is there: then only that form counts. */
export const isSecondForm = (headers: Readonly<Record<string, string | undefined>>): boolean => NAMES_V2.some((name) => headers[name] !== undefined);
