// Which credential a request carries: exactly one of bearer, API key (in a header of its own or in Authorization) and agent signature, else the cookie of
// a session, or none.
import { HEADERS, HEADERS_V2, isSecondForm } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { HttpRequest } from "../http/http-message.ts";
import { readSession, type SessionCredential } from "./session.ts";

export interface SecondForm {
  readonly nonce: string;
  readonly signature: string;
}

export type Credential =
  | { readonly kind: "none" }
  | { readonly kind: "bearer"; readonly token: string }
  | SessionCredential
  /** Without a tenant id, the key's own tenant is meant. */
  | { readonly kind: "apiKey"; readonly key: string; readonly tenantId: string | null }
  | {
      readonly kind: "agent";
      readonly agentId: string;
      readonly tenantId: string;
      readonly timestamp: string;
      readonly signature: string;
      readonly v2: SecondForm | null;
      /** A v2 signature covers these beside the body. */
      readonly request: Pick<HttpRequest, "method" | "path" | "query">;
    };

/** Parts of a credential that reach a look-up, so they must look like ids. */
const ID_HEADERS = ["x-api-key", HEADERS.agentId, HEADERS.tenantId];
const ID = /^[\x20-\x7e]{0,255}$/;
type SignedPart = Pick<HttpRequest, "headers" | "method" | "path" | "query">;

const unauthorized = (reason: string): AppError => new AppError("UNAUTHORIZED", { details: { reason } });

// No JWT begins so: its first part is Base64 of a JSON object, "ey".
const KEY_PREFIX = "svk_";

/** `curl -u svk_...:` sends the key as the user, without a password. */
const fromBasic = (encoded: string): string | undefined => /^([\x21-\x7e]{1,255}):$/.exec(Buffer.from(encoded, "base64").toString("latin1"))?.[1];

const authorized = (header: string, tenantId: string | undefined): Credential => {
  const [, scheme = "", value = ""] = /^(Bearer|Basic) +(\S+)$/i.exec(header) ?? [];
  const isBasic = scheme.toLowerCase() === "basic";
  const token = isBasic ? fromBasic(value) : value;
  if (token === undefined || token === "") throw unauthorized("malformed");
  if (token.startsWith(KEY_PREFIX)) return { kind: "apiKey", key: token, tenantId: tenantId ?? null };
  if (isBasic) throw unauthorized("malformed");
  return { kind: "bearer", token };
};

const apiKey = (key: string, tenantId: string | undefined): Credential => {
  if (tenantId === undefined) throw unauthorized("missing_tenant_header");
  return { kind: "apiKey", key, tenantId };
};

const secondForm = ({ headers }: SignedPart): SecondForm | null => {
  if (!isSecondForm(headers)) return null;
  const { [HEADERS_V2.version]: version, [HEADERS_V2.nonce]: nonce, [HEADERS_V2.signature]: signature } = headers;
  if (version === undefined || nonce === undefined || signature === undefined) throw unauthorized("missing_header");
  if (version !== "2") throw new AppError("INVALID_SIGNATURE", { details: { reason: "bad_signature" } });
  return { nonce, signature };
};

const agent = (request: SignedPart): Credential => {
  const { headers, method, path, query } = request;
  const { [HEADERS.agentId]: agentId, [HEADERS.tenantId]: tenantId, [HEADERS.timestamp]: timestamp, [HEADERS.signature]: signature } = headers;
  if (agentId === undefined || tenantId === undefined || timestamp === undefined || signature === undefined) throw unauthorized("missing_header");
  return { kind: "agent", agentId, tenantId, timestamp, signature, v2: secondForm(request), request: { method, path, query } };
};

/** An agent sent it. */
const isSigned = (headers: HttpRequest["headers"]): boolean =>
  headers[HEADERS.signature] !== undefined || headers[HEADERS.agentId] !== undefined || headers[HEADERS.timestamp] !== undefined || isSecondForm(headers);

/** Throws UNAUTHORIZED for half a credential, VALIDATION_FAILED for more than one. */
export const readCredential = (request: SignedPart): Credential => {
  const { headers } = request;
  if (ID_HEADERS.some((name) => !ID.test(headers[name] ?? ""))) throw unauthorized("malformed");
  const { authorization, "x-api-key": key } = headers;
  const signed = isSigned(headers);
  if (Number(authorization !== undefined) + Number(key !== undefined) + Number(signed) > 1)
    throw new AppError("VALIDATION_FAILED", { details: { reason: "multiple_credentials" } });
  if (authorization !== undefined) return authorized(authorization, headers[HEADERS.tenantId]);
  if (key !== undefined) return apiKey(key, headers[HEADERS.tenantId]);
  return signed ? agent(request) : (readSession(request) ?? { kind: "none" });
};
