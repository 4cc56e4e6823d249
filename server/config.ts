// Reads the environment, and is the only file that does: one schema, all problems reported at once, a frozen result.
import { z } from "zod";
import { STREAM_LIMITS } from "../protocol/index.ts";
import { databaseSettings, databaseUrl, redisUrl } from "./config-database.ts";
import { domainSettings } from "./config-domains.ts";
import { edgeRelations, edgeSettings } from "./config-edge.ts";

import { cidrs, flag, integer, list, planLimits, rate, stripePrices, words } from "./config-values.ts";
import { ConfigError } from "./core/errors.ts";
import { isLoopback, signsOfSetUp } from "./set-up.ts";

/** The one who runs an installation without an identity provider. */
export const LOCAL_USER = "local-admin";

const LOOPBACK = ["127.0.0.0/8", "::1/128"];

type Env = Readonly<Record<string, string | undefined>>;

/** Defaults that suit a newcomer and that an operator rarely means: in production each needs its name in ALLOW_IN_PRODUCTION. */
const UNSAFE = {
  "local-issuer": { setting: "OIDC_ISSUER", why: "name your identity provider; or, to issue tokens with a key in DATA_DIR" },
  "embedded-database": { setting: "DATABASE_URL", why: "name your PostgreSQL; or, to keep all data in the embedded one on this machine" },
  "any-origin": { setting: "CORS_ORIGINS", why: "name the origins of your portals, or off; or, to allow calls from scripts of any origin" },
} as const;
type Unsafe = keyof typeof UNSAFE;
const UNSAFE_NAMES = Object.keys(UNSAFE) as [Unsafe, ...Unsafe[]];

