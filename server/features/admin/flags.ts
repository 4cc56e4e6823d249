// Feature flags: operators set them for the installation or for one tenant, features read them through a cache of five seconds.
import { type contract, type FeatureFlag, FLAG_NAMES, FLAGS, type Flag, isFlag, type TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { Handlers } from "../../core/feature.ts";
import type { Flags } from "../../core/people/flags.ts";
import { actorOf } from "../../core/scope.ts";
import { createCached } from "../../core/structures/cached.ts";

const CACHE_MS = 5_000;
const MAX_TENANTS = 100;

export interface FlagsDeps {
  readonly db: Clients;
  readonly clock: Clock;
  readonly hasTenant: (tx: Tx, tenantId: TenantId) => Promise<boolean>;
}

type Values = Readonly<Record<Flag, boolean>>;

const valuesFor = async (db: Clients, tenantId: string): Promise<Values> => {
  const [installation, own] = await Promise.all([
    db.system.featureFlag.findMany({ select: { key: true, enabled: true } }),
    tenantId === "" ? [] : db.system.featureFlagOverride.findMany({ where: { tenantId }, select: { key: true, enabled: true } }),
  ]);
  const set = new Map([...installation, ...own].map(({ key, enabled }) => [key, enabled]));
  return Object.fromEntries(FLAG_NAMES.map((key) => [key, set.get(key) ?? FLAGS[key].enabled])) as Values; // as: one entry for each flag
};

const shownFlags = async (db: Clients, only?: Flag): Promise<FeatureFlag[]> => {
  const where = only === undefined ? {} : { key: only };
  const rows = new Map((await db.system.featureFlag.findMany({ where })).map((row) => [row.key, row]));
  const shown = async (key: Flag): Promise<FeatureFlag> => {
    const row = rows.get(key);
    const tenants = await db.system.featureFlagOverride.findMany({ where: { key }, orderBy: { tenantId: "asc" }, take: MAX_TENANTS });
    return {
      key,
      summary: FLAGS[key].summary,
      default: FLAGS[key].enabled,
      value: row?.enabled ?? FLAGS[key].enabled,
      tenants: tenants.map(({ tenantId, enabled }) => ({ tenantId: tenantId as TenantId, enabled })),
      ...(row === undefined ? {} : { updatedBy: row.updatedBy, updatedAt: row.updatedAt.toISOString() }),
    };
  };
  return Promise.all((only === undefined ? FLAG_NAMES : [only]).map(shown));
};

interface Change {
  readonly key: Flag;
  readonly enabled: boolean | null;
  readonly updatedBy: string;
}

const setForAll = async (tx: Clients, { key, enabled, updatedBy }: Change): Promise<void> => {
  if (enabled === null) await tx.system.featureFlag.deleteMany({ where: { key } });
  else await tx.system.featureFlag.upsert({ where: { key }, create: { key, enabled, updatedBy }, update: { enabled, updatedBy } });
};

const setForTenant = async (tx: Clients, tenantId: TenantId, { key, enabled }: Change): Promise<void> => {
  const own = tx.for({ tenantId }).featureFlagOverride;
  if (enabled === null) await own.deleteMany({ where: { key } });
  else await own.upsert({ where: { tenantId_key: { key } }, create: { key, enabled }, update: { enabled } });
};

export const createFlags = ({ db, clock, hasTenant }: FlagsDeps) => {
  const cached = createCached<Values>({ load: (tenantId) => valuesFor(db, tenantId), clock, ttlMs: CACHE_MS });
  const values = async (tenantId: string | null): Promise<Values> => {
    const found = await cached.get(tenantId ?? "");
    if (found === null) throw new Error("flags always have values");
    return found;
  };
  const flags: Flags = {
    isOn: async (flag, tenantId) => (await values(tenantId))[flag],
    on: async (tenantId) => {
      const now = await values(tenantId);
      return FLAG_NAMES.filter((flag) => now[flag]);
    },
  };
  const handlers: Pick<Handlers<typeof contract.admin>, "listFlags" | "setFlag"> = {
    listFlags: async () => ({ items: await shownFlags(db) }),
    setFlag: ({ scope, fail, commit }, { key, enabled, tenantId }) =>
      commit(async (tx, afterwards) => {
        if (!isFlag(key)) throw fail("FLAG_NOT_FOUND", { key });
        if (tenantId !== undefined && !(await hasTenant(tx, tenantId))) throw fail("TENANT_NOT_FOUND", { tenantId });
        const change = { key, enabled, updatedBy: actorOf(scope.principal) };
        await (tenantId === undefined ? setForAll(tx, change) : setForTenant(tx, tenantId, change));
        afterwards(cached.forgetAll);
        const [flag] = await shownFlags(tx, key);
        if (flag === undefined) throw new Error("reading one flag did not return one flag");
        return flag;
      }),
  };
  return { flags, handlers };
};
