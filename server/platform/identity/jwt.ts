// Verifies bearer tokens of an identity provider, or of the local issuer, whose key lives in DATA_DIR.
import {
  type CryptoKey,
  createLocalJWKSet,
  decodeJwt,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTVerifyGetKey,
  jwtVerify,
  SignJWT,
} from "jose";
import type { TokenRefusal } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { Outbound } from "../../core/ports/outbound.ts";
import { createKeySet } from "./key-set.ts";
import { type Claims, isAccessToken, isMeantFor, readClaims, TOLERANCE_SECONDS, untimelyOf } from "./token-claims.ts";

const ALGORITHMS = ["EdDSA", "ES256", "PS256", "RS256"] as const;

export interface Tokens {
  /** Throws UNAUTHORIZED for a bad token, IDENTITY_PROVIDER_UNAVAILABLE when the provider's keys cannot be fetched. */
  verify(token: string): Promise<Claims>;
  /** Null for the local issuer: it is the gateway's own public URL. */
  readonly issuer: string | null;
  readonly audience: string;
  /** Path or URL of the key set. */
  readonly jwksUri: string;
  readonly algorithms: readonly string[];
  /** Set for the local issuer only. */
  readonly local?: LocalIssuer;
}

export interface LocalIssuer {
  readonly jwks: { readonly keys: readonly JWK[] };
  mint(claims: TokenToMint): Promise<string>;
}

export interface TokenToMint {
  /** The gateway's public URL, where others find the keys. */
  readonly issuer: string;
  readonly userId: string;
  readonly email?: string | undefined;
  /** Who may mint tokens here vouches for the address, unless told. */
  readonly emailVerified?: boolean | undefined;
  readonly tenantId?: string | undefined;
  /** The token ends with this session. */
  readonly sessionId?: string;
  /** Unless told, minting is the sign-in. */
  readonly signedInAt?: Date;
  readonly ttlSeconds: number;
}

export interface TokenSettings {
  readonly audience: string;
  readonly tenantClaim: string;
}

interface VerifySettings {
  /** Counted from now; a token that is valid for longer is refused. */
  readonly maxLifeSeconds: number;
  readonly clock: Pick<Clock, "now">;
}

const refused = (reason: TokenRefusal): AppError => new AppError("UNAUTHORIZED", { details: { reason } });

const BY_CLAIM: ReadonlyMap<string, TokenRefusal> = new Map([
  ["iss", "issuer"],
  ["nbf", "not_yet_valid"],
]);
/** A key of another issuer is unknown, too; then the issuer is the reason that helps. The token proves nothing. */
const namesOther = (token: string, issuer: string | null): boolean => {
  try {
    return issuer !== null && decodeJwt(token).iss !== issuer;
  } catch {
    return false;
  }
};

const reasonOf = (error: unknown, token: string, issuer: string | null): TokenRefusal => {
  if (error instanceof errors.JWTExpired) return "expired";
  if (error instanceof errors.JOSEAlgNotAllowed) return "algorithm";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "signature";
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return namesOther(token, issuer) ? "issuer" : "key_unknown";
  if (!(error instanceof errors.JWTClaimValidationFailed) || error.reason !== "check_failed") return "malformed";
  return BY_CLAIM.get(error.claim) ?? "malformed";
};

const SESSION_CLAIM = "sid";
/** Providers let an access token live 30 days at most. */
const OIDC_MAX_LIFE = 31 * DAY_SECONDS;
/** The longest life that `cli token` mints. */
const LOCAL_MAX_LIFE = 366 * DAY_SECONDS;

const createVerify = (key: JWTVerifyGetKey, issuer: string | null, { audience, tenantClaim, maxLifeSeconds, clock }: TokenSettings & VerifySettings) => {
  const check = async (token: string): Promise<Claims> => {
    const now = clock.now();
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      ...(issuer === null ? {} : { issuer }),
      algorithms: [...ALGORITHMS],
      clockTolerance: TOLERANCE_SECONDS,
      requiredClaims: ["exp", "sub"],
      currentDate: now,
    });
    if (!isMeantFor(audience, payload)) throw refused("audience");
    if (!isAccessToken(protectedHeader, payload)) throw refused("token_type");
    const untimely = untimelyOf(payload, now.getTime() / 1_000, maxLifeSeconds);
    if (untimely !== null) throw refused(untimely);
    const claims = readClaims(payload, tenantClaim);
    if (claims === null) throw refused("malformed");
    // In a provider's token this names a session of the provider's.
    const { [SESSION_CLAIM]: sessionId } = payload;
    return issuer === null && typeof sessionId === "string" ? { ...claims, sessionId } : claims;
  };
  return (token: string): Promise<Claims> =>
    check(token).catch((error: unknown) => {
      if (error instanceof AppError) throw error;
      // An unreachable provider or an unusable key must not log people out: 503 says "later", 401 would say "never".
      if (!(error instanceof errors.JOSEError) || error instanceof errors.JWKSInvalid)
        throw new AppError("IDENTITY_PROVIDER_UNAVAILABLE", { retryAfter: 5, cause: error });
      throw refused(reasonOf(error, token, issuer));
    });
};