/** Every setting with its default and meaning. `npm run docs:settings` writes docs/settings.md from it. */
export const Settings = z.object({
  PORT: integer(8080, 0, 65_535).describe("port of the public listener (REST, tRPC, agent socket); 0 takes a free one"),
  HOST: z.string().min(1).default("127.0.0.1").describe("address of the public listener"),
  PUBLIC_URL: z.url().optional().describe("URL at which agents and portals reach the gateway; default http(s)://HOST:PORT"),
  PORTAL_URL: z
    .url()
    .optional()
    .describe("your own portal: codes are confirmed at PORTAL_URL/pair, invites accepted at PORTAL_URL/invite; default PUBLIC_URL, the console"),
  AGENT_RELEASES_DIR: z
    .string()
    .min(1)
    .optional()
    .describe("folder of signed releases of the agent (npm run agent:release), to which agents can update themselves; if unset, none is offered"),
  AGENT_UPDATE_KEY: z
    .string()
    .regex(/^[\w-]{43}$/, "must be a public key of npm run agent:release")
    .optional()
    .describe("public key of your releases of the agent: what /install.sh installs takes them; if unset, these agents take none"),
  CONSOLE: z.enum(["on", "off"]).default("on").describe("whether the public listener serves the console, at /"),
  TLS_CERT_FILE: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificate with its chain; the public listener then serves HTTPS and reloads changed files within 10 s"),
  TLS_KEY_FILE: z.string().min(1).optional().describe("PEM private key of TLS_CERT_FILE, without a passphrase"),
  INTERNAL_PORT: integer(8081, 0, 65_535).describe(
    "port of the internal listener, which also speaks HTTP/1.0: health; with the token metrics, node status and drain",
  ),
  INTERNAL_HOST: z.string().min(1).default("127.0.0.1").describe("address of the internal listener; INTERNAL_TOKEN is required beyond loopback"),
  INTERNAL_TOKEN: z.string().min(16).optional().describe("bearer token of the internal listener; generated into DATA_DIR if unset"),
  ...edgeSettings,
  DATA_DIR: z.string().min(1).default(".data").describe("folder of the embedded database and of generated keys and tokens"),
  DATABASE_URL: databaseUrl
    .optional()
    .describe("PostgreSQL 15 or newer, several servers with commas (db1:5432,db2:5432); if unset, the gateway runs an embedded PostgreSQL 18"),
  DATABASE_MIGRATION_URL: databaseUrl
    .optional()
    .describe("the same database for migrations, past a pooler or as a role that owns the tables; default DATABASE_URL"),
  ...databaseSettings,
  DATABASE_STATEMENTS: z
    .enum(["named", "unnamed"])
    .default("named")
    .describe("set `unnamed` behind a pooler in transaction mode without prepared statements (PgBouncer before 1.21)"),
  REDIS_URL: redisUrl
    .optional()
    .describe(
      "Redis that connects several nodes, its sentinels (redis-sentinel://s1:26379,s2:26379/0?master=mymaster), or members of a cluster (redis-cluster://r1:6379,r2:6379); if unset, bus and limits stay within this process",
    ),
  NODE_ID: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .optional()
    .describe("name of this node; generated if unset"),
  NODE_ENV: z.enum(["development", "test", "production"]).default("development").describe("`production` refuses insecure defaults"),
  ALLOW_IN_PRODUCTION: list
    .pipe(z.array(z.enum(UNSAFE_NAMES)))
    .describe("insecure defaults that you accept in production: local-issuer, embedded-database, any-origin"),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "silent"]).default("info").describe("minimum level of log lines"),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("OpenTelemetry collector for traces (OTLP over HTTP, protobuf); the SDK's other OTEL_ variables apply too; no traces if unset"),
  MASTER_KEY: z
    .string()
    .regex(/^[A-Za-z0-9+/_-]{43}=?$/, "must be 32 bytes in base64")
    .optional()
    .describe("32 bytes in base64 that encrypt secrets at rest; required with DATABASE_URL, otherwise generated into DATA_DIR"),
  MASTER_KEY_OTHER: z
    .string()
    .regex(/^[A-Za-z0-9+/_-]{43}=?$/, "must be 32 bytes in base64")
    .optional()
    .describe("a second key that opens secrets and seals none, while the master key changes: first the next one, then the former one"),
  OIDC_ISSUER: z.url().optional().describe("URL of your identity provider; if unset, the gateway issues tokens with a key in DATA_DIR"),
  OIDC_AUDIENCE: z.string().min(1).default("mooring").describe("audience that tokens must have"),
  OIDC_JWKS_URI: z.url().optional().describe("URL of the identity provider's keys; default OIDC_ISSUER/.well-known/jwks.json"),
  OIDC_CLIENT_ID: z.string().min(1).optional().describe("id of this gateway at the identity provider, for the sign-in of people in the browser"),
  OIDC_CLIENT_SECRET: z.string().min(1).optional().describe("secret of OIDC_CLIENT_ID; unset for a public client"),
  OIDC_SCOPES: z.string().min(1).default("openid profile email").describe("scopes that a sign-in asks for"),
  OIDC_TENANT_CLAIM: z.string().min(1).default("tenant_id").describe("token claim that names the tenant"),
  TRUSTED_PROXIES: cidrs.describe("networks of your proxies; the gateway trusts X-Forwarded-For from these only"),
  CORS_ORIGINS: list.describe("origins of browser portals; `off` allows none, unset allows any, but without the cookie of a session"),
  RETURN_HOSTS: list.describe("hosts that `return_to` may name, beside the portal's"),
  SESSION_IDLE_HOURS: integer(24, 1, 8_760).describe("hours without use after which a person's session ends"),
  SESSION_DAYS: integer(14, 1, 365).describe("days after which a person's session ends, however often it is used"),
  RATE_LIMIT_STANDARD: rate.describe("requests a minute per credential (100)"),
  RATE_LIMIT_READS: rate.describe("reads a minute per person and tenant, where a batch counts once (600)"),
  RATE_LIMIT_TENANT: rate.describe("requests a minute per tenant (1,000)"),
  RATE_LIMIT_AGENT: rate.describe("requests a minute per agent, not counting heartbeats (100)"),
  RATE_LIMIT_HEARTBEAT: rate.describe("heartbeats a minute per device (60)"),
  RATE_LIMIT_ANONYMOUS: rate.describe("requests a minute per address without a credential (60)"),
  RATE_LIMIT_PAIRING: rate.describe("requests a minute for each of the pairing limits (3 to 10)"),
  RATE_LIMIT_FAILED_AUTH: rate.describe("failed credentials a minute per address before the answer is 429 instead of 401 (20)"),
  RATE_LIMIT_CONNECT: rate.describe("socket connects a minute per agent (10)"),
  RATE_LIMIT_WEBHOOK_TESTS: rate.describe("tests of webhooks a minute per tenant (10)"),
  RATE_LIMIT_INVITES: rate.describe("invite links looked up, accepted or declined a minute per address (10)"),
  ADMIN_USERS: list.describe(`ids of the users who may call /v1/admin (${LOCAL_USER}, if neither OIDC_ISSUER nor DATABASE_URL is set)`),
  ACCEPT_PER_SECOND: integer(200, 1, 1_000_000).describe("socket upgrades a second on this node; a quarter of that in its first 10 s"),
  FRAMES_PER_SECOND: integer(20, 1, 1_000_000).describe("frames a second per agent socket; bursts of three times as many"),
  MAX_CONNECTIONS: integer(20_000, 1, 1_000_000).describe("maximum number of sockets on this node"),
  TENANTS_PER_USER: integer(3, 1, 1_000_000).describe("maximum number of tenants that one user may own"),
  PLAN_LIMITS_JSON: planLimits.optional().describe("replaces the table of plan limits: {plan: {resource: number or null}}"),
  STRIPE_SECRET_KEY: z.string().min(8).optional().describe("secret key of Stripe; if unset, a checkout changes the plan at once and nobody pays"),
  STRIPE_WEBHOOK_SECRET: z
    .string()
    .min(8)
    .optional()
    .describe("signing secret of the Stripe webhook that sends to /v1/billing/provider-events; required with STRIPE_SECRET_KEY"),
  STRIPE_PRICES: stripePrices.default({}).describe('prices in Stripe: {"pro": {"monthly": "price_1", "annual": "price_2"}}; only plans named here are sold'),
  STRIPE_API_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("origin of Stripe's API, for a proxy; default https://api.stripe.com"),
  BILLING_GRACE_DAYS: integer(14, 0, 365).describe("days after a failed payment until the tenant is suspended"),
  SMTP_URL: z
    .url({ protocol: /^smtps?$/ })
    .optional()
    .describe("mail server, as smtp://user:password@host:587 or smtps://...; if unset, invites are links that you hand over yourself"),
  MAIL_FROM: z
    .string()
    .regex(/^[^\p{C}]*[^\s@<>]+@[^\s@<>]+>?$/u, "must be an address, or a name with the address in angle brackets")
    .optional()
    .describe("sender of all mail, as `Mooring <mooring@example.org>`; required with SMTP_URL"),
  HEARTBEAT_SECONDS: integer(30, 1, 300).describe("interval of agents' heartbeats; a device is offline after three intervals and 10 s"),
  HEARTBEATS_PER_SECOND: integer(5_000, 1, 1_000_000).describe(
    "heartbeats a second that one node accepts; with too many agents for it, the gateway lengthens their interval, to 300 s at most",
  ),
  POLL_SECONDS: integer(30, 1, 3_600).describe("interval at which agents without a socket poll"),
  CLOSE_GRACE_SECONDS: integer(15, 0, 300).describe("time in which an agent may reconnect after its socket broke before its device is offline"),
  LIVE_STREAMS_PER_TENANT: integer(STREAM_LIMITS.tenant, 1, 1_000_000).describe("live streams per tenant on this node; beyond that 429 STREAM_LIMIT_REACHED"),
  LIVE_STREAMS_PER_CREDENTIAL: integer(STREAM_LIMITS.credential, 1, 1_000_000).describe(
    "live streams per user or API key on this node; beyond that 429 STREAM_LIMIT_REACHED",
  ),
  COMMAND_QUEUE_PER_DEVICE: integer(100, 1, 100_000).describe("open commands per device; beyond that 429 COMMAND_QUEUE_FULL"),
  COMMAND_QUEUE_PER_TENANT: integer(20_000, 1, 10_000_000).describe("open commands per tenant; beyond that 429 COMMAND_QUEUE_FULL"),
  COMMAND_RETENTION_DAYS: integer(30, 8, 3_650).describe("days to keep ended commands with their history and idempotency keys"),
  EVENT_RETENTION_DAYS: integer(30, 1, 365).describe("days to keep dispatched events"),
  AUDIT_RETENTION_DAYS: integer(365, 1, 3_650).describe("days to keep audit records"),
  TENANT_DELETION_DAYS: integer(30, 0, 365).describe("days in which the owner can restore a deleted tenant"),
  METRICS_MINUTES_HOURS: integer(60, 1, 2_400).describe("hours to keep metrics of each minute; about 150 bytes a row, one row a minute for each device"),
  METRICS_HOURS_DAYS: integer(60, 1, 3_650).describe("days to keep metrics of each hour"),
  METRICS_DAYS_DAYS: integer(400, 1, 36_500).describe("days to keep metrics of each day"),
  WEBHOOK_ALLOW_CIDRS: cidrs.describe("private networks that webhooks and other calls to tenants' addresses may reach; loopback in a first look"),
  WEBHOOK_ALLOW_HTTP: flag(false).describe(
    "allow http URLs, and with them port 80, for webhooks and other calls to tenants' addresses; allowed in a first look",
  ),
  ...domainSettings,
  LEAVE_NOTICE_SECONDS: integer(5, 0, 60).describe(
    "after SIGTERM a node still accepts connections this long, so that load balancers notice that it is not ready",
  ),
  DRAIN_WINDOW_SECONDS: integer(10, 0, 120).describe(
    "minimum time over which a node that shuts down moves its agents to other nodes; up to 120 s with many agents",
  ),
  OVERLOAD_LOOP_MS: integer(200, 10, 600_000).describe(
    "a node whose event loop lags by more than this for 10 s refuses new agents and halves the heartbeat rate",
  ),
  SHUTDOWN_SECONDS: integer(25, 1, 300).describe("maximum time for each remaining step of a shutdown, after the agents have moved"),
});
export type Config = z.output<typeof Settings> & {
  /** The settings that mean that somebody has set the installation up. */
  readonly setUpBy: readonly string[];
};

