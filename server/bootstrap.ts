// Bootstrap: creates the operator's own tenant with a token for its owner, an API key and an enrollment token.
import { existsSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { Role, TenantId } from "../protocol/index.ts";
import { type Config, publicUrlOf } from "./config.ts";
import type { Clock } from "./core/clock.ts";
import { ConfigError } from "./core/errors.ts";
import type { Lifecycle } from "./core/lifecycle/lifecycle.ts";
import { findServingAddresses } from "./features/admin/index.ts";
import type { ApiKeysFeature } from "./features/api-keys/index.ts";
import type { PairingFeature } from "./features/pairing/index.ts";
import type { NewLink, SessionsFeature, SignInLink } from "./features/sessions/index.ts";
import type { EnsureTenant, Tenants } from "./features/tenants/index.ts";
import { findWriter } from "./platform/database/database-hosts.ts";
import type { Db } from "./platform/database/db.ts";
import type { Tokens } from "./platform/identity/jwt.ts";
import { type Installation, openInstallation } from "./platform/installation.ts";
import { type KeyRotationDeps, type Rotated, rotateKey } from "./platform/keys/key-rotation.ts";
import { createTrustedOutbound } from "./platform/outbound/outbound.ts";
import type { Log } from "./platform/telemetry/log.ts";
import { createWaits } from "./platform/waits.ts";
import { SERVICE } from "./version.ts";
import { type AllFeatures, openSome } from "./wiring/index.ts";

export type BootstrapRequest = EnsureTenant;

export interface Credentials {
  readonly baseUrl: string;
  readonly tenantId: string;
  readonly userId: string;
  readonly token: string;
  readonly apiKey: string;
  readonly enrollmentToken: string;
}

export interface MintRequest {
  readonly userId: string;
  /** Stated as verified. */
  readonly email?: string;
  readonly tenantId?: string;
  /** With a tenant: the user becomes a member with this role. */
  readonly role?: Role;
  readonly ttlSeconds: number;
}

export interface BootstrapDeps {
  readonly db: Db;
  readonly baseUrl: () => string;
  readonly tokens: Tokens;
  readonly tenants: Pick<Tenants, "ensureTenant" | "ensureMember" | "members">;
  readonly apiKeys: Pick<ApiKeysFeature, "ensureKey">;
  readonly pairing: Pick<PairingFeature, "ensureEnrollmentToken">;
  readonly sessions: Pick<SessionsFeature, "createLink">;
}

const THIRTY_DAYS_SECONDS = 2_592_000;
const ANSWER_WITHIN_MS = 1_000;
const ROTATION_STATEMENT_MS = 60_000;

export const createBootstrap = ({ db, baseUrl, tokens, tenants, apiKeys, pairing, sessions }: BootstrapDeps) => {
  const issuer = () => {
    if (tokens.local === undefined) throw new ConfigError("people sign in and get tokens at OIDC_ISSUER here; the local issuer is off");
    return tokens.local;
  };
  const mint = async ({ userId, email, tenantId, role, ttlSeconds }: MintRequest): Promise<{ token: string }> => {
    const local = issuer();
    if (tenantId !== undefined && role !== undefined) await tenants.ensureMember({ tenantId, userId, role });
    return { token: await local.mint({ issuer: baseUrl(), userId, email, tenantId, ttlSeconds }) };
  };
  const bootstrap = async (request: BootstrapRequest): Promise<Credentials> => {
    const { tenantId, userId } = await tenants.ensureTenant(request);
    const [{ token }, apiKey, enrollmentToken] = await Promise.all([
      // With a foreign issuer we cannot mint a token; the API key works without one.
      tokens.local === undefined
        ? { token: "" }
        : mint({ userId, ...(request.email === undefined ? {} : { email: request.email }), tenantId, ttlSeconds: THIRTY_DAYS_SECONDS }),
      apiKeys.ensureKey({ tenantId: tenantId as TenantId, userId, role: "admin" }),
      pairing.ensureEnrollmentToken({ tenantId: tenantId as TenantId, userId }),
    ]);
    return { baseUrl: baseUrl(), tenantId, userId, token, apiKey, enrollmentToken };
  };
  /** A link that signs this person in. */
  const signInLink = async (link: NewLink): Promise<SignInLink> => {
    issuer();
    return sessions.createLink(link, baseUrl());
  };
  /** For an installation that nobody has set up: whoever signs in finds a tenant of theirs. */
  const firstSignInLink = async (userId: string, tenantId?: string): Promise<SignInLink> => {
    issuer();
    const mine = await tenants.members.tenantsOf(db, userId);
    if (mine.length === 0) await tenants.ensureTenant({ name: "Home", slug: "home", userId, unlimited: false });
    return signInLink({ userId, tenantId });
  };
  return { bootstrap, mint, signInLink, firstSignInLink };
};

/** Whether a Mooring gateway of any installation answers at this URL. */
const answers = async (url: string, clock: Clock): Promise<boolean> => {
  const outbound = createTrustedOutbound(clock);
  try {
    const { body } = await outbound.send({ url: `${url}/v1/info`, owner: "command line", timeoutMs: ANSWER_WITHIN_MS });
    const { data } = JSON.parse(body.toString("utf8")) as { data?: { name?: unknown } };
    return data?.name === SERVICE;
  } catch {
    return false;
  } finally {
    await outbound.close();
  }
};

const otherSettings = (url: string, config: Config): ConfigError =>
  new ConfigError(
    `the gateway at ${url} serves another database than these settings name (${config.DATABASE_URL === undefined ? `DATA_DIR ${config.DATA_DIR}` : "DATABASE_URL"}); run this with the settings of that gateway, or set PORT to the gateway that you mean`,
  );

const rotateWith =
  (
    { databaseUrl: url, secretBox, clock }: Pick<Installation, "databaseUrl" | "secretBox"> & { readonly clock: Clock },
    { audit }: Pick<AllFeatures, "audit">,
  ) =>
  async (onProgress: KeyRotationDeps["onProgress"]): Promise<Rotated> => {
    const connectionString = await findWriter({ url, applicationName: "mooring master-key", elapsed: clock.elapsed });
    const sql = new pg.Pool({ connectionString, max: 1, query_timeout: ROTATION_STATEMENT_MS });
    try {
      return await rotateKey({ sql, secretBox, resign: audit.resign, onProgress });
    } finally {
      await sql.end();
    }
  };

export interface BootstrapOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly onNotice: (text: string) => void;
}

