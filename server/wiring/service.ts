// The features of the service itself: its health, what it says of itself, its operators, what it charges, and its audit log.
import { cookieNames } from "../core/people/session-cookies.ts";
import { createAdmin } from "../features/admin/index.ts";
import { createAnnouncements } from "../features/announcements/index.ts";
import { createAttention } from "../features/attention/index.ts";
import { createAudit } from "../features/audit/index.ts";
import { createBilling } from "../features/billing/index.ts";
import { createCosts } from "../features/costs/index.ts";
import { createGeneral, type GeneralDeps, statedLimits } from "../features/general/index.ts";
import { billingCheck, clockCheck, createHealth, databaseCheck, loadCheck, mailCheck, redisCheck } from "../features/health/index.ts";
import { createTenantOverview } from "../features/overview/index.ts";
import { createIdentityProvider, type IdentityProvider } from "../platform/identity/identity-provider.ts";
import { processIdentity } from "../platform/postgres/process-identity.ts";
import { commit, SERVICE, version } from "../version.ts";
import type { InstallationDeps, Wiring } from "./deps.ts";
import type { Peers } from "./peers.ts";
import { billingSettings } from "./settings.ts";

const SERVICE_FEATURES = ["agent-socket", "poll", "live-feed", "idempotency"];

/** Whether this process of this machine still runs. */
const lives = async (pid: number): Promise<boolean> => (await processIdentity(pid)) !== undefined;

export const service = (wiring: Wiring, peers: Peers) => {
  const { kit, config, serving, outbox } = wiring;
  return {
    health: () => healthOf(wiring, peers),
    general: () =>
      createGeneral({
        ...kit,
        ...serviceFacts(wiring),
        changelog: serving.changelog,
        rateLimits: serving.rateLimits,
        memberships: peers.tenants.memberships,
        flags: peers.admin.flags,
        announcements: { current: () => peers.announcements.current(), undismissed: (userId) => peers.announcements.undismissed(userId) },
      }),
    announcements: () => createAnnouncements(kit),
    admin: () =>
      createAdmin({
        ...kit,
        lives,
        outbox,
        node: serving.node,
        book: serving.book,
        bus: serving.cluster.bus,
        channelOf: serving.cluster.channelOf,
        ownListeners: serving.ownListeners,
        anyTenant: peers.tenants.anyTenant,
        anyDevice: peers.devices.anyDevice,
        commands: peers.commands,
        grantPlan: (tx, scope, to) => peers.billing.grantPlan(tx, scope, to),
        stuck: () => wiring.stuck,
        settings: wiring.settings?.admin,
      }),
    billing: () =>
      createBilling({
        ...kit,
        counters: wiring.counters,
        tenants: peers.tenants.standing,
        settings: billingSettings(config, wiring.publicUrl, wiring.trusted),
      }),
    costs: () =>
      createCosts({
        ...kit,
        requirementsOf: (appType) => serving.catalogue.find(appType)?.template.requirements ?? null,
        knownDevices: peers.devices.known,
        holdFleets: peers.fleets.holdForLimit,
        addAlertRule: (...asked) => peers.alerts.addBudgetRule(...asked),
        wakeJob: (name) => serving.book.wake(name),
      }),
    attention: () => createAttention({ sources: wiring.attention }),
    overview: () =>
      createTenantOverview({
        ...kit,
        devices: peers.devices,
        appStates: (scope) => peers.apps.countByStatus(scope),
        openCommands: (scope) => peers.commands.countOpen(scope),
        changes: {
          rollouts: (...asked) => peers.rollouts.underWay(...asked),
          bulkOperations: (...asked) => peers.bulkOperations.underWay(...asked),
        },
        notableEvents: (...asked) => peers.live.notable(...asked),
        setup: {
          hasCertificate: () => wiring.publicUrl().startsWith("https:"),
          countChannels: (scope) => peers.alerts.countChannels(scope),
          countPolicies: (scope) => peers.backupPolicies.count(scope),
          isHidden: (scope) => peers.tenants.isSetupHidden(scope),
        },
      }),
    audit: () => createAudit({ ...kit, keepDays: config.AUDIT_RETENTION_DAYS }),
  };
};

const healthOf = ({ kit, config, mails, serving }: Wiring, { billing }: Peers) =>
  createHealth({
    clock: kit.clock,
    version,
    startedAtMs: kit.clock.elapsed(),
    isDraining: () => serving.node.report().draining,
    checks: [
      databaseCheck(kit.db.condition),
      ...(config.REDIS_URL === undefined ? [] : [redisCheck(serving.cluster.bus)]),
      clockCheck(serving.clockOffsetMs),
      loadCheck(() => serving.node.report().overloaded),
      ...(billing.isAnswering === null ? [] : [billingCheck(billing.isAnswering)]),
      ...(mails.enabled ? [mailCheck(mails.isDelivering)] : []),
    ],
  });

/** Null without a provider, or if this gateway is not registered there. */
export const openProvider = ({ config, clock, publicUrl, trusted }: InstallationDeps): IdentityProvider | null =>
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
const serviceFacts = ({ config, tokens, publicUrl, provider }: Wiring): Pick<GeneralDeps, "service" | "auth" | "administrators"> => ({
  administrators: config.ADMIN_USERS,
  service: {
    name: SERVICE,
    version,
    environment: config.NODE_ENV,
    commit,
    features: SERVICE_FEATURES,
    payments: config.STRIPE_SECRET_KEY === undefined ? "none" : "stripe",
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