/** The first says nothing without the second. */
const NEEDS = [
  ["DATABASE_MIGRATION_URL", "DATABASE_URL"],
  ["MASTER_KEY_OTHER", "MASTER_KEY"],
  ["OIDC_JWKS_URI", "OIDC_ISSUER"],
  ["OIDC_CLIENT_ID", "OIDC_ISSUER"],
  ["OIDC_CLIENT_SECRET", "OIDC_CLIENT_ID"],
  ["ACME_EMAIL", "ACME_DIRECTORY_URL"],
  ["ACME_CA_FILE", "ACME_DIRECTORY_URL"],
  ["ACME_EAB_KEY_ID", "ACME_EAB_HMAC_KEY"],
  ["ACME_EAB_HMAC_KEY", "ACME_EAB_KEY_ID"],
] as const;

/** Checks that involve two variables. They read the raw text, so that they are reported together with all other problems. */
const relations = (given: Env): readonly string[] => [
  ...(given["DATABASE_URL"] !== undefined && given["MASTER_KEY"] === undefined
    ? ["MASTER_KEY: is required with DATABASE_URL; create one with: openssl rand -base64 32"]
    : []),
  ...(given["TLS_CERT_FILE"] !== undefined && given["TLS_KEY_FILE"] === undefined ? ["TLS_KEY_FILE: is required with TLS_CERT_FILE"] : []),
  ...(given["TLS_KEY_FILE"] !== undefined && given["TLS_CERT_FILE"] === undefined ? ["TLS_CERT_FILE: is required with TLS_KEY_FILE"] : []),
  ...(given["SMTP_URL"] !== undefined && given["MAIL_FROM"] === undefined ? ["MAIL_FROM: is required with SMTP_URL"] : []),
  ...(given["STRIPE_SECRET_KEY"] !== undefined && given["STRIPE_WEBHOOK_SECRET"] === undefined
    ? ["STRIPE_WEBHOOK_SECRET: is required with STRIPE_SECRET_KEY; without it no payment would ever change a plan"]
    : []),
  ...edgeRelations(given),
  ...NEEDS.flatMap(([name, needed]) => (given[name] !== undefined && given[needed] === undefined ? [`${name}: needs ${needed}`] : [])),
  ...(given["NODE_ENV"] === "production" && given["OIDC_ISSUER"]?.startsWith("http:") ? ["OIDC_ISSUER: must be https in production"] : []),
  // A scraper on another machine could not read a generated token from DATA_DIR.
  ...(given["INTERNAL_HOST"] !== undefined && !isLoopback(given["INTERNAL_HOST"]) && given["INTERNAL_TOKEN"] === undefined
    ? ["INTERNAL_TOKEN: is required when INTERNAL_HOST is not loopback; create one with: openssl rand -hex 32"]
    : []),
  ...(given["NODE_ENV"] === "production" ? unsafeDefaults(given) : []),
];

