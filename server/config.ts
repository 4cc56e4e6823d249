// The only reader of the environment: one schema, every problem listed at once, a frozen value for everyone else.
import { z } from "zod";
import { STREAM_LIMITS } from "../protocol/index.ts";
import { ConfigError } from "./core/errors.ts";

type Env = Readonly<Record<string, string | undefined>>;

const integer = (fallback: number, min: number, max: number) => z.coerce.number().int().min(min).max(max).default(fallback);
const flag = (fallback: boolean) =>
  z
    .enum(["true", "false", "1", "0"])
    .transform((text) => text === "true" || text === "1")
    .default(fallback);
const words = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
const list = z.string().transform(words).default([]);
/** A rate limit's override: a figure a minute, or `off`. */
const rate = z.union([z.literal("off").transform(() => null), z.coerce.number().int().min(1).max(10_000_000)]).optional();
const json = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.addIssue({ code: "custom", message: "is not JSON" });
    return z.NEVER;
  }
});
const PlanLimits = json.pipe(z.record(z.string(), z.record(z.string(), z.number().nullable())));
const cidrs = list.pipe(z.array(z.union([z.cidrv4(), z.cidrv6()])));

/** In production each of these needs its name in ALLOW_IN_PRODUCTION, since each is a default that a newcomer wants and an operator rarely means. */
const UNSAFE = {
  "local-issuer": { setting: "OIDC_ISSUER", why: "name your identity provider; or to issue tokens with a key in DATA_DIR" },
  "embedded-database": { setting: "DATABASE_URL", why: "name your PostgreSQL; or to keep everything in the embedded one on this machine" },
  "any-origin": { setting: "CORS_ORIGINS", why: "name the origins of your portals, or off; or to let scripts of any origin call" },
} as const;
type Unsafe = keyof typeof UNSAFE;
const UNSAFE_NAMES = Object.keys(UNSAFE) as [Unsafe, ...Unsafe[]];

