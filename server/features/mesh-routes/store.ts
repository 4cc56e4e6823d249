// Rows of mesh routes and of their routers.
import type { MeshRouter, MeshRoute as Row } from "../../../prisma/generated/client.ts";
import type { Page } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createListing, likeLiteral } from "../../core/rows/listing.ts";
import { given } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { statement } from "../../core/statements.ts";
import { useColumns } from "../../core/structures/use-counter.ts";
import type { JudgedRoute } from "./input.ts";

export type RouteRow = Row & { readonly routers: readonly MeshRouter[] };
const routers = { routers: { orderBy: [{ metric: "asc" as const }, { deviceId: "asc" as const }] } };

/** For the plan. */
export const countRoutes = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).meshRoute.count();

const list = createListing("mesh-routes", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "routeId", kind: "text" });
type RoutesQuery = Parameters<typeof list>[0] & {
  readonly approval?: string | undefined;
  readonly status?: string | undefined;
  readonly q?: string | undefined;
};
export const pageOfRoutes = <T>(db: Clients, scope: SystemScope, query: RoutesQuery, record: (row: RouteRow) => T): Promise<Page<T>> => {
  const { meshRoute } = db.for(scope);
  const { approval, status, q } = query;
  const like = q === undefined ? null : { contains: likeLiteral(q), mode: "insensitive" as const };
  const where = { ...given({ approval, status }), ...(like === null ? {} : { OR: [{ name: like }, { network: like }, { host: like }] }) };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => meshRoute.findMany({ ...asked, where: { ...where, AND: asked.where }, include: routers }),
    count: () => meshRoute.count({ where }),
    record,
  });
};

export const findRoute = (db: Clients, scope: SystemScope, routeId: string): Promise<RouteRow | null> =>
  db.for(scope).meshRoute.findFirst({ where: { routeId }, include: routers });

/** A plan allows fewer. */
const MAX_ROUTES = 1_000;
export const allRoutes = (db: Clients, scope: SystemScope): Promise<RouteRow[]> =>
  db.for(scope).meshRoute.findMany({ include: routers, orderBy: { routeId: "asc" }, take: MAX_ROUTES });
export const networksOf = (db: Clients, scope: SystemScope): Promise<{ routeId: string; network: string | null }[]> =>
  db.for(scope).meshRoute.findMany({ where: { kind: "subnet" }, select: { routeId: true, network: true }, orderBy: { routeId: "asc" }, take: MAX_ROUTES });

/** Routes that this device has offered to these networks, whatever people have made of them, and those of others that are the same. */
export const offeredRoutes = (
  db: Clients,
  scope: SystemScope,
  deviceId: string,
  judged: readonly JudgedRoute[],
): Promise<{ network: string | null; advertisedBy: string | null }[]> => {
  const own = { advertisedBy: deviceId, network: { in: judged.flatMap(({ network }) => network ?? []) } };
  return db.for(scope).meshRoute.findMany({
    where: { OR: [own, { targetHash: { in: judged.map(({ targetHash }) => targetHash) } }] },
    select: { network: true, advertisedBy: true },
    orderBy: { routeId: "asc" },
    take: MAX_ROUTES,
  });
};

export interface RouterInput {
  readonly deviceId: string;
  readonly metric: number;
}
const dataOf = ({ probe, consumers, ...rest }: JudgedRoute) => ({ ...rest, consumers: { ...consumers }, probe: probe ?? (null as never) });

export const insertRoute = async (
  db: Clients,
  scope: SystemScope,
  route: Pick<Row, "routeId" | "createdBy" | "since" | "probeAt" | "status"> & {
    readonly advertisedBy?: string;
    readonly judged: JudgedRoute;
    readonly routers: readonly RouterInput[];
  },
): Promise<void> => {
  const { judged, routers: given, ...rest } = route;
  await db.for(scope).meshRoute.create({ data: { ...rest, ...dataOf(judged) } });
  await replaceRouters(db, scope, route.routeId, given);
};
/** A router that stays keeps what its probes have shown. */
export const replaceRouters = async (db: Clients, scope: SystemScope, routeId: string, wanted: readonly RouterInput[]): Promise<void> => {
  const { meshRouter } = db.for(scope);
  const before = await meshRouter.findMany({ where: { routeId, deviceId: { in: wanted.map(({ deviceId }) => deviceId) } } });
  await meshRouter.deleteMany({ where: { routeId } });
  const known = new Map(before.map((row) => [row.deviceId, row]));
  const rowOf = ({ deviceId, metric }: RouterInput) => {
    const { state = "unknown", misses = 0, reason = null, checkedAt = null } = known.get(deviceId) ?? {};
    return { routeId, deviceId, metric, state, misses, reason, checkedAt };
  };
  await meshRouter.createMany({ data: wanted.map(rowOf) });
};