const unsafeDefaults = (given: Env): readonly string[] => {
  const allowed = words(given["ALLOW_IN_PRODUCTION"] ?? "");
  return UNSAFE_NAMES.filter((name) => words(given[UNSAFE[name].setting] ?? "").length === 0 && !allowed.includes(name)).map(
    (name) => `${UNSAFE[name].setting}: is required in production: ${UNSAFE[name].why}, add ${name} to ALLOW_IN_PRODUCTION`,
  );
};

/** The person who runs it is its one administrator and signs in by the link that it prints. */
export const hasLocalOperator = ({ DATABASE_URL, OIDC_ISSUER, NODE_ENV }: Pick<Config, "DATABASE_URL" | "OIDC_ISSUER" | "NODE_ENV">): boolean =>
  DATABASE_URL === undefined && OIDC_ISSUER === undefined && NODE_ENV !== "production";

type Parsed = z.output<typeof Settings>;
const localOperator = (given: Env, parsed: Parsed): Partial<Parsed> =>
  hasLocalOperator(parsed) && given["ADMIN_USERS"] === undefined ? { ADMIN_USERS: [LOCAL_USER] } : {};
/** In a first look a receiver on the same machine can be tried. */
const firstLook = (given: Env): Partial<Parsed> => ({
  ...(given["WEBHOOK_ALLOW_CIDRS"] === undefined ? { WEBHOOK_ALLOW_CIDRS: LOOPBACK } : {}),
  ...(given["WEBHOOK_ALLOW_HTTP"] === undefined ? { WEBHOOK_ALLOW_HTTP: true } : {}),
});

