// What the gateway and the command line share: the migrated database and the keys of this installation.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { ConfigError } from "../core/errors.ts";
import type { Lifecycle } from "../core/lifecycle/lifecycle.ts";
import type { Outbound } from "../core/ports/outbound.ts";
import type { HoldVersion } from "../core/rows/row-versions.ts";
import { redisPlaceOf } from "./cluster/redis-urls.ts";
import { keepInDataDir, readFromDataDir } from "./data-dir.ts";
import { bulkheadsOf } from "./database/bulkheads.ts";
import { findWriter } from "./database/database-hosts.ts";
import { urlsOf } from "./database/database-urls.ts";
import { type Db, openDb } from "./database/db.ts";
import { isUnavailable } from "./database/db-errors.ts";
import { type MigrateOptions, migrate } from "./database/migrations/migrate.ts";
import { type MigrationPlan, planMigrations } from "./database/migrations/migration-plan.ts";
import { holdVersion } from "./database/tenant-client.ts";
import { createLocalTokens, createOidcTokens, generateSigningKey, type Tokens } from "./identity/jwt.ts";
import { checkMasterKey } from "./keys/key-check.ts";
import { KEY_FILE, newMasterKey, OTHER_KEY_FILE } from "./keys/key-files.ts";
import { createSecretBox, type SecretBox } from "./keys/secrets.ts";
import { createTrustedOutbound } from "./outbound/outbound.ts";
import { endpointsOf, type OwnEndpoint } from "./outbound/own-listeners.ts";
import { openEmbeddedPostgres } from "./postgres/embedded-postgres.ts";
import type { Log } from "./telemetry/log.ts";
import { loggedWaits, placeOf, type Waits } from "./waits.ts";

const readAuthorityCa = async (file: string): Promise<{ readonly ca: Buffer }> => {
  try {
    return { ca: await readFile(file) };
  } catch (error) {
    throw new ConfigError(`ACME_CA_FILE: cannot be read (${error instanceof Error ? error.message : String(error)})`);
  }
};
/** Null without one. */
const openAuthority = async ({ ACME_DIRECTORY_URL: url, ACME_CA_FILE: file }: Config, life: Lifecycle, clock: Clock): Promise<Outbound | null> =>
  url === undefined
    ? null
    : life.use("calls to the certificate authority", createTrustedOutbound(clock, file === undefined ? {} : await readAuthorityCa(file)));

const databaseOptions = (config: Config) => ({
  poolSize: config.DATABASE_POOL,
  bulkheads: bulkheadsOf(config),
  listMs: config.DATABASE_LIST_SECONDS * 1_000,
  namedStatements: config.DATABASE_STATEMENTS === "named",
});

export interface Installation {
  readonly db: Db;
  readonly databaseUrl: string;
  readonly secretBox: SecretBox;
  readonly tokens: Tokens;
  readonly holdVersion: HoldVersion;
  /** For addresses that the operator names. */
  readonly trusted: Outbound;
  /** For the certificate authority, which may have a CA of its own. */
  readonly authority: Outbound | null;
  /** Where its databases listen. */
  readonly endpoints: readonly OwnEndpoint[];
}

/** A gateway that starts before its database waits this long; its service manager then tries again. */
const CONNECT_WITHIN_MS = 300_000;
const PLAN_TIMEOUT_MS = 30_000;

export interface InstallationOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly waits?: Waits;
  /** 0 for a person who waits for an answer. */
  readonly connectWithinMs?: number;
}

type Opening = Required<InstallationOptions>;

const databaseUrl = async (config: Config, life: Lifecycle, { log, waits }: Opening): Promise<string> =>
  config.DATABASE_URL ?? life.use("postgres", await openEmbeddedPostgres({ dataDir: join(config.DATA_DIR, "postgres"), log, waits })).url;

/** With an outside database the key is required: a generated one would differ from node to node. */
const openSecretBox = async (config: Config): Promise<SecretBox> => {
  if (config.MASTER_KEY !== undefined) return createSecretBox(toBytes(config.MASTER_KEY, "MASTER_KEY"), toOther(config.MASTER_KEY_OTHER, "MASTER_KEY_OTHER"));
  const current = await keepInDataDir(config.DATA_DIR, KEY_FILE, newMasterKey);
  return createSecretBox(
    toBytes(current, join(config.DATA_DIR, KEY_FILE)),
    toOther(await readFromDataDir(config.DATA_DIR, OTHER_KEY_FILE), join(config.DATA_DIR, OTHER_KEY_FILE)),
  );
};

