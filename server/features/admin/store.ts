// Rows of gateway nodes, which belong to no tenant. Raw SQL where seconds decide whether a node is alive, because all nodes share PostgreSQL's clock.
import { secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Stuck } from "../../core/people/stuck.ts";
import type { NodeListeners } from "../../core/ports/cluster-snapshot.ts";
import { statement } from "../../core/statements.ts";

export interface NodeReport {
  readonly nodeId: string;
  readonly address: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly draining: boolean;
  readonly overloaded: boolean;
  readonly connections: number;
  readonly ready: number;
  /** Which master key seals here. */
  readonly sealingKey?: string;
}

export interface NodeRow extends NodeReport {
  readonly startedAt: Date;
  readonly seenAt: Date;
}

/** The cluster as of a node's own beat. */
export interface ClusterSnapshot {
  readonly drainAsked: boolean;
  readonly liveNodes: number;
  readonly connections: number;
  /** The others, also those that drain. */
  readonly nodes: readonly (NodeListeners & { readonly host: string })[];
}

const COLUMNS = `node_id as "nodeId", address, host, pid::int as pid, version, draining, overloaded, connections::int as connections, ready::int as ready, started_at as "startedAt", seen_at as "seenAt"`;
const MAX_LISTED = 1_000;
const DELETED_AFTER_SECONDS = 3_600;

const BEAT = statement<ClusterSnapshot>(
  "nodes.beat",
  `with mine as (
     insert into gateway_nodes (node_id, address, host, pid, version, draining, connections, ready, overloaded, sealing_key, listeners) values ($1, $2, $3, $4, $5, $6, $7, $8, $10, $11, $12)
     on conflict (node_id) do update set address = $2, draining = $6, overloaded = $10, connections = $7, ready = $8, version = $5, host = $3, pid = $4, sealing_key = $11, listeners = $12, seen_at = now(),
       started_at = case when (gateway_nodes.host, gateway_nodes.pid) = ($3, $4) then gateway_nodes.started_at else now() end,
       drain_asked_at = case when (gateway_nodes.host, gateway_nodes.pid) = ($3, $4) then gateway_nodes.drain_asked_at end
     returning drain_asked_at
   ), others as (
     select count(*)::int as live, coalesce(sum(connections), 0)::int as connections from gateway_nodes
     where node_id <> $1 and not draining and seen_at > now() - make_interval(secs => $9)
   ), listening as (
     select coalesce(jsonb_agg(jsonb_build_object('host', n.host, 'listeners', n.listeners)), '[]') as nodes
       from (select host, listeners from gateway_nodes where node_id <> $1 and seen_at > now() - make_interval(secs => $9) limit ${MAX_LISTED}) n
   )
   select mine.drain_asked_at is not null as "drainAsked", others.live + 1 as "liveNodes", others.connections + $7 as connections, listening.nodes from mine, others, listening`,
);

/** Renews the node's row and reads the cluster. A new process under an old node id resets `started_at` and the order to drain. */
export const beat = async (
  sql: SqlTx,
  { sealingKey = "", ...node }: NodeReport,
  listeners: readonly string[],
  expireSeconds: number,
): Promise<ClusterSnapshot> => {
  const [row] = await sql.query(BEAT, [
    node.nodeId,
    node.address,
    node.host,
    node.pid,
    node.version,
    node.draining,
    node.connections,
    node.ready,
    expireSeconds,
    node.overloaded,
    sealingKey,
    listeners,
  ]);
  if (row === undefined) throw new Error("a beat returned no row");
  return row;
};

const LIVE_NODES = statement<NodeRow>(
  "nodes.live",
  `select ${COLUMNS} from gateway_nodes where seen_at > now() - make_interval(secs => $1) order by started_at, node_id limit ${MAX_LISTED}`,
);

export const liveNodes = (sql: SqlTx, expireSeconds: number): Promise<readonly NodeRow[]> => sql.query(LIVE_NODES, [expireSeconds]);

const SILENT_NODES = statement<{ readonly nodeId: string; readonly host: string; readonly seenAt: Date }>(
  "nodes.silent",
  `select node_id as "nodeId", host, seen_at as "seenAt" from gateway_nodes where seen_at <= now() - make_interval(secs => $1) order by seen_at limit $2`,
);

/** Nodes that ended without removing their rows, or cannot reach the database. */
export const findSilentNodes = async (sql: SqlTx, expireSeconds: number, limit: number): Promise<readonly Stuck[]> =>
  (await sql.query(SILENT_NODES, [expireSeconds, limit])).map(({ nodeId, host, seenAt }) => ({
    kind: "node_silent",
    tenantId: null,
    id: nodeId,
    since: seenAt,
    reason: `the node on ${host} has stopped reporting: it was killed or cannot reach the database`,
    whatToDo: "Look at its machine, and start it again. Its agents have moved to other nodes.",
  }));

const ASK_TO_DRAIN = statement<NodeRow>(
  "nodes.askToDrain",
  `update gateway_nodes set drain_asked_at = coalesce(drain_asked_at, now()) where node_id = $1 and seen_at > now() - make_interval(secs => $2) returning ${COLUMNS}`,
);

/** Asks the node to drain and returns its row; null when no such node is alive. */
export const askToDrain = async (sql: SqlTx, nodeId: string, expireSeconds: number): Promise<NodeRow | null> => {
  const [row] = await sql.query(ASK_TO_DRAIN, [nodeId, expireSeconds]);
  return row ?? null;
};

/** Deletes the row of a node that shuts down, unless another process has taken its name. */
export const deleteNode = async (db: Clients, { nodeId, host, pid }: Pick<NodeReport, "nodeId" | "host" | "pid">): Promise<void> => {
  await db.system.gatewayNode.deleteMany({ where: { nodeId, host, pid } });
};

export const deleteNodes = async (db: Clients, nodeIds: readonly string[]): Promise<void> => {
  await db.system.gatewayNode.deleteMany({ where: { nodeId: { in: [...nodeIds] } } });
};

export const deleteDeadNodes = async (db: Clients, now: Date): Promise<void> => {
  await db.system.gatewayNode.deleteMany({ where: { seenAt: { lt: secondsFromNow(-DELETED_AFTER_SECONDS, now) } } });
};