/** Throws a ConfigError that names every wrong variable. */
export const readConfig = (env: Env): Config => {
  const given = Object.fromEntries(Object.keys(Settings.shape).map((name) => [name, env[name] === "" ? undefined : env[name]]));
  const parsed = Settings.safeParse(given);
  const invalid = parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  const problems = [...invalid, ...relations(given)];
  if (!parsed.success || problems.length > 0)
    throw new ConfigError(`the configuration has ${problems.length} problem(s):\n${problems.map((line) => `  ${line}`).join("\n")}`);
  const setUpBy = signsOfSetUp(given);
  return Object.freeze({ ...parsed.data, ...localOperator(given, parsed.data), ...(setUpBy.length === 0 ? firstLook(given) : {}), setUpBy });
};

export { backupFolderOf, internalPortOf } from "./config-edge.ts";

/** The gateway's public URL. With PORT 0 the port is known once the listener is open. */
export const publicUrlOf = ({ PUBLIC_URL, TLS_CERT_FILE, HOST, PORT }: Config, port = PORT): string =>
  PUBLIC_URL ?? `${TLS_CERT_FILE === undefined ? "http" : "https"}://${HOST.includes(":") ? `[${HOST}]` : HOST}:${port}`;

/** The URL at which agents and visitors reach the edge. */
export const edgeUrlOf = (
  { EDGE_URL, EDGE_TLS_CERT_FILE }: Config,
  { publicUrl, edgePort }: { readonly publicUrl: string; readonly edgePort: number },
): string => EDGE_URL?.replace(/\/+$/, "") ?? `${EDGE_TLS_CERT_FILE === undefined ? "http" : "https"}://${new URL(publicUrl).hostname}:${edgePort}`;
