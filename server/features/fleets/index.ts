// Fleets: groups of devices, and what members, keys and invites can be limited to.
import { contract, type Fleet, type FleetSummary } from "../../../protocol/index.ts";
import { isLimited, type ToLimit } from "../../core/access.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { withActor, withActors } from "../../core/people/actors.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { FleetDevices } from "../devices/index.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createRequireUnused, createToLimit, type FindReferences, followsStatus, holdForLimit } from "./device-limits.ts";
import { allFleets, countFleets, deleteFleet, findFleet, insertFleet, lockFleet, pageOfFleets, type StoredFleet, updateFleet } from "./store.ts";

export { createFindReferences } from "./device-limits.ts";

export interface FleetsDeps extends Pick<FeatureKit, "db" | "emit" | "plan"> {
  readonly devices: FleetDevices;
  readonly findReferences: FindReferences;
  /** A dynamic fleet has another selector, so limits to it select other devices. */
  readonly limitsChanged: () => void;
  /** The rollouts of the fleet that have not ended, at most so many. */
  readonly liveRollouts: (db: Clients, scope: SystemScope, fleetId: string, limit: number) => Promise<readonly string[]>;
  readonly countLiveRollouts: (db: Tx, scope: SystemScope, fleetIds: readonly string[]) => Promise<ReadonlyMap<string, number>>;
  readonly complianceOf: (db: Tx, scope: TenantScope, fleet: StoredFleet) => Promise<FleetSummary["compliance"]>;
  readonly requirePolicy: (db: Clients, scope: SystemScope, updatePolicyId: string) => Promise<void>;
}

export interface Fleets extends Feature<typeof contract.fleets> {
  readonly toLimit: ToLimit;
  readonly holdForLimit: typeof holdForLimit;
  /** As it is stored, for a fleet that the caller sees. */
  readonly find: (db: Clients, scope: SystemScope, fleetId: string) => Promise<StoredFleet | null>;
}

export const createFleets = (deps: FleetsDeps): Fleets => ({
  handlers: implement(contract.fleets, { ...createReads(deps), ...createChanges(deps), ...createMembership(deps) }),
  counters: { fleets: countFleets },
  toLimit: createToLimit(deps.db),
  holdForLimit,
  find: findFleet,
});

const MAX_SHOWN = 20;
const unknown = (fleetId: string): AppError => new AppError("FLEET_NOT_FOUND", { details: { fleetId } });
const refused = (path: string, reason: string, message: string): AppError =>
  new AppError("VALIDATION_FAILED", { details: { reason, issues: [{ path, code: "custom", message }] } });

const changedMeanwhile = async (tx: Tx, scope: SystemScope, fleetId: string): Promise<AppError> => {
  const fleet = await findFleet(tx, scope, fleetId);
  return fleet === null ? unknown(fleetId) : new AppError("VERSION_CONFLICT", { details: { currentVersion: fleet.version } });
};

const createCounted = ({ devices, countLiveRollouts }: Pick<FleetsDeps, "devices" | "countLiveRollouts">) => {
  const countedAll = async (db: Tx, scope: SystemScope, fleets: readonly StoredFleet[]): Promise<Fleet[]> => {
    const counts = await devices.count(db, scope, fleets);
    const live = await countLiveRollouts(
      db,
      scope,
      fleets.map(({ fleetId }) => fleetId),
    );
    return fleets.map((fleet) => ({ ...fleet, deviceCount: counts.get(fleet.fleetId) ?? 0, activeRollouts: live.get(fleet.fleetId) ?? 0 }));
  };
  const counted = async (db: Tx, scope: SystemScope, fleet: StoredFleet): Promise<Fleet> => {
    const [shown] = await countedAll(db, scope, [fleet]);
    if (shown === undefined) throw new Error("a fleet got lost");
    return shown;
  };
  return { countedAll, counted };
};

type Reads = "list" | "get" | "listDevices" | "summary";

const createReads = (deps: FleetsDeps): Pick<Handlers<typeof contract.fleets>, Reads> => {
  const { db, devices } = deps;
  const { countedAll, counted } = createCounted(deps);
  /** A limited caller sees the fleets that have one of the caller's devices. */
  const visible = async (scope: SystemScope): Promise<readonly string[] | null> =>
    isLimited(scope) ? [...(await devices.count(db, scope, await allFleets(db, scope))).keys()] : null;
  const find = async (scope: SystemScope, fleetId: string): Promise<Fleet> => {
    const stored = await findFleet(db, scope, fleetId);
    const fleet = stored === null ? null : await counted(db, scope, stored);
    if (fleet === null || (isLimited(scope) && fleet.deviceCount === 0)) throw unknown(fleetId);
    return fleet;
  };
  return {
    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfFleets(db, scope, query, await visible(scope));
      return { items: await withActors(db, scope, await countedAll(db, scope, items)), ...page };
    },
    get: async ({ scope }, { fleetId }) => withActor(db, scope, await find(scope, fleetId)),
    listDevices: async ({ scope }, query) => devices.list(scope, query, await find(scope, query.fleetId)),
    summary: async ({ scope }, { fleetId }) => {
      const fleet = await find(scope, fleetId);
      return {
        fleetId: fleet.fleetId,
        deviceCount: fleet.deviceCount,
        ...(await devices.summarize(scope, fleet)),
        compliance: await deps.complianceOf(db, scope, fleet),
      };
    },
  };
};

