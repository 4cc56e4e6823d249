// What a verified token says of its bearer, and whether it is an access token at all: ID, refresh and logout tokens are signed by the same keys.
import type { JWTHeaderParameters, JWTPayload } from "jose";
import { isStorableText } from "../core/storable.ts";

export interface Claims {
  readonly userId: string;
  readonly email: string | null;
  readonly tenantId: string | null;
}

/** Clocks may be so far apart. */
export const TOLERANCE_SECONDS = 30;
const MAX_SUBJECT = 255;
const MAX_TENANT_ID = 128;
const MAX_EMAIL = 320;

const isText = (value: unknown, max: number): value is string => typeof value === "string" && value !== "" && value.length <= max && isStorableText(value);

/** RFC 9068 and its older spelling; most providers write plain JWT. */
const HEADER_TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt", "application/at+jwt"]);
/** How providers that mark their tokens name an access token: Keycloak in `typ`, Cognito in `token_use`, others in `token_type`. */
const MARKS: ReadonlySet<string> = new Set(["bearer", "access", "access_token", "at+jwt", "jwt"]);
const MARKED_IN = ["typ", "token_use", "token_type"] as const;
/** Claims of ID tokens (OpenID Connect) and of security events such as logout tokens. */
const OF_ID_TOKENS = ["nonce", "at_hash", "c_hash", "s_hash"] as const;

/** An unmarked token is one unless it carries what only the others do. Older Keycloaks put the nonce into marked ones. */
export const isAccessToken = (header: JWTHeaderParameters, payload: JWTPayload): boolean => {
  const type = header.typ?.toLowerCase();
  if (type !== undefined && !HEADER_TYPES.has(type)) return false;
  if (payload["events"] !== undefined) return false;
  const marks = MARKED_IN.map((name) => payload[name]).filter((mark) => mark !== undefined);
  if (!marks.every((mark) => typeof mark === "string" && MARKS.has(mark.toLowerCase()))) return false;
  return marks.length > 0 || type?.endsWith("at+jwt") === true || OF_ID_TOKENS.every((name) => payload[name] === undefined);
};

/** Cognito's access tokens have no audience; they name the client that they were issued to. */
export const isMeantFor = (audience: string, { aud, client_id, token_use }: JWTPayload): boolean =>
  aud === undefined ? token_use === "access" && client_id === audience : [aud].flat().includes(audience);

/** Whether its times are such as a provider writes: issued before now, and at an end within the longest life. */
export const isTimely = ({ iat, exp }: JWTPayload, nowSeconds: number, maxLifeSeconds: number): boolean =>
  (iat === undefined || iat <= nowSeconds + TOLERANCE_SECONDS) && exp !== undefined && exp <= nowSeconds + TOLERANCE_SECONDS + maxLifeSeconds;

/** Null when a claim is not what it has to be: one that was left out would take the token's bounds with it. */
export const readClaims = (payload: JWTPayload, tenantClaim: string): Claims | null => {
  const { sub, email } = payload;
  const tenantId = payload[tenantClaim] === undefined ? payload["org_id"] : payload[tenantClaim];
  if (!isText(sub, MAX_SUBJECT)) return null;
  if (tenantId !== undefined && !isText(tenantId, MAX_TENANT_ID)) return null;
  if (typeof email === "string" && email !== "" && !isText(email, MAX_EMAIL)) return null;
  return { userId: sub, email: typeof email === "string" && email !== "" ? email : null, tenantId: tenantId ?? null };
};