const toOther = (text: string | undefined, place: string): Uint8Array | undefined => (text === undefined ? undefined : toBytes(text, place));
const toBytes = (text: string, place: string): Uint8Array => {
  const key = Buffer.from(text, "base64");
  if (key.byteLength !== 32) throw new ConfigError(`${place} is damaged: it must hold 32 bytes in base64`);
  return key;
};

const openTokens = async (config: Config, outbound: Outbound, clock: Clock): Promise<Tokens> => {
  const settings = { audience: config.OIDC_AUDIENCE, tenantClaim: config.OIDC_TENANT_CLAIM };
  if (config.OIDC_ISSUER !== undefined) return createOidcTokens(config.OIDC_ISSUER, config.OIDC_JWKS_URI, { ...settings, outbound }, clock);
  const jwk = await keepInDataDir(config.DATA_DIR, "signing-key.json", async () => JSON.stringify(await generateSigningKey()));
  return createLocalTokens(JSON.parse(jwk) as Parameters<typeof createLocalTokens>[0], settings, clock);
};

/** If a database that the operator named refuses us, the settings are wrong. */
const migrateOrExplain = async (config: Config, url: string, options: Omit<MigrateOptions, "url">): Promise<readonly string[]> => {
  try {
    return await migrate({ ...options, url });
  } catch (error) {
    if (config.DATABASE_URL === undefined || !isUnavailable(error)) throw error;
    const setting = config.DATABASE_MIGRATION_URL === undefined ? "DATABASE_URL" : "DATABASE_MIGRATION_URL";
    throw new ConfigError(`${setting}: the database at ${placeOf(url)} cannot be used: ${(error as Error).message}`, { cause: error });
  }
};

/** What a start would migrate; nothing is changed. */
export const planInstallation = async (config: Config, life: Lifecycle, options: InstallationOptions): Promise<MigrationPlan> => {
  const opening: Opening = { waits: loggedWaits(options), connectWithinMs: 0, ...options };
  const url = config.DATABASE_MIGRATION_URL ?? (await databaseUrl(config, life, opening));
  const applicationName = "mooring migrate";
  const connectionString = await findWriter({ url, applicationName, elapsed: options.clock.elapsed });
  const sql = new pg.Pool({ connectionString, max: 1, application_name: applicationName, query_timeout: PLAN_TIMEOUT_MS });
  try {
    return await planMigrations(sql);
  } finally {
    await sql.end();
  }
};

/** Sentinels and clusters name more, which nobody knows beforehand. */
const redisEndpoints = (url: string | undefined): readonly OwnEndpoint[] => {
  if (url === undefined) return [];
  const { sentinels, members } = redisPlaceOf(url);
  return (sentinels.length + members.length === 0 ? [url] : [...sentinels, ...members]).flatMap((each) => endpointsOf(each, 6_379));
};

export const openInstallation = async (config: Config, life: Lifecycle, options: InstallationOptions): Promise<Installation> => {
  const { clock, log } = options;
  const opening: Opening = { waits: loggedWaits(options), connectWithinMs: CONNECT_WITHIN_MS, ...options };
  const url = await databaseUrl(config, life, opening);
  const endpoints = [...urlsOf(url).flatMap((each) => endpointsOf(each, 5_432)), ...redisEndpoints(config.REDIS_URL)];
  const secretBox = await openSecretBox(config);
  const check: MigrateOptions["check"] = (sql) => checkMasterKey(sql, secretBox);
  const { waits, connectWithinMs } = opening;
  const applied = await migrateOrExplain(config, config.DATABASE_MIGRATION_URL ?? url, { clock, waits, connectWithinMs, check });
  if (applied.length > 0) log.info({ migrations: applied }, "migrated");
  const db = life.use("db", await openDb({ ...databaseOptions(config), clock, url, log }));
  const trusted = life.use("calls to providers", createTrustedOutbound(clock));
  const authority = await openAuthority(config, life, clock);
  return { db, databaseUrl: url, secretBox, tokens: await openTokens(config, trusted, clock), holdVersion, trusted, authority, endpoints };
};
