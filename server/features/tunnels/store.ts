// Rows of tunnels and of the carriers that serve them.
import type { Tunnel as Row, TunnelCarrier } from "../../../prisma/generated/client.ts";
import type { Page } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createListing, likeLiteral } from "../../core/rows/listing.ts";
import { given } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { statement, LOCK as WAIT } from "../../core/statements.ts";
import { useColumns } from "../../core/structures/use-counter.ts";

export type TunnelRow = Row;

/** For the plan. */
export const countTunnels = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).tunnel.count();

const list = createListing("tunnels", { createdAt: { kind: "time" }, name: { kind: "text" }, status: { kind: "text" } }, { column: "tunnelId", kind: "text" });
type TunnelsQuery = Parameters<typeof list>[0] & {
  readonly status?: string | undefined;
  readonly q?: string | undefined;
  readonly deviceId?: string | undefined;
  readonly appId?: string | undefined;
};

export const pageOfTunnels = <T>(db: Clients, scope: SystemScope, query: TunnelsQuery, record: (row: TunnelRow) => T): Promise<Page<T>> => {
  const { tunnel } = db.for(scope);
  const { status, q, deviceId, appId } = query;
  const text =
    q === undefined
      ? {}
      : { OR: [{ name: { contains: likeLiteral(q), mode: "insensitive" as const } }, { hostname: { contains: likeLiteral(q.toLowerCase()) } }] };
  const where = { ...given({ status, deviceId, appId }), ...text };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => tunnel.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => tunnel.count({ where }),
    record,
  });
};

export const findTunnel = (db: Clients, scope: SystemScope, tunnelId: string): Promise<TunnelRow | null> =>
  db.for(scope).tunnel.findFirst({ where: { tunnelId } });

export const findNamedTunnels = async (db: Clients, scope: SystemScope, tunnelIds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const rows = await db.for(scope).tunnel.findMany({ where: { tunnelId: { in: [...tunnelIds] } }, select: { tunnelId: true, name: true } });
  return new Map(rows.map(({ tunnelId, name }) => [tunnelId, name]));
};

export const findTunnelOfApp = (db: Clients, scope: SystemScope, appId: string): Promise<TunnelRow | null> =>
  db.for(scope).tunnel.findFirst({ where: { appId }, orderBy: { createdAt: "asc" } });

/** In whichever tenant: a visitor names only the host. */
export const findTunnelByHostname = (db: Clients, hostname: string): Promise<TunnelRow | null> => db.system.tunnel.findFirst({ where: { hostname } });
export const findByToken = (db: Clients, tokenHash: string): Promise<TunnelRow | null> => db.system.tunnel.findFirst({ where: { tokenHash } });

/** What an agent should serve. */
const MAX_OF_DEVICE = 200;
export const tunnelsOfDevice = (db: Clients, scope: SystemScope, deviceId: string): Promise<TunnelRow[]> =>
  db.for(scope).tunnel.findMany({ where: { deviceId, status: { not: "stopped" } }, orderBy: { tunnelId: "asc" }, take: MAX_OF_DEVICE });

export type NewTunnel = Pick<
  TunnelRow,
  | "tunnelId"
  | "deviceId"
  | "appId"
  | "name"
  | "hostname"
  | "protocol"
  | "service"
  | "targetPort"
  | "port"
  | "accessMode"
  | "allow"
  | "hostHeader"
  | "requestsPerMinute"
  | "maxConnections"
  | "idleSeconds"
  | "tokenHash"
  | "token"
  | "tokenHint"
  | "expiresAt"
  | "createdBy"