/** Tokens of an OpenID Connect identity provider. */
export const createOidcTokens = (
  issuer: string,
  jwksUri: string | undefined,
  { outbound, ...settings }: TokenSettings & { readonly outbound: Outbound },
  clock: Clock,
): Tokens => {
  const uri = jwksUri ?? `${issuer.replace(/\/$/, "")}/.well-known/jwks.json`;
  const verify = createVerify(createKeySet(uri, outbound, clock), issuer, { ...settings, maxLifeSeconds: OIDC_MAX_LIFE, clock });
  return { verify, issuer, audience: settings.audience, jwksUri: uri, algorithms: ALGORITHMS };
};

/** Generates a signing key for the local issuer; the caller stores it. */
export const generateSigningKey = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair("EdDSA", { extractable: true });
  return { ...(await exportJWK(privateKey)), alg: "EdDSA", use: "sig", kid: crypto.randomUUID() };
};

export const LOCAL_JWKS_PATH = "/.well-known/jwks.json";
const LOCAL_DISCOVERY_PATH = "/.well-known/openid-configuration";
const LOCAL_CLIENT = "mooring";

/** What others need to verify tokens of the local issuer, by path. */
export const localIssuerDocuments = ({ jwks }: LocalIssuer, issuer: () => string): ReadonlyMap<string, () => string> =>
  new Map([
    [LOCAL_JWKS_PATH, () => JSON.stringify(jwks)],
    [
      LOCAL_DISCOVERY_PATH,
      () =>
        JSON.stringify({
          issuer: issuer(),
          jwks_uri: new URL(LOCAL_JWKS_PATH, issuer()).href,
          response_types_supported: [],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["EdDSA"],
        }),
    ],
  ]);

/** The issuer of installations without an identity provider: same tokens, same checks; every node serves its keys. */
export const createLocalTokens = async (privateJwk: JWK, settings: TokenSettings, clock: Clock): Promise<Tokens> => {
  const { d: _secret, ...publicJwk } = privateJwk;
  const jwks = { keys: [publicJwk] };
  const signingKey = (await importJWK(privateJwk, "EdDSA")) as CryptoKey;
  // RFC 9068, so that libraries accept it as an access token. Claims that are undefined do not appear.
  const mint: LocalIssuer["mint"] = ({ issuer, userId, email, emailVerified = true, tenantId, sessionId, signedInAt, ttlSeconds }) => {
    const now = clock.now();
    return new SignJWT({
      client_id: LOCAL_CLIENT,
      auth_time: Math.floor((signedInAt ?? now).getTime() / 1_000),
      ...(email === undefined ? {} : { email, email_verified: emailVerified }),
      [settings.tenantClaim]: tenantId,
      [SESSION_CLAIM]: sessionId,
    })
      .setProtectedHeader({ alg: "EdDSA", typ: "at+jwt", kid: publicJwk.kid ?? "" })
      .setSubject(userId)
      .setIssuer(issuer)
      .setAudience(settings.audience)
      .setJti(crypto.randomUUID())
      .setIssuedAt(now)
      .setExpirationTime(secondsFromNow(ttlSeconds, now))
      .sign(signingKey);
  };
  return {
    // The key is ours alone, so tokens survive a move of the gateway to another URL.
    verify: createVerify(createLocalJWKSet(jwks), null, { ...settings, maxLifeSeconds: LOCAL_MAX_LIFE, clock }),
    issuer: null,
    audience: settings.audience,
    jwksUri: LOCAL_JWKS_PATH,
    algorithms: ["EdDSA"],
    local: { jwks, mint },
  };
};
