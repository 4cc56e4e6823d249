// Signs people in at an OpenID Connect provider: authorization code, PKCE, state and nonce. The library talks to the provider; this bounds its waits
// and tells a provider in trouble (503) from a sign-in that failed (401).
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type ClientAuth,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  fetchUserInfo,
  None,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import type { TokenRefusal } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { type Outbound, OutboundError } from "../../core/ports/outbound.ts";
import { isStorableText } from "../../core/rows/storable.ts";
import { createOutboundFetch } from "../outbound/fetch.ts";
import { type Claims, readClaims } from "./token-claims.ts";

export interface ProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scopes: string;
  readonly tenantClaim: string;
  /** Where the provider sends the browser; known once the listener is open. */
  readonly redirectUri: () => string;
  readonly outbound: Outbound;
}

/** What the browser keeps between the two halves of a sign-in. */
export interface SignInChecks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface Person extends Claims {
  readonly emailVerified: boolean;
  readonly name: string | null;
}

export interface IdentityProvider {
  begin(): Promise<{ readonly location: string; readonly checks: SignInChecks }>;
  /** `parameters` are those with which the provider sent the browser back. */
  complete(parameters: URLSearchParams, checks: SignInChecks): Promise<Person>;
  /** Null if the provider has none, or is away. */
  endSessionUrl(): Promise<string | null>;
  authorizationEndpoint(): Promise<string | null>;
}

const TIMEOUT_SECONDS = 5;
/** The largest description, tokens or user info. */
const MAX_BYTES = 262_144;
const DISCOVERY_KEPT_MS = 600_000;
/** Calls in this time after a failure get its answer without a new attempt. */
const PAUSE_MS = 5_000;
const RETRY_AFTER_SECONDS = 5;
const MAX_NAME = 200;

const unavailable = (cause: unknown): AppError => new AppError("IDENTITY_PROVIDER_UNAVAILABLE", { retryAfter: RETRY_AFTER_SECONDS, cause });
const failed = (reason: string, cause?: unknown): AppError => new AppError("SIGN_IN_FAILED", { details: { reason }, cause });

/** Codes of answers from which nobody can tell whether the sign-in is good. `invalid_client`: the operator's settings are wrong. */
const TROUBLE: ReadonlySet<string | undefined> = new Set([
  ...["OAUTH_TIMEOUT", "OAUTH_ABORT", "OAUTH_RESPONSE_IS_NOT_CONFORM", "OAUTH_RESPONSE_IS_NOT_JSON", "OAUTH_PARSE_ERROR"],
  ...["server_error", "temporarily_unavailable", "invalid_client", "unauthorized_client"],
]);

const BY_CLAIM: ReadonlyMap<unknown, TokenRefusal> = new Map([
  ["iss", "issuer"],
  ["aud", "audience"],
  ["azp", "audience"],
  ["exp", "expired"],
  ["nbf", "not_yet_valid"],
]);

/** The library names the claim, header or parameter that it refuses in the cause of the cause. */
const wordOf = (error: ClientError, issuer: string): TokenRefusal | "invalid_answer" => {
  const facts = error.cause instanceof Error ? error.cause.cause : undefined;
  if (typeof facts !== "object" || facts === null) return "invalid_answer";
  if ("claim" in facts) return BY_CLAIM.get(facts.claim) ?? "invalid_answer";
  if (!("expected" in facts)) return "invalid_answer";
  if ("header" in facts) return "algorithm";
  // Among the callback's parameters it expects the state or the issuer.
  return "parameters" in facts && facts.expected === issuer ? "issuer" : "invalid_answer";
};

const toAppError = (error: unknown, issuer: string): AppError => {
  if (error instanceof AppError) return error;
  if (error instanceof AuthorizationResponseError)
    return TROUBLE.has(error.error) ? unavailable(error) : failed(error.error === "access_denied" ? "denied" : "refused", error);
  if (error instanceof ResponseBodyError) return TROUBLE.has(error.error) || error.status >= 500 ? unavailable(error) : failed("refused", error);
  if (error instanceof ClientError && !(error.cause instanceof OutboundError) && !TROUBLE.has(error.code)) return failed(wordOf(error, issuer), error);
  return unavailable(error);
};