>;
/** More cannot be configured, unless settings changed; then the rest is not listened for. */
const MAX_PORTS = 2_000;
const bytes = (given: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(given);
export const insertTunnel = (db: Clients, scope: SystemScope, tunnel: NewTunnel): Promise<TunnelRow> =>
  db.for(scope).tunnel.create({ data: { ...tunnel, token: bytes(tunnel.token) } });

/** Until the transaction ends, nobody else takes a port. Null: all are taken. */
export const takeFreePort = async (tx: Tx, ports: readonly number[]): Promise<number | null> => {
  await tx.query(WAIT, ["ports of tunnels"]);
  const taken = new Set((await tx.system.tunnel.findMany({ where: { port: { not: null } }, select: { port: true }, take: MAX_PORTS })).map(({ port }) => port));
  return ports.find((port) => !taken.has(port)) ?? null;
};
/** In whichever tenant: what a node listens for. */
export const tunnelsWithPorts = (db: Clients): Promise<TunnelRow[]> =>
  db.system.tunnel.findMany({ where: { port: { not: null }, status: { not: "stopped" } }, orderBy: { port: "asc" }, take: MAX_PORTS });

export type TunnelPatch = Partial<
  Pick<
    TunnelRow,
    | "name"
    | "hostname"
    | "status"
    | "protocol"
    | "service"
    | "targetPort"
    | "accessMode"
    | "allow"
    | "hostHeader"
    | "requestsPerMinute"
    | "maxConnections"
    | "idleSeconds"
    | "tokenHash"
    | "tokenHint"
    | "expiresAt"
    | "health"
    | "serviceState"
    | "lastSeenAt"
  >
> & { readonly token?: Uint8Array; readonly failure?: { readonly reason: string; readonly message: string } | null };
const dataOf = ({ token, failure, ...patch }: TunnelPatch) => ({
  ...patch,
  ...(token === undefined ? {} : { token: bytes(token) }),
  ...(failure === undefined ? {} : { failure: failure ?? (null as never) }),
});

/** A change that others see; null when the version has moved on or the tunnel is gone. */
export const changeTunnel = async (
  db: Clients,
  scope: SystemScope,
  { tunnelId, version }: { readonly tunnelId: string; readonly version?: number | undefined },
  patch: TunnelPatch,
): Promise<TunnelRow | null> => {
  const where = { tunnelId, ...given({ version }) };
  const [row] = await db.for(scope).tunnel.updateManyAndReturn({ where, data: { ...dataOf(patch), version: { increment: 1 } } });
  return row ?? null;
};

/** What the gateway itself learns makes no new version. */
export const patchTunnel = async (db: Clients, scope: SystemScope, tunnelId: string, patch: TunnelPatch): Promise<void> => {
  await db.for(scope).tunnel.updateMany({ where: { tunnelId }, data: dataOf(patch) });
};

export const deleteTunnel = async (db: Clients, scope: SystemScope, tunnelId: string): Promise<boolean> =>
  (await db.for(scope).tunnel.deleteMany({ where: { tunnelId } })).count === 1;

const LOCK = statement<{ readonly tunnel_id: string }>(
  "tunnels.lock",
  "select t.tunnel_id from tunnels t where t.tenant_id = $1 and t.tunnel_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes the tunnel. Null: it is gone. */
export const lockTunnel = async (tx: Tx, scope: SystemScope, tunnelId: string): Promise<TunnelRow | null> => {
  await tx.query(LOCK, [scope.tenantId, tunnelId]);
  return findTunnel(tx, scope, tunnelId);
};

export type CarrierRow = TunnelCarrier;
export const insertCarrier = async (db: Clients, scope: SystemScope, carrier: Omit<CarrierRow, "tenantId">): Promise<void> => {
  await db.for(scope).tunnelCarrier.create({ data: carrier });
};
export const deleteCarrier = async (db: Clients, scope: SystemScope, carrierId: string): Promise<void> => {
  await db.for(scope).tunnelCarrier.deleteMany({ where: { carrierId } });
};
const MAX_CARRIERS = 100;
export const carriersOf = (db: Clients, scope: SystemScope, keys: readonly string[], since: Date): Promise<CarrierRow[]> =>
  db.for(scope).tunnelCarrier.findMany({ where: { key: { in: [...keys] }, seenAt: { gte: since } }, orderBy: { openedAt: "desc" }, take: MAX_CARRIERS });

/** In whichever tenant: the key comes from a tunnel's own row. */
export const carriersElsewhere = (
  db: Clients,
  { key, nodeId, since }: { readonly key: string; readonly nodeId: string; readonly since: Date },
): Promise<CarrierRow[]> =>
  db.system.tunnelCarrier.findMany({ where: { key, nodeId: { not: nodeId }, seenAt: { gte: since } }, orderBy: { openedAt: "desc" }, take: MAX_CARRIERS });

const SEEN = statement<{ readonly carrier_id: string }>(
  "tunnels.carriersSeen",
  "update tunnel_carriers c set seen_at = $3 where c.node_id = $1 and c.carrier_id = any($2::text[]) returning c.carrier_id",
);
const FORGET = statement<{ readonly carrier_id: string }>(
  "tunnels.carriersForget",
  "delete from tunnel_carriers c where c.seen_at < $1 or (c.node_id = $2 and c.carrier_id <> all($3::text[]) and c.opened_at < $4) returning c.carrier_id",
);
/** Keeps the rows of this node's carriers fresh, and drops those of carriers and nodes that are gone. */
export const refreshCarriers = async (
  db: SqlTx,
  {
    nodeId,
    carrierIds,
    now,
    stale,
    settled,
  }: { readonly nodeId: string; readonly carrierIds: readonly string[]; readonly now: Date; readonly stale: Date; readonly settled: Date },
): Promise<void> => {
  await db.query(SEEN, [nodeId, [...carrierIds], now]);
  await db.query(FORGET, [stale, nodeId, [...carrierIds], settled]);
};

const CHANGED = statement<{ readonly tenant_id: string; readonly tunnel_id: string; readonly health: string }>(
  "tunnels.changedHealth",
  `select f.tenant_id, f.tunnel_id, f.now_health as health from (
     select t.tenant_id, t.tunnel_id, t.health, t.last_seen_at,
       case when exists (select 1 from tunnel_carriers c where c.tenant_id = t.tenant_id and (c.key = t.tunnel_id or c.key = t.device_id) and c.seen_at > $1)
         then case when t.failure is null then 'healthy' else 'degraded' end
         when t.health = 'inactive' then 'inactive' else 'down' end as now_health
     from tunnels t where t.status <> 'stopped') f
   where f.now_health <> f.health and (f.now_health <> 'down' or f.last_seen_at is null or f.last_seen_at < $2) limit $3`,
);
/** Tunnels whose health is another one than people were told. */
export const changedHealth = async (
  db: SqlTx,
  { fresh, gone, limit }: { readonly fresh: Date; readonly gone: Date; readonly limit: number },
): Promise<readonly { readonly tenantId: string; readonly tunnelId: string; readonly health: string }[]> =>
  (await db.query(CHANGED, [fresh, gone, limit])).map(({ tenant_id: tenantId, tunnel_id: tunnelId, health }) => ({ tenantId, tunnelId, health }));

const LOST = statement<{ readonly tunnel_id: string }>(
  "tunnels.carrierLost",
  "update tunnels t set last_seen_at = $3 where t.tenant_id = $1 and (t.tunnel_id = $2 or t.device_id = $2) returning t.tunnel_id",
);
/** When a carrier was last there, for all tunnels that it served. */
export const noteSeen = async (db: SqlTx, tenantId: string, key: string, at: Date): Promise<void> => {
  await db.query(LOST, [tenantId, key, at]);
};

// Locked in one order, so that two nodes with the same tunnels never wait for each other in a circle.
const USED = statement<{ readonly tunnel_id: string }>(
  "tunnels.used",
  `with locked as (select tunnel_id from tunnels where tunnel_id = any($1::text[]) order by tunnel_id for no key update)
   update tunnels t set requests = t.requests + u.requests, bytes_in = t.bytes_in + u.bytes_in, bytes_out = t.bytes_out + u.bytes_out, last_used_at = $5
     from unnest($1::text[], $2::int8[], $3::int8[], $4::int8[]) as u(tunnel_id, requests, bytes_in, bytes_out) join locked using (tunnel_id)
    where t.tunnel_id = u.tunnel_id returning t.tunnel_id`,
);
export const TUNNEL_USE = ["requests", "bytesIn", "bytesOut"] as const;
export type TunnelUse = Record<(typeof TUNNEL_USE)[number], number>;
/** Adds what passed since the last time. */
export const addTunnelUse = async (db: SqlTx, used: ReadonlyMap<string, TunnelUse>, at: Date): Promise<void> => {
  await db.query(USED, [...useColumns(used, TUNNEL_USE), at]);
};