/**
 * For the command line: the features without listeners, on the same database. Rejects when the gateway at the configured address serves
 * another database: credentials of this one would not work there.
 */
export const openBootstrap = async (config: Config, life: Lifecycle, { clock, log, onNotice }: BootstrapOptions) => {
  const configured = publicUrlOf(config);
  const isNew = config.DATABASE_URL === undefined && !existsSync(join(config.DATA_DIR, "postgres"));
  if (isNew && (await answers(configured, clock))) throw otherSettings(configured, config);
  const installation = await openInstallation(config, life, { clock, log, waits: createWaits({ clock, say: onNotice }), connectWithinMs: 0 });
  const deps = { ...installation, config, clock, log, nodeId: "cli", publicUrl: () => configured };
  const features = openSome(deps, ["tenants", "apiKeys", "pairing", "sessions", "audit"]);
  const serving = await findServingAddresses(installation.db);
  const baseUrl = serving.includes(configured) ? configured : (serving[0] ?? configured);
  if (serving.length === 0) {
    if (await answers(configured, clock)) throw otherSettings(configured, config);
    onNotice("no gateway serves this database yet; start one with: npm start");
  } else if (baseUrl !== configured) onNotice(`the gateway of this database is at ${baseUrl}, not at ${configured}`);
  return {
    ...createBootstrap({ db: installation.db, baseUrl: () => baseUrl, tokens: installation.tokens, ...features }),
    audit: features.audit,
    afterRestore: {
      endSessions: features.sessions.endAll,
      openRepairs: features.openRepairs,
      keys: features.apiKeys.everyUsable,
      members: features.tenants.everyMember,
    },
    rotateKey: rotateWith({ ...installation, clock }, features),
  };
};
