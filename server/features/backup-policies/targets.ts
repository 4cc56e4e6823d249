// The apps of a policy: those that it names, and all of the devices that it selects, as they are now.
import type { BackupPolicy, TenantId } from "../../../protocol/index.ts";
import type { ToLimit } from "../../core/access.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { ApiKeyPrincipal, SystemScope } from "../../core/scope.ts";
import type { BackedApp, Backing } from "../apps/index.ts";

export const MAX_APPS = 1_000;
type Target = BackupPolicy["target"];

export interface TargetsDeps {
  readonly apps: () => Backing;
  readonly toLimit: ToLimit;
  readonly knownDevices: (tx: Clients, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Throws FLEET_NOT_FOUND, or VALIDATION_FAILED for a fleet that follows the status of devices. */
  readonly holdFleets: (tx: Tx, scope: SystemScope, fleetIds: readonly string[]) => Promise<void>;
}

export interface Targets {
  /** Throws APP_NOT_FOUND, DEVICE_NOT_FOUND or FLEET_NOT_FOUND for what the tenant does not have. */
  check(tx: Tx, scope: SystemScope, target: Target): Promise<void>;
  /** At most 1,000, without those that are about to go. */
  appsOf(db: Clients, scope: SystemScope, target: Target): Promise<readonly BackedApp[]>;
  /** The ids of those among these apps that the target selects. */
  among(db: Clients, scope: SystemScope, target: Target, apps: readonly BackedApp[]): Promise<readonly string[]>;
}

const selects = ({ deviceIds, tags, fleetIds }: Target): boolean => deviceIds.length + tags.length + fleetIds.length > 0;
const isThere = ({ status }: BackedApp): boolean => status !== "removing" && status !== "removed";

export const createPolicyTargets = ({ apps, toLimit, knownDevices, holdFleets }: TargetsDeps): Targets => {
  /** Reads with it meet only the devices that the target selects. */
  const limited = async (db: Clients, { tenantId }: SystemScope, { deviceIds, tags, fleetIds }: Target): Promise<SystemScope> => {
    const limits = [await toLimit(tenantId as TenantId, { deviceIds: [...deviceIds], tags: [...tags], fleetIds: [...fleetIds] } as never, db)]; // as: ids of rows
    const principal: ApiKeyPrincipal = { kind: "apiKey", keyId: "key_policy", role: "viewer", permissions: new Set(), limits };
    return { tenantId, principal };
  };
  const select = async (db: Clients, scope: SystemScope, target: Target, appIds: readonly string[] | null): Promise<readonly BackedApp[]> => {
    const named = appIds === null ? target.appIds : target.appIds.filter((appId) => appIds.includes(appId));
    const byName = named.length === 0 ? [] : await apps().select(db, { tenantId: scope.tenantId }, named, MAX_APPS);
    const byDevice = selects(target) ? await apps().select(db, await limited(db, scope, target), appIds, MAX_APPS) : [];
    const all = new Map([...byName, ...byDevice].filter(isThere).map((app) => [app.appId, app]));
    return [...all.values()].slice(0, MAX_APPS);
  };
  return {
    check: async (tx, scope, { appIds, deviceIds, fleetIds }) => {
      const found = new Set((appIds.length === 0 ? [] : await apps().select(tx, scope, appIds, MAX_APPS)).map(({ appId }) => appId as string));
      const appId = appIds.find((each) => !found.has(each));
      if (appId !== undefined) throw new AppError("APP_NOT_FOUND", { details: { appId } });
      const known = deviceIds.length === 0 ? new Set<string>() : await knownDevices(tx, scope, deviceIds);
      const deviceId = deviceIds.find((each) => !known.has(each));
      if (deviceId !== undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
      if (fleetIds.length > 0) await holdFleets(tx, scope, fleetIds);
    },
    appsOf: (db, scope, target) => select(db, scope, target, null),
    among: async (db, scope, target, among) => {
      const appIds = among.map(({ appId }) => appId);
      return (await select(db, scope, target, appIds)).map(({ appId }) => appId);
    },
  };
};