export type RoutePatch = Partial<Pick<Row, "approval" | "decidedBy" | "status" | "activeRouter" | "since" | "probeAt">>;
/** A change that others see. Null: the route is gone. */
export const changeRoute = async (
  db: Clients,
  scope: SystemScope,
  routeId: string,
  { judged, ...patch }: RoutePatch & { readonly judged?: JudgedRoute },
): Promise<RouteRow | null> => {
  const data = { ...patch, ...(judged === undefined ? {} : dataOf(judged)), version: { increment: 1 } };
  await db.for(scope).meshRoute.updateMany({ where: { routeId }, data });
  return findRoute(db, scope, routeId);
};
/** What the gateway itself learns makes no new version. */
export const patchRoute = async (db: Clients, scope: SystemScope, routeId: string, patch: RoutePatch): Promise<void> => {
  await db.for(scope).meshRoute.updateMany({ where: { routeId }, data: patch });
};
export const deleteRoute = async (db: Clients, scope: SystemScope, routeId: string): Promise<boolean> =>
  (await db.for(scope).meshRoute.deleteMany({ where: { routeId } })).count === 1;

const LOCK = statement<{ readonly route_id: string }>(
  "meshRoutes.lock",
  "select r.route_id from mesh_routes r where r.tenant_id = $1 and r.route_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes the route. Null: it is gone. */
export const lockRoute = async (tx: Tx, scope: SystemScope, routeId: string): Promise<RouteRow | null> => {
  await tx.query(LOCK, [scope.tenantId, routeId]);
  return findRoute(tx, scope, routeId);
};

const CLAIM = statement<{ readonly tenant_id: string; readonly route_id: string }>(
  "meshRoutes.claimProbes",
  `update mesh_routes r set probe_at = $2 where r.route_id in
     (select d.route_id from mesh_routes d where d.probe_at <= $1 and d.enabled and d.approval = 'approved' order by d.probe_at limit $3 for update skip locked)
   returning r.tenant_id, r.route_id`,
);
/** Routes whose probe is due, for this node alone. */
export const claimProbes = async (
  db: SqlTx,
  { now, next, limit }: { readonly now: Date; readonly next: Date; readonly limit: number },
): Promise<readonly { readonly tenantId: string; readonly routeId: string }[]> =>
  (await db.query(CLAIM, [now, next, limit])).map(({ tenant_id: tenantId, route_id: routeId }) => ({ tenantId, routeId }));

const SOON = statement<{ readonly route_id: string }>(
  "meshRoutes.probeSoon",
  `update mesh_routes r set probe_at = $3 where r.tenant_id = $1 and r.probe_at > $3
     and exists (select 1 from mesh_routers m where m.tenant_id = r.tenant_id and m.route_id = r.route_id and m.device_id = $2 and m.state <> 'up') returning r.route_id`,
);
/** A router has come back: its routes need not wait for their next probe. Returns whether there are any. */
export const probeSoon = async (db: SqlTx, tenantId: string, deviceId: string, now: Date): Promise<boolean> =>
  (await db.query(SOON, [tenantId, deviceId, now])).length > 0;

export const writeRouter = async (
  db: Clients,
  scope: SystemScope,
  { routeId, deviceId, ...data }: Pick<MeshRouter, "routeId" | "deviceId" | "state" | "misses" | "reason" | "checkedAt">,
): Promise<void> => {
  await db.for(scope).meshRouter.updateMany({ where: { routeId, deviceId }, data });
};

// Locked in one order, so that two nodes with the same routes never wait for each other in a circle.
const USED = statement<{ readonly route_id: string }>(
  "meshRoutes.used",
  `with locked as (select route_id from mesh_routes where route_id = any($1::text[]) order by route_id for no key update)
   update mesh_routes r set connections = r.connections + u.connections, bytes_in = r.bytes_in + u.bytes_in, bytes_out = r.bytes_out + u.bytes_out, last_used_at = $5
     from unnest($1::text[], $2::int8[], $3::int8[], $4::int8[]) as u(route_id, connections, bytes_in, bytes_out) join locked using (route_id)
    where r.route_id = u.route_id returning r.route_id`,
);
export const ROUTE_USE = ["connections", "bytesIn", "bytesOut"] as const;
export type RouteUse = Record<(typeof ROUTE_USE)[number], number>;
/** Adds what passed since the last time. */
export const addRouteUse = async (db: SqlTx, used: ReadonlyMap<string, RouteUse>, at: Date): Promise<void> => {
  await db.query(USED, [...useColumns(used, ROUTE_USE), at]);
};