const createChanges = (deps: FleetsDeps): Pick<Handlers<typeof contract.fleets>, "create" | "update" | "remove"> => {
  const { emit, plan, devices, limitsChanged, requirePolicy } = deps;
  const { created, updated, deleted } = contract.fleets.events;
  const { counted } = createCounted(deps);
  const requireUnused = createRequireUnused(deps.findReferences);
  return {
    create: ({ scope, commit }, { name, deviceIds = [], selector = null }) =>
      commit(async (tx) => {
        await plan.require(tx, scope, "fleets", 1);
        const fleetId = newId("flt");
        const fleet = await insertFleet(tx, scope, { fleetId, name, selector, createdBy: actorOf(scope.principal) });
        await devices.add(tx, scope, fleetId, deviceIds);
        await emit(tx, [happened(scope, created, fleetId, { fleetId, name })]);
        return counted(tx, scope, fleet);
      }),

    update: ({ scope, commit }, { fleetId, ...change }) =>
      commit(async (tx, afterwards) => {
        const { selector, updatePolicyId } = change;
        const before = await findFleet(tx, scope, fleetId);
        if (before === null) throw unknown(fleetId);
        if (selector !== undefined && before.selector === null) throw refused("selector", "static_fleet", "a static fleet has none");
        if (typeof updatePolicyId === "string") await requirePolicy(tx, scope, updatePolicyId);
        const fleet = await updateFleet(tx, scope, fleetId, change);
        if (fleet === null) throw await changedMeanwhile(tx, scope, fleetId);
        if (followsStatus(selector)) await requireUnused(tx, scope, fleetId);
        const changed = (["name", "selector", "updatePolicyId"] as const).filter((field) => change[field] !== undefined);
        await emit(tx, [happened(scope, updated, fleetId, { fleetId: fleet.fleetId, name: fleet.name, changed })]);
        if (selector !== undefined) afterwards(limitsChanged);
        return counted(tx, scope, fleet);
      }),

    remove: ({ scope, commit }, { fleetId }) =>
      commit(async (tx) => {
        const fleet = await findFleet(tx, scope, fleetId);
        if (fleet === null || !(await deleteFleet(tx, scope, fleetId))) throw unknown(fleetId);
        await requireUnused(tx, scope, fleetId);
        const live = await deps.liveRollouts(tx, scope, fleetId, MAX_SHOWN);
        if (live.length > 0) throw new AppError("FLEET_IN_USE", { details: { fleetId, references: live.map((id) => ({ type: "rollout", id })) } });
        if (fleet.selector === null) await devices.removeAll(tx, scope, fleetId);
        await emit(tx, [happened(scope, deleted, fleetId, { fleetId: fleet.fleetId, name: fleet.name })]);
        return null;
      }),
  };
};

const createMembership = (deps: FleetsDeps): Pick<Handlers<typeof contract.fleets>, "addDevice" | "removeDevice"> => {
  const { emit, devices } = deps;
  const { counted } = createCounted(deps);
  const lockStatic = async (tx: Tx, scope: SystemScope, fleetId: string): Promise<StoredFleet> => {
    await lockFleet(tx, scope, fleetId);
    const fleet = await findFleet(tx, scope, fleetId);
    if (fleet === null) throw unknown(fleetId);
    if (fleet.selector !== null) throw refused("fleetId", "dynamic_fleet", "this fleet is dynamic: its selector decides which devices belong to it");
    return fleet;
  };
  const changed = async (tx: Tx, scope: SystemScope, { fleetId, name }: StoredFleet): Promise<StoredFleet> => {
    const fleet = await updateFleet(tx, scope, fleetId, {});
    if (fleet === null) throw unknown(fleetId);
    await emit(tx, [happened(scope, contract.fleets.events.updated, fleetId, { fleetId, name, changed: ["devices"] })]);
    return fleet;
  };
  return {
    addDevice: ({ scope, commit }, { fleetId, deviceId }) =>
      commit(async (tx, afterwards) => {
        const fleet = await lockStatic(tx, scope, fleetId);
        const added = await devices.add(tx, scope, fleetId, [deviceId]);
        afterwards(added.forget);
        return counted(tx, scope, added.any ? await changed(tx, scope, fleet) : fleet);
      }),
    removeDevice: ({ scope, commit }, { fleetId, deviceId }) =>
      commit(async (tx, afterwards) => {
        const fleet = await lockStatic(tx, scope, fleetId);
        const removed = await devices.remove(tx, scope, fleetId, deviceId);
        afterwards(removed.forget);
        if (removed.any) await changed(tx, scope, fleet);
        return null;
      }),
  };
};
