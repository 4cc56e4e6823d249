// The operations on mesh routes.
import { contract, type DeviceId, type MeshPeer, type MeshRoute } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { withActor, withActors } from "../../core/people/actors.ts";
import { orderOf } from "../../core/ports/command-outcomes.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { routeStandingOf } from "./choose.ts";
import type { Consumers } from "./consumers.ts";
import { type AskedRoute, type JudgedRoute, judgeRoute } from "./input.ts";
import { aboutRoute } from "./probing.ts";
import { consumersOf, probeOf, toEffective, toMeshRoute } from "./record.ts";
import {
  allRoutes,
  changeRoute,
  deleteRoute,
  findRoute,
  insertRoute,
  lockRoute,
  networksOf,
  pageOfRoutes,
  type RoutePatch,
  type RouteRow,
  replaceRouters,
} from "./store.ts";

export interface MeshHandlersDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan" | "enqueueEach"> {
  readonly knownDevices: (db: Clients, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly consumers: Consumers;
  /** Refuses fleets that the tenant has not. */
  readonly holdFleets: (tx: Tx, scope: SystemScope, fleetIds: readonly string[]) => Promise<void>;
  /** The devices among these whose agents keep a carrier open. */
  readonly connected: (scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Tells this node and the others. */
  readonly changed: (tenantId: string) => void;
  readonly wakeProbes: () => void;
}
type MeshHandlers = Handlers<typeof contract.meshRoutes>;

const { events, commands } = contract.meshRoutes;
/** Devices that are told at once; the others read their routes within a minute. */
const MAX_TOLD = 200;
const unknown = (routeId: string): AppError => new AppError("MESH_ROUTE_NOT_FOUND", { details: { routeId } });

/** What a change that names some fields asks for as a whole. */
const merged = (row: RouteRow, change: { readonly [K in keyof AskedRoute]?: AskedRoute[K] | undefined }): AskedRoute => {
  const { name, network, domains, host, port, listenPort, enabled, allowPublic } = row;
  const routers = row.routers.map(({ deviceId, metric }) => ({ deviceId, metric }));
  const before = { name, network, domains, host, port, listenPort, enabled, allowPublic, routers, consumers: consumersOf(row), probe: probeOf(row) };
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  return { ...before, ...given, kind: row.kind as AskedRoute["kind"] }; // as: written by this feature alone
};
const routersText = (routers: AskedRoute["routers"]): string => JSON.stringify(routers.map(({ deviceId, metric }) => [deviceId, metric]).sort());

export const createMeshHandlers = (deps: MeshHandlersDeps): MeshHandlers => {
  const { db, clock, emit, plan, enqueueEach, consumers, knownDevices, holdFleets, connected, changed, wakeProbes } = deps;
  const one = async (clients: Clients, scope: SystemScope, row: RouteRow) => toMeshRoute(row, row.network === null ? [] : await networksOf(clients, scope));
  const requireOne = async (scope: SystemScope, routeId: string): Promise<RouteRow> => {
    const row = await findRoute(db, scope, routeId);
    if (row === null) throw unknown(routeId);
    return row;
  };
  const requireLocked = async (tx: Tx, scope: SystemScope, routeId: string, version?: number): Promise<RouteRow> => {
    const row = await lockRoute(tx, scope, routeId);
    if (row === null) throw unknown(routeId);
    if (version !== undefined && version !== row.version) throw new AppError("VERSION_CONFLICT", { details: { currentVersion: row.version } });
    return row;
  };
  const checkNamed = async (
    tx: Tx,
    scope: TenantScope,
    { routers, consumers: { deviceIds, fleetIds } }: Pick<AskedRoute, "routers" | "consumers">,
  ): Promise<void> => {
    const named = [...new Set([...routers.map(({ deviceId }) => deviceId), ...deviceIds])];
    const known = await knownDevices(tx, scope, named);
    const missing = named.find((deviceId) => !known.has(deviceId));
    if (missing !== undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId: missing } });
    if (fleetIds.length > 0) await holdFleets(tx, scope, fleetIds);
  };
  const checkPublic = ({ principal }: TenantScope, { allowPublic }: JudgedRoute, before: boolean): void => {
    if (!allowPublic || before) return;
    if (principal.kind === "agent" || !principal.permissions.has("mesh:approve"))
      throw new AppError("FORBIDDEN", { details: { requiredPermission: "mesh:approve" } });
  };
  /** Its routers and consumers read their routes again; whom the queue refuses reads them within a minute. */
  const tellDevices = async (tx: Tx, scope: TenantScope, rows: readonly RouteRow[]): Promise<() => void> => {
    const ids = new Set<string>();
    for (const row of rows) {
      for (const { deviceId } of row.routers) ids.add(deviceId);
      for (const deviceId of await consumers.ids(tx, scope, row)) if (ids.size < MAX_TOLD) ids.add(deviceId);
    }
    const orders = [...ids].map(
      (deviceId) => orderOf(commands.sync, { deviceId: deviceId as DeviceId, key: newId("cmd"), orderedBy: actorOf(scope.principal), payload: {} }), // as: of rows, and known
    );
    return (await enqueueEach(tx, scope, orders)).notify;
  };
  const afterChange = (scope: TenantScope, notify: () => void) => (): void => {
    notify();
    changed(scope.tenantId);
    wakeProbes();
  };
  const decide =
    (approval: "approved" | "rejected"): MeshHandlers["approve"] & MeshHandlers["reject"] =>
    ({ scope, commit }, { routeId, version }: { readonly routeId: string; readonly version?: number | undefined }) =>
      commit(async (tx, afterwards) => {
        const row = await requireLocked(tx, scope, routeId, version);
        if (row.approval === approval) return one(tx, scope, row);
        const now = clock.now();
        const standing = routeStandingOf({ ...row, approval }, row.routers);
        const next = await changeRoute(tx, scope, routeId, { approval, decidedBy: actorOf(scope.principal), ...standing, since: now, probeAt: now });
        if (next === null) throw unknown(routeId);
        await emit(tx, [happened(scope, approval === "approved" ? events.approved : events.rejected, routeId, aboutRoute(row))]);
        afterwards(afterChange(scope, await tellDevices(tx, scope, [next])));
        return one(tx, scope, next);
      });

  return implement(contract.meshRoutes, {
    list: async ({ scope }, query) => {
      const networks = await networksOf(db, scope);
      const { items, ...page } = await pageOfRoutes(db, scope, query, (row) => toMeshRoute(row, networks));
      return { items: await withActors(db, scope, items), ...page };
    },
    get: async ({ scope }, { routeId }) => withActor(db, scope, await one(db, scope, await requireOne(scope, routeId))),
    create: ({ scope, commit }, input) =>
      commit(async (tx) => {
        const judged = judgeRoute(input);
        checkPublic(scope, judged, false);
        await checkNamed(tx, scope, input);
        await plan.require(tx, scope, "meshRoutes", 1);
        const [routeId, now] = [newId("mrt"), clock.now()];
        const status = judged.enabled ? "down" : "disabled";
        await insertRoute(tx, scope, { routeId, createdBy: actorOf(scope.principal), since: now, probeAt: now, status, judged, routers: input.routers });
        await emit(tx, [happened(scope, events.created, routeId, aboutRoute({ routeId, name: judged.name }))]);
        const row = await findRoute(tx, scope, routeId);
        if (row === null) throw unknown(routeId);
        return one(tx, scope, row);
      }),
    update: ({ scope, commit }, { routeId, version, ...change }) =>
      commit(async (tx, afterwards) => {
        const before = await requireLocked(tx, scope, routeId, version);
        const asked = merged(before, change);
        const judged = judgeRoute(asked);
        checkPublic(scope, judged, before.allowPublic);
        if (change.routers !== undefined || change.consumers !== undefined) await checkNamed(tx, scope, asked);
        const isOther =
          judged.targetHash !== before.targetHash || judged.allowPublic !== before.allowPublic || routersText(asked.routers) !== routersText(before.routers);
        if (change.routers !== undefined) await replaceRouters(tx, scope, routeId, asked.routers);
        const approval = isOther ? "pending" : before.approval;
        const now = clock.now();
        const { activeRouter, routers } = before;
        const standing = routeStandingOf({ enabled: judged.enabled, approval, activeRouter }, routers);
        const moved: RoutePatch = standing.status === before.status && standing.activeRouter === activeRouter ? {} : { since: now };
        const patch: RoutePatch = { ...standing, ...moved, approval, probeAt: now, ...(isOther ? { decidedBy: null } : {}) };
        const next = await changeRoute(tx, scope, routeId, { judged, ...patch });
        if (next === null) throw unknown(routeId);
        await emit(tx, [happened(scope, events.updated, routeId, { ...aboutRoute(next), approval: approval as MeshRoute["approval"] })]); // as: written by this feature alone
        afterwards(afterChange(scope, await tellDevices(tx, scope, [before, next])));
        return one(tx, scope, next);
      }),
    remove: ({ scope, commit }, { routeId }) =>
      commit(async (tx, afterwards) => {
        const row = await requireLocked(tx, scope, routeId);
        const notify = await tellDevices(tx, scope, [row]);
        await deleteRoute(tx, scope, routeId);
        await emit(tx, [happened(scope, events.deleted, routeId, aboutRoute(row))]);
        afterwards(afterChange(scope, notify));
        return null;
      }),
    approve: decide("approved"),
    reject: decide("rejected"),
    peers: async ({ scope }) => {
      const rows = await allRoutes(db, scope);
      const routes = new Map<string, string[]>();
      for (const { routeId, routers } of rows) for (const { deviceId } of routers) routes.set(deviceId, [...(routes.get(deviceId) ?? []), routeId]);
      const ids = [...routes.keys()];
      const here = await connected(scope, ids);
      const items = ids.map((deviceId) => ({ deviceId, routes: routes.get(deviceId) ?? [], connected: here.has(deviceId) }));
      return { items: items as MeshPeer[] }; // as: the columns hold ids
    },
    effective: async ({ scope }, { deviceId }) => {
      if (!(await knownDevices(db, scope, [deviceId])).has(deviceId)) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
      const parts = await consumers.rolesOf(scope, await allRoutes(db, scope), deviceId);
      return { items: parts.map(({ row, role }) => toEffective(row, role, deviceId)) };
    },
  });
};
