// What the service says of itself: its health, its name and version, and how people sign in.
import { cookieNames } from "../core/people/session-cookies.ts";
import type { BillingFeature } from "../features/billing/index.ts";
import { type GeneralDeps, statedLimits } from "../features/general/index.ts";
import { billingCheck, createHealth, databaseCheck, loadCheck, mailCheck, redisCheck } from "../features/health/index.ts";
import { createIdentityProvider, type IdentityProvider } from "../platform/identity/identity-provider.ts";
import type { OutgoingMail } from "../platform/mail/mail.ts";
import { commit, SERVICE, version } from "../version.ts";
import type { FeaturesDeps } from "./deps.ts";

const SERVICE_FEATURES = ["agent-socket", "poll", "live-feed", "idempotency"];

interface Watched {
  readonly mails: Pick<OutgoingMail, "enabled" | "isDelivering">;
  readonly billing: Pick<BillingFeature, "isAnswering">;
}

export const healthOf = ({ clock, node, db, config, cluster }: FeaturesDeps, { mails, billing }: Watched) =>
  createHealth({
    clock,
    version,
    startedAtMs: clock.elapsed(),
    isDraining: () => node.report().draining,
    checks: [
      databaseCheck(db.condition),
      ...(config.REDIS_URL === undefined ? [] : [redisCheck(cluster.bus)]),
      loadCheck(() => node.report().overloaded),
      ...(billing.isAnswering === null ? [] : [billingCheck(billing.isAnswering)]),
      ...(mails.enabled ? [mailCheck(mails.isDelivering)] : []),
    ],
  });

/** Null without a provider, or if this gateway is not registered there. */
export const openProvider = ({ config, clock, publicUrl, trusted }: FeaturesDeps): IdentityProvider | null =>
  config.OIDC_ISSUER === undefined || config.OIDC_CLIENT_ID === undefined
    ? null
    : createIdentityProvider(
        {
          issuer: config.OIDC_ISSUER,
          clientId: config.OIDC_CLIENT_ID,
          clientSecret: config.OIDC_CLIENT_SECRET,
          scopes: config.OIDC_SCOPES,
          tenantClaim: config.OIDC_TENANT_CLAIM,
          outbound: trusted,
          redirectUri: () => `${publicUrl()}/v1/auth/callback`,
        },
        clock,
      );

/** What the service tells of itself and of how people sign in. */
export const serviceFacts = (
  { config, clock, tokens, publicUrl }: FeaturesDeps,
  provider: IdentityProvider | null,
): Pick<GeneralDeps, "clock" | "service" | "auth" | "administrators"> => ({
  clock,
  administrators: config.ADMIN_USERS,
  service: {
    name: SERVICE,
    version,
    environment: config.NODE_ENV,
    commit,
    features: SERVICE_FEATURES,
    limits: statedLimits(),
    docsUrl: () => `${publicUrl()}/v1/docs`,
  },
  auth: {
    issuer: () => tokens.issuer ?? publicUrl(),
    audience: tokens.audience,
    algorithms: tokens.algorithms,
    local: tokens.local !== undefined,
    jwksUri: () => new URL(tokens.jwksUri, publicUrl()).href,
    signIn: tokens.local === undefined ? (provider === null ? null : "oidc") : "link",
    loginUrl: () => `${publicUrl()}/v1/auth/login`,
    clientId: config.OIDC_CLIENT_ID ?? null,
    scopes: provider === null ? [] : config.OIDC_SCOPES.split(" ").filter(Boolean),
    authorizationEndpoint: async () => provider?.authorizationEndpoint() ?? null,
    cookies: () => cookieNames(publicUrl()),
  },
});
