// What the configuration means for each feature.
import { INVITES_PER_HOUR, LIMITS } from "../../protocol/index.ts";
import { backupFolderOf, type Config } from "../config.ts";
import type { Outbound } from "../core/ports/outbound.ts";
import type { BillingSettings } from "../features/billing/index.ts";
import type { CommandSettings } from "../features/commands/index.ts";
import type { DomainSettings } from "../features/domains/index.ts";
import type { InviteSettings } from "../features/invites/index.ts";
import { isReturnAllowed, type PairingSettings } from "../features/pairing/index.ts";
import type { SessionSettings } from "../features/sessions/index.ts";
import { createOutboundFetch } from "../platform/outbound/fetch.ts";
import type { OwnListeners } from "../platform/outbound/own-listeners.ts";
import { createOutboundGuard, type OutboundGuard } from "../platform/outbound/url.ts";

export const agentSettings = (config: Config) => ({
  releasesFolder: config.AGENT_RELEASES_DIR,
  heartbeatSeconds: config.HEARTBEAT_SECONDS,
  pollSeconds: config.POLL_SECONDS,
  maxOutputBytes: 65_536,
  requestsPerMinute: config.RATE_LIMIT_AGENT ?? LIMITS.agent[0].limit,
  heartbeatsPerMinute: config.RATE_LIMIT_HEARTBEAT ?? LIMITS.heartbeat[0].limit,
});

/** Tenants name addresses that the gateway calls. Its own it does not call. */
export const outboundGuard = (config: Config, publicUrl: () => string, { isOwn }: Pick<OwnListeners, "isOwn">): OutboundGuard =>
  createOutboundGuard({
    allowCidrs: config.WEBHOOK_ALLOW_CIDRS,
    allowHttp: config.WEBHOOK_ALLOW_HTTP,
    isOwn,
    ownUrls: () => [publicUrl(), ...(config.PORTAL_URL === undefined ? [] : [config.PORTAL_URL])],
  });

/** The bounds of an answer of Stripe: a page of a hundred subscriptions has some 500 KB. */
const STRIPE_BOUNDS = { owner: "stripe", timeoutMs: 10_000, maxBodyBytes: 4_194_304 };

export const alertSettings = (config: Config, publicUrl: () => string) => ({ portalUrl: (): string => config.PORTAL_URL ?? publicUrl() });

export const billingSettings = (config: Config, publicUrl: () => string, outbound: Outbound): BillingSettings => {
  const portalUrl = (): string => config.PORTAL_URL ?? publicUrl();
  const { STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: webhookSecret, STRIPE_PRICES: prices, STRIPE_API_URL: apiUrl } = config;
  return {
    graceDays: config.BILLING_GRACE_DAYS,
    stripe: { secretKey, webhookSecret, prices, apiUrl, fetch: createOutboundFetch({ outbound, ...STRIPE_BOUNDS }) },
    portalUrl,
    isReturnAllowed: (url) => isReturnAllowed(url, { portalUrl: portalUrl(), hosts: config.RETURN_HOSTS }),
  };
};

export const commandSettings = (config: Config): Partial<CommandSettings> => ({
  maxOpenPerDevice: config.COMMAND_QUEUE_PER_DEVICE,
  maxOpenPerTenant: config.COMMAND_QUEUE_PER_TENANT,
  pollIntervalSeconds: config.POLL_SECONDS,
  keepDays: config.COMMAND_RETENTION_DAYS,
});

/** Null: this installation keeps no backups. */
export const backupFolder = (config: Config): string | null => backupFolderOf(config);

export const inviteSettings = (config: Config, publicUrl: () => string): InviteSettings => ({
  portalUrl: () => config.PORTAL_URL ?? publicUrl(),
  perHour: config.RATE_LIMIT_INVITES === null ? null : INVITES_PER_HOUR.limit,
});

export const liveSettings = (config: Config) => ({
  streamsPerTenant: config.LIVE_STREAMS_PER_TENANT,
  streamsPerCredential: config.LIVE_STREAMS_PER_CREDENTIAL,
});

export const mailSettings = ({ SMTP_URL: url, MAIL_FROM: from }: Config) => (url === undefined || from === undefined ? null : { url, from });

export const pairingSettings = (config: Config, urls: Pick<PairingSettings, "publicUrl" | "socketUrl">): PairingSettings => ({
  ...urls,
  portalUrl: () => config.PORTAL_URL ?? urls.publicUrl(),
  returnHosts: config.RETURN_HOSTS,
});

export const sessionSettings = (config: Config, publicUrl: () => string): SessionSettings => {
  const portalUrl = (): string => config.PORTAL_URL ?? publicUrl();
  const pages = (): readonly string[] => [portalUrl(), ...(config.CONSOLE === "on" ? [publicUrl()] : [])];
  return {
    idleSeconds: config.SESSION_IDLE_HOURS * 3_600,
    lifeSeconds: config.SESSION_DAYS * 86_400,
    publicUrl,
    portalUrl,
    home: () => config.PORTAL_URL ?? `${publicUrl()}${config.CONSOLE === "on" ? "/" : "/v1/docs"}`,
    isReturnAllowed: (url) => pages().some((page) => isReturnAllowed(url, { portalUrl: page, hosts: config.RETURN_HOSTS })),
  };
};

export const tenantSettings = (config: Config) => ({
  ownedTenantsPerUser: config.TENANTS_PER_USER,
  deletionDays: config.TENANT_DELETION_DAYS,
  metricRetention: {
    60: config.METRICS_MINUTES_HOURS * 3_600,
    3600: config.METRICS_HOURS_DAYS * 86_400,
    86400: config.METRICS_DAYS_DAYS * 86_400,
  },
});

const ACME_POLL_MS = 250;

const hostsOf = (...urls: readonly (string | undefined)[]): readonly string[] => urls.flatMap((url) => (url === undefined ? [] : [new URL(url).hostname]));

const acmeOf = (config: Config): DomainSettings["acme"] => {
  const { ACME_DIRECTORY_URL: directoryUrl, ACME_EMAIL: email, ACME_EAB_KEY_ID: kid, ACME_EAB_HMAC_KEY: hmacKey } = config;
  if (directoryUrl === undefined) return null;
  return { directoryUrl, email, eab: kid === undefined || hmacKey === undefined ? null : { kid, hmacKey }, pollMs: ACME_POLL_MS };
};

export const customDomainSettings = (config: Config, publicUrl: () => string): DomainSettings => ({
  dnsServers: config.DNS_SERVERS,
  edge: () => ({ cnameTarget: `domains.${config.TUNNEL_DOMAIN}`, addresses: config.EDGE_ADDRESSES }),
  ownZones: () => [config.TUNNEL_DOMAIN, ...hostsOf(publicUrl(), config.PORTAL_URL, config.EDGE_URL)],
  servesTls: config.ACME_DIRECTORY_URL !== undefined || config.EDGE_TLS_CERT_FILE !== undefined,
  acme: acmeOf(config),
});
