// Operators of the installation. Cluster membership: every node writes its own row every few seconds, and a row that is not renewed is a dead node.

import { contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { implement } from "../../core/feature.ts";
import type { Bus } from "../../platform/bus.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature } from "../kit.ts";
import { askToDrain, beat, type ClusterSnapshot, deleteDeadNodes, deleteNode, deleteNodes, liveNodes, type NodeReport, type NodeRow } from "./store.ts";

export interface AdminSettings {
  readonly beatEveryMs: number;
  /** A node that was silent for so long counts as gone. */
  readonly expireSeconds: number;
}

/** This process, as it is at the moment of asking. */
export interface ThisNode {
  report(): NodeReport;
  drain(): void;
}

export interface AdminDeps {
  readonly db: Tx;
  readonly bus: Pick<Bus, "publish" | "subscribe">;
  readonly node: ThisNode;
  /** Where a node hears what is meant for it alone. */
  readonly channelOf: (nodeId: string) => string;
  /** Whether a process of this machine lives. */
  readonly lives: (pid: number) => Promise<boolean>;
  readonly settings?: Partial<AdminSettings> | undefined;
}

export interface AdminFeature extends Feature<typeof contract.admin> {
  readonly jobs: readonly Job[];
  /** As of the last beat. Those that drain do not count. */
  liveNodes(): number;
  /** Sockets on all nodes, as of the last beat. */
  connections(): number;
  /** Public addresses of the nodes that serve this database now, each once. */
  addresses(): Promise<readonly string[]>;
  /** Says at once how this node is, such as that it drains; and learns of the others. */
  announce(): Promise<void>;
  /** Says for the first time that this node lives, and listens for the order to drain. */
  open(): Promise<void>;
  close(): Promise<void>;
}

const DEFAULTS: AdminSettings = { beatEveryMs: 5_000, expireSeconds: 15 };
const DRAIN = "drain";

const shown = ({ startedAt, seenAt, ...row }: NodeRow) => ({ ...row, startedAt: startedAt.toISOString(), seenAt: seenAt.toISOString() });

export const createAdmin = ({ db, bus, node, channelOf, lives, settings: given }: AdminDeps): AdminFeature => {
  const settings = { ...DEFAULTS, ...given };
  let cluster: ClusterSnapshot = { drainAsked: false, liveNodes: 1, connections: 0 };
  let stopListening: (() => Promise<void>) | null = null;

  const announce = async (): Promise<void> => {
    cluster = await beat(db, node.report(), settings.expireSeconds);
    // The hint may have been lost; the row was not.
    if (cluster.drainAsked && !node.report().draining) node.drain();
  };

  /** A killed process of this machine could not delete its row; until the row expires, agents would be sent to it. */
  const removeDeadLocalNodes = async (): Promise<void> => {
    const mine = node.report();
    const neighbours = (await liveNodes(db, settings.expireSeconds)).filter(({ host, nodeId }) => host === mine.host && nodeId !== mine.nodeId);
    const alive = await Promise.all(neighbours.map(({ pid }) => lives(pid)));
    await deleteNodes(
      db,
      neighbours.flatMap(({ nodeId }, index) => (alive[index] === false ? [nodeId] : [])),
    );
  };

  return {
    handlers: implement(contract.admin, {
      listNodes: async () => ({ items: (await liveNodes(db, settings.expireSeconds)).map(shown) }),
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
      { name: "nodes.forget", everyMs: 60_000, run: () => deleteDeadNodes(db) },
    ],
    liveNodes: () => cluster.liveNodes,
    connections: () => cluster.connections,
    addresses: async () => [...new Set((await liveNodes(db, settings.expireSeconds)).filter(({ draining }) => !draining).map(({ address }) => address))],
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
      await deleteNode(db, node.report());
    },
  };
};
