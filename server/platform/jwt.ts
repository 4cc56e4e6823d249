// Bearer tokens: verified against an identity provider or against the local issuer, whose key lives in the data directory.
import {
  type CryptoKey,
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
  SignJWT,
} from "jose";
import { AppError } from "../core/errors.ts";

const ALGORITHMS = ["EdDSA", "ES256", "PS256", "RS256"] as const;

export interface Claims {
  readonly userId: string;
  readonly email: string | null;
  readonly tenantId: string | null;
}

export interface Tokens {
  /** Throws UNAUTHORIZED for a bad token, IDENTITY_PROVIDER_UNAVAILABLE when its keys cannot be had. */
  verify(token: string): Promise<Claims>;
  readonly issuer: string;
  readonly audience: string;
  /** Path or address of the key set. */
  readonly jwksUri: string;
  readonly algorithms: readonly string[];
  /** Present with the local issuer only. */
  readonly local?: LocalIssuer;
}

export interface LocalIssuer {
  readonly jwks: { readonly keys: readonly JWK[] };
  mint(claims: { readonly userId: string; readonly email?: string; readonly tenantId?: string; readonly ttlSeconds: number }): Promise<string>;
}

export interface TokenSettings {
  readonly audience: string;
  readonly tenantClaim: string;
}

const toClaims = (payload: JWTPayload, tenantClaim: string): Claims => {
  const tenant = payload[tenantClaim] ?? payload["org_id"];
  if (typeof payload.sub !== "string" || payload.sub === "") throw new AppError("UNAUTHORIZED", { details: { reason: "malformed" } });
  return { userId: payload.sub, email: typeof payload["email"] === "string" ? payload["email"] : null, tenantId: typeof tenant === "string" ? tenant : null };
};

const reasonOf = (error: unknown): string => {
  if (error instanceof errors.JWTExpired) return "token_expired";
  if (error instanceof errors.JWTClaimValidationFailed) return error.claim === "aud" ? "wrong_audience" : error.claim === "iss" ? "wrong_issuer" : "malformed";
  return "malformed";
};

const isProviderTrouble = (error: unknown): boolean =>
  error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || !(error instanceof errors.JOSEError) || error.code === "ERR_JOSE_GENERIC";

const createVerify =
  (key: JWTVerifyGetKey, issuer: string, { audience, tenantClaim }: TokenSettings) =>
  async (token: string): Promise<Claims> => {
    try {
      const { payload } = await jwtVerify(token, key, { issuer, audience, algorithms: [...ALGORITHMS], clockTolerance: 30, requiredClaims: ["exp", "sub"] });
      return toClaims(payload, tenantClaim);
    } catch (error) {
      if (error instanceof AppError) throw error;
      // An unreachable provider must not log people out: 503 says "later", a 401 would say "never".
      if (isProviderTrouble(error)) throw new AppError("IDENTITY_PROVIDER_UNAVAILABLE", { retryAfter: 5, cause: error });
      throw new AppError("UNAUTHORIZED", { details: { reason: reasonOf(error) } });
    }
  };

/** A provider that cannot be reached leaves us the keys it gave last. Who is not among them may be new, so the trouble stays the answer. */
const withLastGood =
  (remote: ReturnType<typeof createRemoteJWKSet>): JWTVerifyGetKey =>
  async (header, token) => {
    try {
      return await remote(header, token);
    } catch (trouble) {
      const known = remote.jwks();
      if (known === undefined || !isProviderTrouble(trouble)) throw trouble;
      return createLocalJWKSet(known)(header, token).catch(() => {
        throw trouble;
      });
    }
  };

/** A real identity provider. Its keys are cached 10 minutes and fetched at most every 30 s. */
export const createOidcTokens = (issuer: string, jwksUri: string | undefined, settings: TokenSettings): Tokens => {
  const uri = jwksUri ?? `${issuer.replace(/\/$/, "")}/.well-known/jwks.json`;
  const key = createRemoteJWKSet(new URL(uri), { cacheMaxAge: 600_000, cooldownDuration: 30_000, timeoutDuration: 5_000 });
  return { verify: createVerify(withLastGood(key), issuer, settings), issuer, audience: settings.audience, jwksUri: uri, algorithms: ALGORITHMS };
};

/** Makes a fresh signing key for the local issuer, to be kept by the caller. */
export const generateSigningKey = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair("EdDSA", { extractable: true });
  return { ...(await exportJWK(privateKey)), alg: "EdDSA", use: "sig", kid: crypto.randomUUID() };
};

/** Independent of host and port, so that a token outlives a move. */
const LOCAL_ISSUER = "urn:mooring:local";
export const LOCAL_JWKS_PATH = "/.well-known/jwks.json";

/** The issuer for those who have no identity provider: same tokens, same checks, its keys served by every node. */
export const createLocalTokens = async (privateJwk: JWK, settings: TokenSettings): Promise<Tokens> => {
  const issuer = LOCAL_ISSUER;
  const { d: _secret, ...publicJwk } = privateJwk;
  const jwks = { keys: [publicJwk] };
  const signingKey = (await importJWK(privateJwk, "EdDSA")) as CryptoKey;
  const mint: LocalIssuer["mint"] = ({ userId, email, tenantId, ttlSeconds }) =>
    new SignJWT({ ...(email === undefined ? {} : { email }), ...(tenantId === undefined ? {} : { [settings.tenantClaim]: tenantId }) })
      .setProtectedHeader({ alg: "EdDSA", kid: publicJwk.kid ?? "" })
      .setSubject(userId)
      .setIssuer(issuer)
      .setAudience(settings.audience)
      .setIssuedAt()
      .setExpirationTime(`${ttlSeconds}s`)
      .sign(signingKey);
  return {
    verify: createVerify(createLocalJWKSet(jwks), issuer, settings),
    issuer,
    audience: settings.audience,
    jwksUri: LOCAL_JWKS_PATH,
    algorithms: ["EdDSA"],
    local: { jwks, mint },
  };
};