/** Every setting with its default and its meaning; README's table is printed from here (`npm run docs:settings`). */
export const Settings = z.object({
  PORT: integer(8080, 0, 65_535).describe("public listener: REST, tRPC, agent socket; 0 takes a free port"),
  HOST: z.string().min(1).default("127.0.0.1").describe("address of the public listener"),
  PUBLIC_URL: z.url().optional().describe("how others reach this service; default http(s)://HOST:PORT"),
  PORTAL_URL: z.url().optional().describe("where people confirm a pairing code; default PUBLIC_URL"),
  TLS_CERT_FILE: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificate with its chain: the public listener speaks HTTPS itself; new files are taken on at once"),
  TLS_KEY_FILE: z.string().min(1).optional().describe("PEM private key of TLS_CERT_FILE, without passphrase"),
  INTERNAL_PORT: integer(8081, 0, 65_535).describe("internal listener, HTTP/1.0 too: health, and with the token metrics, node status, drain"),
  INTERNAL_HOST: z.string().min(1).default("127.0.0.1").describe("address of the internal listener; INTERNAL_TOKEN is required beyond loopback"),
  INTERNAL_TOKEN: z.string().min(16).optional().describe("bearer token of the internal listener; default generated into DATA_DIR"),
  DATA_DIR: z.string().min(1).default(".data").describe("embedded database, local signing key, master key"),
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe("PostgreSQL 15 or newer; unset: an embedded PostgreSQL 18"),
  DATABASE_POOL: integer(20, 2, 200).describe("connections to PostgreSQL"),
  DATABASE_STATEMENTS: z
    .enum(["named", "unnamed"])
    .default("named")
    .describe("unnamed: for poolers in transaction mode that do not know prepared statements (PgBouncer before 1.21)"),
  REDIS_URL: z
    .url({ protocol: /^rediss?$/ })
    .optional()
    .describe("joins several nodes; unset: one node, in-process bus and limits"),
  NODE_ID: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .optional()
    .describe("name of this node; default generated"),
  NODE_ENV: z.enum(["development", "test", "production"]).default("development").describe("production refuses insecure settings"),
  ALLOW_IN_PRODUCTION: list
    .pipe(z.array(z.enum(UNSAFE_NAMES)))
    .describe("what NODE_ENV=production accepts all the same: local-issuer, embedded-database, any-origin"),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "silent"]).default("info").describe("least severe level that is logged"),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("OpenTelemetry collector (OTLP over HTTP, protobuf) for traces; the SDK's other OTEL_ variables count too; unset: none"),
  MASTER_KEY: z
    .string()
    .regex(/^[A-Za-z0-9+/_-]{43}=?$/, "must be 32 bytes in base64")
    .optional()
    .describe("32 bytes, base64; seals secrets at rest; generated into DATA_DIR with the embedded database, else required"),
  OIDC_ISSUER: z.url().optional().describe("identity provider; unset: a local issuer with its key in DATA_DIR"),
  OIDC_AUDIENCE: z.string().min(1).default("mooring").describe("audience that tokens must carry"),
  OIDC_JWKS_URI: z.url().optional().describe("keys of the identity provider; default OIDC_ISSUER/.well-known/jwks.json"),
  OIDC_TENANT_CLAIM: z.string().min(1).default("tenant_id").describe("claim that names the tenant"),
  TRUSTED_PROXIES: cidrs.describe("networks whose X-Forwarded-For is believed"),
  CORS_ORIGINS: list.describe("origins of browser portals; off: no origin; empty: any (no cookies are used)"),
  RETURN_HOSTS: list.describe("hosts that return_to may lead to, beside the portal's"),
  RATE_LIMIT_STANDARD: rate.describe("a minute per credential (100)"),
  RATE_LIMIT_TENANT: rate.describe("a minute per tenant (1,000)"),
  RATE_LIMIT_AGENT: rate.describe("a minute per agent, heartbeats aside (100)"),
  RATE_LIMIT_HEARTBEAT: rate.describe("a minute per device (60)"),
  RATE_LIMIT_ANONYMOUS: rate.describe("a minute per address without credential (60)"),
  RATE_LIMIT_PAIRING: rate.describe("replaces each of the pairing figures (3 to 10)"),
  RATE_LIMIT_FAILED_AUTH: rate.describe("failed credentials a minute per address before 429 replaces 401 (20)"),
  RATE_LIMIT_CONNECT: rate.describe("socket connects a minute per agent (10)"),
  ADMIN_USERS: list.describe("ids of the users who may use /v1/admin; none unless named"),
  ACCEPT_PER_SECOND: integer(200, 1, 1_000_000).describe("socket upgrades a second on this node; a quarter of it in the first 10 s"),
  FRAMES_PER_SECOND: integer(20, 1, 1_000_000).describe("frames a second that one agent socket may send; three times as many at once"),
  MAX_CONNECTIONS: integer(20_000, 1, 1_000_000).describe("sockets on this node"),
  TENANTS_PER_USER: integer(3, 1, 1_000_000).describe("tenants that one user may own"),
  PLAN_LIMITS_JSON: PlanLimits.optional().describe("replaces the plan table: {plan: {resource: number or null}}"),
  HEARTBEAT_SECONDS: integer(30, 1, 300).describe("how often agents beat; offline after 3 of them and 10 s"),
  HEARTBEATS_PER_SECOND: integer(5_000, 1, 1_000_000).describe(
    "heartbeats that one node takes in a second; with more agents than 30 times as many on each live node they beat more seldom, every 300 s at most",
  ),
  POLL_SECONDS: integer(30, 1, 3_600).describe("how often agents without a socket poll"),
  CLOSE_GRACE_SECONDS: integer(15, 0, 300).describe("a socket that broke may come back in this time without being offline"),
  LIVE_STREAMS_PER_TENANT: integer(STREAM_LIMITS.tenant, 1, 1_000_000).describe("live streams of one tenant on this node before 429 STREAM_LIMIT_REACHED"),
  LIVE_STREAMS_PER_CREDENTIAL: integer(STREAM_LIMITS.credential, 1, 1_000_000).describe("live streams of one user or key on this node before the same"),
  COMMAND_QUEUE_PER_DEVICE: integer(100, 1, 100_000).describe("open commands per device before 429 COMMAND_QUEUE_FULL"),
  COMMAND_QUEUE_PER_TENANT: integer(20_000, 1, 10_000_000).describe("open commands per tenant before 429 COMMAND_QUEUE_FULL"),
  COMMAND_RETENTION_DAYS: integer(30, 8, 3_650).describe("how long ended commands, their history and their idempotency keys are kept"),
  EVENT_RETENTION_DAYS: integer(30, 1, 365).describe("how long dispatched events are kept"),
  WEBHOOK_ALLOW_CIDRS: cidrs.describe("private networks that webhooks may reach (webhooks come with a later release)"),
  WEBHOOK_ALLOW_HTTP: flag(false).describe("webhooks may use http (webhooks come with a later release)"),
  LEAVE_NOTICE_SECONDS: integer(5, 0, 60).describe("a node that leaves still takes connections for so long, until load balancers have noticed"),
  DRAIN_WINDOW_SECONDS: integer(10, 0, 120).describe("a node that leaves sends its agents elsewhere over this time at least; with many agents up to 120 s"),
  OVERLOAD_LOOP_MS: integer(200, 10, 600_000).describe(
    "a node whose event loop is later than this for 10 s takes no agents in and asks for half the heartbeats",
  ),
  SHUTDOWN_SECONDS: integer(25, 1, 300).describe("longest wait for each part of a clean stop, once the agents have gone"),
});
type Settings = z.output<typeof Settings>;

