// Reads the claims of a verified token and checks that it is an access token: providers sign ID, refresh and logout tokens with the same keys.
import type { JWTHeaderParameters, JWTPayload } from "jose";
import { isStorableText } from "../../core/rows/storable.ts";

export interface Claims {
  readonly userId: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  /** When the user signed in, in Unix seconds. */
  readonly authTime: number | null;
  readonly tenantId: string | null;
  /** The session that got the token, in tokens of the local issuer. */
  readonly sessionId?: string | null;
}

/** How far the clocks may differ. */
export const TOLERANCE_SECONDS = 30;
const MAX_SUBJECT = 255;
const MAX_TENANT_ID = 128;
const MAX_EMAIL = 320;

const isText = (value: unknown, max: number): value is string => typeof value === "string" && value !== "" && value.length <= max && isStorableText(value);

/** RFC 9068 and its older spelling; most providers write plain `JWT`. */
const HEADER_TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt", "application/at+jwt"]);
/** What providers write into an access token: Keycloak in `typ`, Cognito in `token_use`, others in `token_type`. */
const MARKS: ReadonlySet<string> = new Set(["bearer", "access", "access_token", "at+jwt", "jwt"]);
const MARKED_IN = ["typ", "token_use", "token_type"] as const;
/** Claims that only ID tokens carry (OpenID Connect). */
const ID_TOKEN_CLAIMS = ["nonce", "at_hash", "c_hash", "s_hash"] as const;

/** A token without a mark is an access token unless it has a claim of an ID token. Older Keycloaks put the nonce into marked access tokens. */
export const isAccessToken = (header: JWTHeaderParameters, payload: JWTPayload): boolean => {
  const type = header.typ?.toLowerCase();
  if (type !== undefined && !HEADER_TYPES.has(type)) return false;
  if (payload["events"] !== undefined) return false;
  const marks = MARKED_IN.map((name) => payload[name]).filter((mark) => mark !== undefined);
  if (!marks.every((mark) => typeof mark === "string" && MARKS.has(mark.toLowerCase()))) return false;
  return marks.length > 0 || type?.endsWith("at+jwt") === true || ID_TOKEN_CLAIMS.every((name) => payload[name] === undefined);
};

/** Cognito's access tokens have no audience; they name their client instead. */
export const isMeantFor = (audience: string, { aud, client_id, token_use }: JWTPayload): boolean =>
  aud === undefined ? token_use === "access" && client_id === audience : [aud].flat().includes(audience);

/** Null for a token that was issued before now and expires within the longest accepted life. */
export const untimelyOf = ({ iat, exp }: JWTPayload, nowSeconds: number, maxLifeSeconds: number): "not_yet_valid" | "lifetime" | null => {
  if (iat !== undefined && iat > nowSeconds + TOLERANCE_SECONDS) return "not_yet_valid";
  return exp !== undefined && exp <= nowSeconds + TOLERANCE_SECONDS + maxLifeSeconds ? null : "lifetime";
};

/** Null when a claim has the wrong form: to ignore a bad tenant claim would lift the token's restriction to that tenant. */
export const readClaims = (payload: JWTPayload, tenantClaim: string): Claims | null => {
  const { sub, email, email_verified: verified, auth_time: authTime } = payload;
  const tenantId = payload[tenantClaim] === undefined ? payload["org_id"] : payload[tenantClaim];
  if (!isText(sub, MAX_SUBJECT)) return null;
  if (tenantId !== undefined && !isText(tenantId, MAX_TENANT_ID)) return null;
  if (typeof email === "string" && email !== "" && !isText(email, MAX_EMAIL)) return null;
  return {
    userId: sub,
    email: typeof email === "string" && email !== "" ? email : null,
    // Cognito writes the word.
    emailVerified: verified === true || verified === "true",
    authTime: typeof authTime === "number" && Number.isFinite(authTime) ? authTime : null,
    tenantId: tenantId ?? null,
  };
};
