// Credentials from the installation's own hand: a tenant of the house, its owner's token, a key and an enrollment token.
import type { Role, TenantId } from "../protocol/index.ts";
import { type Config, ConfigError } from "./config.ts";
import type { Lifecycle } from "./core/lifecycle.ts";
import type { ApiKeysRoom } from "./features/api-keys/index.ts";
import type { PairingRoom } from "./features/pairing/index.ts";
import type { EnsureTenant, Tenants } from "./features/tenants/index.ts";
import { openInstallation } from "./installation.ts";
import { openMemoryBus, openMemoryDirectory } from "./platform/bus-memory.ts";
import type { Tokens } from "./platform/jwt.ts";
import type { Log } from "./platform/log.ts";
import { createMetrics } from "./platform/metrics.ts";
import { createRooms } from "./rooms.ts";

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
  readonly tenantId?: string;
  /** With a tenant: the user becomes a member with this role. */
  readonly role?: Role;
  readonly ttlSeconds: number;
}

export interface BootstrapDeps {
  readonly baseUrl: () => string;
  readonly tokens: Tokens;
  readonly tenants: Pick<Tenants, "ensureTenant" | "ensureMember">;
  readonly apiKeys: Pick<ApiKeysRoom, "ensureKey">;
  readonly pairing: Pick<PairingRoom, "ensureEnrollmentToken">;
}

const THIRTY_DAYS_SECONDS = 2_592_000;

export const createBootstrap = ({ baseUrl, tokens, tenants, apiKeys, pairing }: BootstrapDeps) => {
  const issuer = () => {
    if (tokens.local === undefined) throw new ConfigError("tokens come from OIDC_ISSUER here; the local issuer is off");
    return tokens.local;
  };
  const mint = async ({ userId, tenantId, role, ttlSeconds }: MintRequest): Promise<{ token: string }> => {
    const local = issuer();
    if (tenantId !== undefined && role !== undefined) await tenants.ensureMember({ tenantId, userId, role });
    return { token: await local.mint({ userId, ttlSeconds, ...(tenantId === undefined ? {} : { tenantId }) }) };
  };
  const bootstrap = async (request: BootstrapRequest): Promise<Credentials> => {
    const { tenantId, userId } = await tenants.ensureTenant(request);
    const [{ token }, apiKey, enrollmentToken] = await Promise.all([
      // With a foreign issuer there is no token to give; the key works all the same.
      tokens.local === undefined ? { token: "" } : mint({ userId, tenantId, ttlSeconds: THIRTY_DAYS_SECONDS }),
      apiKeys.ensureKey({ tenantId: tenantId as TenantId, userId, role: "admin" }),
      pairing.ensureEnrollmentToken({ tenantId: tenantId as TenantId, userId }),
    ]);
    return { baseUrl: baseUrl(), tenantId, userId, token, apiKey, enrollmentToken };
  };
  return { bootstrap, mint };
};

/** For the command line: the rooms without doors, on the same database. */
export const openBootstrap = async (config: Config, life: Lifecycle, log: Log) => {
  const { db, secretBox, tokens } = await openInstallation(config, life, log);
  const baseUrl = () => config.PUBLIC_URL ?? `http://${config.HOST}:${config.PORT}`;
  const node = {
    report: () => ({ nodeId: "cli", address: "", host: "", pid: 0, version: "", draining: true, overloaded: false, connections: 0, ready: 0 }),
    drain: () => undefined,
  };
  const alone = { nodeId: "cli", bus: openMemoryBus(), directory: openMemoryDirectory() };
  const rooms = createRooms({ node, config, db, secretBox, log, metrics: createMetrics(), ...alone, publicUrl: baseUrl });
  return createBootstrap({ baseUrl, tokens, ...rooms });
};