/** By the first method of RFC 6749 unless the provider takes only the other. */
const withSecret =
  (secret: string): ClientAuth =>
  (server, client, body, headers) => {
    const offered = server.token_endpoint_auth_methods_supported as readonly string[] | undefined;
    const isPostOnly = offered !== undefined && !offered.includes("client_secret_basic") && offered.includes("client_secret_post");
    return (isPostOnly ? ClientSecretPost : ClientSecretBasic)(secret)(server, client, body, headers);
  };

/** The provider's description, asked for when somebody needs it. A provider that is away keeps its last one. */
const createDiscovery = ({ issuer, clientId, clientSecret, outbound }: ProviderSettings, clock: Pick<Clock, "elapsed">) => {
  const ourFetch = createOutboundFetch({ outbound, owner: "identity provider", timeoutMs: TIMEOUT_SECONDS * 1_000, maxBodyBytes: MAX_BYTES });
  let known: Configuration | null = null;
  let freshUntil = 0;
  let trouble: { readonly error: AppError; readonly until: number } | null = null;
  let pending: Promise<Configuration> | null = null;

  const ask = async (): Promise<Configuration> => {
    try {
      const auth = clientSecret === undefined ? None() : withSecret(clientSecret);
      // The settings refuse a provider without TLS in production.
      const execute = issuer.startsWith("http:") ? [allowInsecureRequests] : [];
      known = await discovery(new URL(issuer), clientId, undefined, auth, { timeout: TIMEOUT_SECONDS, execute, [customFetch]: ourFetch as CustomFetch });
      freshUntil = clock.elapsed() + DISCOVERY_KEPT_MS;
      return known;
    } catch (error) {
      freshUntil = clock.elapsed() + PAUSE_MS;
      if (known !== null) return known;
      trouble = { error: unavailable(error), until: freshUntil };
      throw trouble.error;
    } finally {
      pending = null;
    }
  };

  return (): Promise<Configuration> => {
    if (known !== null && clock.elapsed() < freshUntil) return Promise.resolve(known);
    if (known === null && trouble !== null && clock.elapsed() < trouble.until) return Promise.reject(trouble.error);
    pending ??= ask();
    return pending;
  };
};

const personOf = (claims: Readonly<Record<string, unknown>>, tenantClaim: string): Person => {
  const known = readClaims(claims, tenantClaim);
  if (known === null) throw failed("invalid_claims");
  const { name, email_verified: verified } = claims;
  const isName = typeof name === "string" && name !== "" && isStorableText(name);
  return { ...known, emailVerified: known.email !== null && verified === true, name: isName ? name.slice(0, MAX_NAME).toWellFormed() : null };
};

export const createIdentityProvider = (settings: ProviderSettings, clock: Pick<Clock, "elapsed">): IdentityProvider => {
  const configuration = createDiscovery(settings, clock);

  /** Its ID token comes from the provider itself over TLS, which vouches for it as a signature would: rotated keys play no part. */
  const exchange = async (parameters: URLSearchParams, { state, nonce, verifier }: SignInChecks): Promise<Person> => {
    const config = await configuration();
    const url = new URL(settings.redirectUri());
    url.search = parameters.toString();
    const tokens = await authorizationCodeGrant(config, url, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (claims === undefined) throw failed("invalid_answer");
    const { userinfo_endpoint: more } = config.serverMetadata();
    const info = claims["email"] === undefined && more !== undefined ? await fetchUserInfo(config, tokens.access_token, claims.sub) : {};
    return personOf({ ...info, ...claims }, settings.tenantClaim);
  };

  const orNull = <T>(value: Promise<T>): Promise<T | null> => value.catch(() => null);

  return {
    begin: async () => {
      const config = await configuration();
      const checks = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
      const url = buildAuthorizationUrl(config, {
        redirect_uri: settings.redirectUri(),
        scope: settings.scopes,
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: "S256",
      });
      return { location: url.href, checks };
    },
    complete: (parameters, checks) =>
      exchange(parameters, checks).catch((error: unknown) => {
        throw toAppError(error, settings.issuer);
      }),
    endSessionUrl: async () => {
      const config = await orNull(configuration());
      return config?.serverMetadata().end_session_endpoint === undefined ? null : buildEndSessionUrl(config).href;
    },
    authorizationEndpoint: async () => (await orNull(configuration()))?.serverMetadata().authorization_endpoint ?? null,
  };
};
