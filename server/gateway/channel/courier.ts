// Carries hints to the node that holds a device's socket. A message may be lost: sweeps, the next hello and the next flush make up for it.

import type { Close } from "../../../protocol/index.ts";
import { chunk, IDS_PER_MESSAGE } from "../../core/chunk.ts";
import type { CancelNotice, Courier } from "../../core/delivery.ts";
import type { SessionOwnerDirectory } from "../../core/session-owner-directory.ts";
import type { Evictor } from "../../core/sessions.ts";

export type ChannelMessage = Readonly<Record<string, string | number | boolean | null>>;

/** The parts of the bus and its directory that the channel needs. */
export interface ChannelBus {
  /** False when surely nobody listens there. */
  publish(channel: string, message: ChannelMessage): Promise<boolean>;
  subscribe(channel: string, handler: (message: ChannelMessage) => void): Promise<() => Promise<void>>;
  /** False while hints get lost. */
  healthy(): boolean;
}

export const nodeChannel = (nodeId: string): string => `node:${nodeId}`;
/** Every node listens here too, for what concerns a socket whose owner is not known. */
export const ALL_NODES = "nodes";
const MAX_REASON = 120;

const WAKES = ["nudge", "freed"] as const;
type Wake = (typeof WAKES)[number];

export interface CourierDeps {
  readonly bus: ChannelBus;
  readonly directory: Pick<SessionOwnerDirectory, "owner" | "disown">;
  /** A hint that could not leave; told, not repeated. */
  readonly onError: (error: unknown) => void;
  /** Where hints about so many devices went. */
  readonly onNudge?: (result: NudgeResult, devices: number) => void;
}

/** This node's own socket, another node, or nobody who is known to hold one. */
export type NudgeResult = "local" | "sent" | "unowned" | "failed";

/** The sockets of this node: what is for them needs no bus, and works without one. */
export interface LocalSockets {
  holds(deviceId: string): boolean;
  receive(message: ChannelMessage): void;
}

export interface AgentCourier extends Courier, Evictor {
  attach(local: LocalSockets): void;
  /** To a node that is known by name, because the database has just said so. */
  evictAt(nodeId: string, deviceId: string, order: Eviction): void;
}

interface Eviction {
  readonly close: Close;
  readonly epochBelow?: number;
  /** Instead of the close's usual wait. */
  readonly waitSeconds?: number | undefined;
}

const eviction = (deviceId: string, { close, epochBelow, waitSeconds }: Eviction): ChannelMessage => ({
  op: "evict",
  deviceId,
  code: close.code,
  token: close.token,
  epochBelow: epochBelow ?? null,
  waitSeconds: waitSeconds ?? null,
});

const nobody = (): null => null;

export const createCourier = ({ bus, directory, onError, onNudge = () => undefined }: CourierDeps): AgentCourier => {
  let local: LocalSockets = { holds: () => false, receive: () => undefined };
  /** A node that does not listen is gone: the next hint for its devices need not ask for it again. */
  const post = async (nodeId: string, deviceIds: readonly string[], message: ChannelMessage): Promise<void> => {
    if (!(await bus.publish(nodeChannel(nodeId), message))) await Promise.all(deviceIds.map((deviceId) => directory.disown(deviceId, nodeId)));
  };

  const failed = (error: unknown): void => {
    onNudge("failed", 1);
    onError(error);
  };

  const sendTo = async (op: Wake, devices: ReadonlyMap<string, string | null>): Promise<void> => {
    const byNode = new Map<string, string[]>();
    const owners = await Promise.all([...devices].map(async ([deviceId, nodeId]) => ({ deviceId, nodeId: nodeId ?? (await directory.owner(deviceId)) })));
    for (const { deviceId, nodeId } of owners) {
      onNudge(nodeId === null ? "unowned" : "sent", 1);
      if (nodeId !== null) byNode.set(nodeId, [...(byNode.get(nodeId) ?? []), deviceId]);
    }
    const posts: Promise<void>[] = [];
    for (const [nodeId, ids] of byNode) for (const some of chunk(ids, IDS_PER_MESSAGE)) posts.push(post(nodeId, some, { op, deviceIds: some.join(",") }));
    await Promise.all(posts);
  };

  /** Of this turn of the event loop: they go together, one message for each node. */
  const waiting: Record<Wake, Map<string, string | null>> = { nudge: new Map(), freed: new Map() };
  let scheduled = false;
  const sendAll = (): void => {
    scheduled = false;
    for (const op of WAKES) {
      const devices = waiting[op];
      if (devices.size === 0) continue;
      waiting[op] = new Map();
      void sendTo(op, devices).catch(failed);
    }
  };
  const wake = (op: Wake, deviceIds: readonly string[], nodeOf: (deviceId: string) => string | null = nobody): void => {
    for (const deviceId of deviceIds) {
      if (local.holds(deviceId)) {
        local.receive({ op, deviceIds: deviceId });
        onNudge("local", 1);
        continue;
      }
      waiting[op].set(deviceId, nodeOf(deviceId));
      if (!scheduled) setImmediate(sendAll);
      scheduled = true;
    }
  };

  const toOwner = async (deviceId: string, message: ChannelMessage): Promise<void> => {
    if (local.holds(deviceId)) return local.receive(message);
    const nodeId = await directory.owner(deviceId);
    if (nodeId !== null) await post(nodeId, [deviceId], message);
  };

  return {
    attach: (sockets) => {
      local = sockets;
    },
    nudge: (deviceIds, nodeOf) => wake("nudge", deviceIds, nodeOf),
    freed: (deviceIds) => wake("freed", deviceIds),
    cancel: (deviceId, { commandId, deadline, reason }: CancelNotice) =>
      void toOwner(deviceId, { op: "cancel", deviceId, commandId, deadline, reason: reason?.slice(0, MAX_REASON) ?? null }).catch(onError),
    // The directory may lag behind a socket that has just come; an eviction is rare enough to go to everyone.
    evict: (deviceId, order) => {
      const message = eviction(deviceId, order);
      local.receive(message);
      void bus.publish(ALL_NODES, message).catch(onError);
    },
    evictAt: (nodeId, deviceId, order) => void post(nodeId, [deviceId], eviction(deviceId, order)).catch(onError),
  };
};
