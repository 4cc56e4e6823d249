// Cluster membership and the operators' view of the installation: its nodes and its tenants. Every node renews its own row every few seconds; a node that stops doing so counts as dead.

import { contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { implement } from "../../core/feature.ts";
import type { Flags } from "../../core/people/flags.ts";
import type { Bus } from "../../platform/cluster/bus.ts";
import type { Job, JobBook } from "../../platform/jobs.ts";
import type { OwnListeners } from "../../platform/outbound/own-listeners.ts";
import type { Feature } from "../kit.ts";
import { createFlags } from "./flags.ts";
import { createJobsView } from "./jobs.ts";
import { createOverview, type OverviewDeps } from "./overview.ts";
import {
  askToDrain,
  beat,
  type ClusterSnapshot,
  deleteDeadNodes,
  deleteNode,
  deleteNodes,
  findSilentNodes,
  liveNodes,
  type NodeReport,
  type NodeRow,
} from "./store.ts";
import { createTenantHandlers, type TenantHandlersDeps } from "./tenants.ts";

export interface AdminSettings {
  readonly beatEveryMs: number;
  /** A node that has not renewed its row for this long counts as dead. */
  readonly expireSeconds: number;
}

/** The present state of this process. */
export interface ThisNode {
  report(): NodeReport;
  drain(): void;
}

export interface AdminDeps extends TenantHandlersDeps, Omit<OverviewDeps, "anyTenant" | "nodes"> {
  readonly db: Tx;
  readonly bus: Pick<Bus, "publish" | "subscribe">;
  readonly node: ThisNode;
  readonly ownListeners: Pick<OwnListeners, "published" | "learn">;
  /** The bus channel of one node. */
  readonly channelOf: (nodeId: string) => string;
  /** Whether this process of this machine still runs. */
  readonly lives: (pid: number) => Promise<boolean>;
  readonly book: JobBook;
  readonly settings?: Partial<AdminSettings> | undefined;
}

export interface AdminFeature extends Feature<typeof contract.admin> {
  readonly jobs: readonly Job[];
  readonly flags: Flags;
  /** As of the last beat. Draining nodes do not count. */
  liveNodes(): number;
  /** Sockets on all nodes, as of the last beat. */
  connections(): number;
  /** Writes the state of this node now, for example that it drains, and reads the state of the cluster. */
  announce(): Promise<void>;
  /** Joins the cluster and subscribes to the order to drain. */
  open(): Promise<void>;
  close(): Promise<void>;
}

const DEFAULTS: AdminSettings = { beatEveryMs: 5_000, expireSeconds: 15 };
const DRAIN = "drain";

const shown = ({ startedAt, seenAt, ...row }: NodeRow) => ({ ...row, startedAt: startedAt.toISOString(), seenAt: seenAt.toISOString() });

/** The distinct public addresses of the nodes that serve this database now. */
export const findServingAddresses = async (db: Tx): Promise<readonly string[]> => [
  ...new Set((await liveNodes(db, DEFAULTS.expireSeconds)).filter(({ draining }) => !draining).map(({ address }) => address)),
];

export const createAdmin = (deps: AdminDeps): AdminFeature => {
  const { db, bus, node, ownListeners, channelOf, lives, anyTenant, settings: given } = deps;
  const settings = { ...DEFAULTS, ...given };
  let cluster: ClusterSnapshot = { drainAsked: false, liveNodes: 1, connections: 0, nodes: [] };
  let stopListening: (() => Promise<void>) | null = null;
  let isClosed = false;

  const writeAndRead = async (): Promise<void> => {
    if (isClosed) return;
    const report = node.report();
    cluster = await beat(db, report, ownListeners.published(), settings.expireSeconds);
    ownListeners.learn(cluster.nodes.map(({ host, listeners }) => ({ listeners, isHere: host === report.host })));
    // The message to drain may have been lost; the row still says so.
    if (cluster.drainAsked && !node.report().draining) node.drain();
  };

  let announced: Promise<void> = Promise.resolve();
  /** One after the other: a beat that waited for the database would overwrite a newer state with the one that it read before. */
  const announce = (): Promise<void> => {
    announced = announced.then(writeAndRead, writeAndRead);
    return announced;
  };

  /** A killed process of this machine could not delete its row, and other nodes would send agents to it until the row expires. */
  const removeDeadLocalNodes = async (): Promise<void> => {
    const mine = node.report();
    const neighbours = (await liveNodes(db, settings.expireSeconds)).filter(({ host, nodeId }) => host === mine.host && nodeId !== mine.nodeId);
    const alive = await Promise.all(neighbours.map(({ pid }) => lives(pid)));
    await deleteNodes(
      db,
      neighbours.flatMap(({ nodeId }, index) => (alive[index] === false ? [nodeId] : [])),
    );
  };

  const nodes = (): Promise<readonly NodeRow[]> => liveNodes(db, settings.expireSeconds);
  const view = createJobsView({ db, nodeId: () => node.report().nodeId, book: deps.book });
  const { flags, handlers: flagHandlers } = createFlags({ ...deps, hasTenant: async (tx, tenantId) => (await anyTenant.find(tx, { tenantId })) !== null });
  return {
    flags,
    stuck: async (limit) => [...(await view.stuck(limit)), ...(await findSilentNodes(db, settings.expireSeconds, limit))],
    handlers: implement(contract.admin, {
      ...createTenantHandlers(deps),
      ...createOverview({ ...deps, nodes }),
      ...flagHandlers,
      ...view.handlers,
      listNodes: async () => ({ items: (await nodes()).map(shown) }),
      drainNode: ({ fail, commit }, { nodeId }) =>
        commit(async (tx, afterwards) => {
          const row = await askToDrain(tx, nodeId, settings.expireSeconds);
          if (row === null) throw fail("NODE_NOT_FOUND", { nodeId });
          // If the message gets lost, the node finds the row with its next beat.
          afterwards(() => void bus.publish(channelOf(nodeId), { op: DRAIN }).catch(() => undefined));
          return shown(row);
        }),
    }),
    jobs: [
      { name: "nodes.beat", everyMs: settings.beatEveryMs, run: announce },
      view.job,
      { name: "nodes.forget", everyMs: 60_000, run: () => deleteDeadNodes(db, deps.clock.now()) },
    ],
    liveNodes: () => cluster.liveNodes,
    connections: () => cluster.connections,
    announce,
    open: async () => {
      stopListening = await bus.subscribe(channelOf(node.report().nodeId), ({ op }) => {
        if (op === DRAIN) node.drain();
      });
      await removeDeadLocalNodes();
      await announce();
    },
    close: async () => {
      await stopListening?.();
      isClosed = true;
      // A beat under way would write the row again.
      await announced.catch(() => undefined);
      await deleteNode(db, node.report());
    },
  };
};