const SECRETS: ReadonlySet<string> = new Set(["INTERNAL_TOKEN", "MASTER_KEY", "DATABASE_URL", "REDIS_URL"]);

/** A host name other than localhost may mean any address. */
const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);

/** What one variable demands of another. Judged on the text as given, so that these are told together with everything else that is wrong. */
const relations = (given: Env): readonly string[] => [
  ...(given["DATABASE_URL"] !== undefined && given["MASTER_KEY"] === undefined
    ? ["MASTER_KEY: is required with DATABASE_URL; make one with: openssl rand -base64 32"]
    : []),
  ...(given["TLS_CERT_FILE"] !== undefined && given["TLS_KEY_FILE"] === undefined ? ["TLS_KEY_FILE: is required with TLS_CERT_FILE"] : []),
  ...(given["TLS_KEY_FILE"] !== undefined && given["TLS_CERT_FILE"] === undefined ? ["TLS_CERT_FILE: is required with TLS_KEY_FILE"] : []),
  ...(given["OIDC_JWKS_URI"] !== undefined && given["OIDC_ISSUER"] === undefined ? ["OIDC_JWKS_URI: needs OIDC_ISSUER"] : []),
  ...(given["NODE_ENV"] === "production" && given["OIDC_ISSUER"]?.startsWith("http:") ? ["OIDC_ISSUER: must be https in production"] : []),
  // A token that nobody chose would guard a door that others reach, and a scraper elsewhere cannot read the file it was generated into.
  ...(given["INTERNAL_HOST"] !== undefined && !isLoopback(given["INTERNAL_HOST"]) && given["INTERNAL_TOKEN"] === undefined
    ? ["INTERNAL_TOKEN: is required when INTERNAL_HOST is not loopback; make one with: openssl rand -hex 32"]
    : []),
  ...(given["NODE_ENV"] === "production" ? unsafeDefaults(given) : []),
];

const unsafeDefaults = (given: Env): readonly string[] => {
  const allowed = words(given["ALLOW_IN_PRODUCTION"] ?? "");
  return UNSAFE_NAMES.filter((name) => words(given[UNSAFE[name].setting] ?? "").length === 0 && !allowed.includes(name)).map(
    (name) => `${UNSAFE[name].setting}: is required in production: ${UNSAFE[name].why}, add ${name} to ALLOW_IN_PRODUCTION`,
  );
};

/** Throws ConfigError naming every variable that is wrong. */
export const readConfig = (env: Env): Settings => {
  const given = Object.fromEntries(Object.keys(Settings.shape).map((name) => [name, env[name] === "" ? undefined : env[name]]));
  const parsed = Settings.safeParse(given);
  const misshapen = parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  const problems = [...misshapen, ...relations(given)];
  if (!parsed.success || problems.length > 0)
    throw new ConfigError(`the configuration has ${problems.length} problem(s):\n${problems.map((line) => `  ${line}`).join("\n")}`);
  return Object.freeze(parsed.data);
};

export type Config = Settings;

/** How others reach this service; the port is known once it is open. */
export const publicUrlOf = ({ PUBLIC_URL, TLS_CERT_FILE, HOST, PORT }: Config, port = PORT): string =>
  PUBLIC_URL ?? `${TLS_CERT_FILE === undefined ? "http" : "https"}://${HOST.includes(":") ? `[${HOST}]` : HOST}:${port}`;

export interface ConfigRow {
  readonly name: string;
  readonly value: string;
  readonly fallback: string;
  readonly meaning: string;
}

const show = (value: unknown): string => {
  if (value === undefined) return "unset";
  if (value === null) return "off";
  if (Array.isArray(value)) return value.join(",") || "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

/** The effective values, secrets masked, in the order of the schema. */
export const describeConfig = (config: Config): readonly ConfigRow[] => {
  const values: Readonly<Record<string, unknown>> = config;
  const defaults: Readonly<Record<string, unknown>> = Settings.parse({});
  return Object.entries(Settings.shape).map(([name, schema]) => ({
    name,
    value: SECRETS.has(name) && values[name] !== undefined ? "********" : show(values[name]),
    fallback: show(defaults[name]),
    meaning: schema.description ?? "",
  }));
};

/** README's table. */
export const settingsTable = (): string => {
  const rows = describeConfig(Settings.parse({})).map(({ name, fallback, meaning }) => `| \`${name}\` | ${fallback} | ${meaning} |`);
  return ["| Setting | Default | Meaning |", "|---|---|---|", ...rows].join("\n");
};
