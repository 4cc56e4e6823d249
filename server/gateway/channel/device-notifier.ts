// The device notifier brings nudges, cancellations and evictions to the session of a device: by a function call on this node, over the bus to another.
// A message may be lost: the sweep, the next hello and the next flush of presence make up for it.
import { CLOSE, type Close, type DeliveredCommand } from "../../../protocol/index.ts";
import type { Evictor, SessionOwners } from "../../core/ports/agent-sessions.ts";
import type { CancelNotice, DeviceNotifier } from "../../core/ports/delivery.ts";
import type { BusMessage, PubSub } from "../../core/ports/pub-sub.ts";
import { chunk, IDS_PER_MESSAGE } from "../../core/rows/chunk.ts";

export const nodeChannel = (nodeId: string): string => `node:${nodeId}`;
/** Every node subscribes to this channel too, for messages about a socket whose node is unknown. */
export const ALL_NODES = "nodes";

const WAKES = ["nudge", "freed"] as const;
type Wake = (typeof WAKES)[number];

/** This node's own socket, another node, or no node that is known to hold one. */
export type NudgeResult = "local" | "sent" | "unowned" | "failed";

export interface Eviction {
  readonly close: Close;
  /** Spares a session with this epoch or a newer one. */
  readonly epochBelow?: number;
  /** Replaces the close's usual wait. */
  readonly waitSeconds?: number | undefined;
}

/** The sessions of this node. Each call that answers returns false when none of them belongs to the device. */
export interface LocalSessions {
  nudge(deviceId: string): boolean;
  freed(deviceId: string): boolean;
  takesNow(deviceId: string, epoch: number): boolean;
  pushNow(deviceId: string, command: DeliveredCommand): void;
  cancel(deviceId: string, order: CancelNotice): boolean;
  evict(deviceId: string, order: Eviction): boolean;
}

export interface ClusterNotifier extends DeviceNotifier, Evictor {
  /** Connects the sessions of this node, which open after the features that notify them. */
  attach(local: LocalSessions): void;
  /** To a node that the database has just named. */
  evictAt(nodeId: string, deviceId: string, order: Eviction): void;
  /** Carries out a message of another node; ignores what it does not know. */
  receive(message: BusMessage): void;
}

export interface DeviceNotifierDeps {
  readonly bus: PubSub;
  readonly owners: Pick<SessionOwners, "owner" | "disown">;
  /** Called for a message that could not be sent; nobody sends it again. */
  readonly onError: (error: unknown) => void;
  /** Counts notified devices by the path that their nudges took. */
  readonly onNudge?: (result: NudgeResult, devices: number) => void;
}

const MAX_REASON = 120;
const NO_SESSIONS: LocalSessions = {
  nudge: () => false,
  freed: () => false,
  takesNow: () => false,
  pushNow: () => undefined,
  cancel: () => false,
  evict: () => false,
};

const evictionMessage = (deviceId: string, { close, epochBelow, waitSeconds }: Eviction): BusMessage => ({
  op: "evict",
  deviceId,
  code: close.code,
  token: close.token,
  epochBelow: epochBelow ?? null,
  waitSeconds: waitSeconds ?? null,
});

const toEviction = ({ code, epochBelow, waitSeconds }: BusMessage): Eviction | null => {
  const close = Object.values(CLOSE).find((known) => known.code === code);
  if (close === undefined) return null;
  return { close, ...(typeof epochBelow === "number" ? { epochBelow } : {}), ...(typeof waitSeconds === "number" ? { waitSeconds } : {}) };
};

const toCancelNotice = ({ commandId, deadline, reason }: BusMessage): CancelNotice | null =>
  typeof commandId === "string" && typeof deadline === "string" ? { commandId, deadline, ...(typeof reason === "string" ? { reason } : {}) } : null;

/** Runs what another node asks of the sessions here. */
const carryOut = (local: LocalSessions, message: BusMessage): void => {
  const { op, deviceId, deviceIds } = message;
  if ((op === "nudge" || op === "freed") && typeof deviceIds === "string") for (const each of deviceIds.split(",")) local[op](each);
  if (typeof deviceId !== "string") return;
  const eviction = op === "evict" ? toEviction(message) : null;
  if (eviction !== null) local.evict(deviceId, eviction);
  const notice = op === "cancel" ? toCancelNotice(message) : null;
  if (notice !== null) local.cancel(deviceId, notice);
};

const unknownNode = (): null => null;

export const createDeviceNotifier = ({ bus, owners, onError, onNudge = () => undefined }: DeviceNotifierDeps): ClusterNotifier => {
  let local = NO_SESSIONS;

  /** If nobody listens, the node is gone: forget it as the owner, so the next message does not go there again. */
  const post = async (nodeId: string, deviceIds: readonly string[], message: BusMessage): Promise<void> => {
    if (!(await bus.publish(nodeChannel(nodeId), message))) await Promise.all(deviceIds.map((deviceId) => owners.disown(deviceId, nodeId)));
  };

  const sendTo = async (op: Wake, devices: ReadonlyMap<string, string | null>): Promise<void> => {
    const byNode = new Map<string, string[]>();
    const found = await Promise.all([...devices].map(async ([deviceId, nodeId]) => ({ deviceId, nodeId: nodeId ?? (await owners.owner(deviceId)) })));
    for (const { deviceId, nodeId } of found) {
      onNudge(nodeId === null ? "unowned" : "sent", 1);
      if (nodeId !== null) byNode.set(nodeId, [...(byNode.get(nodeId) ?? []), deviceId]);
    }
    const posts: Promise<void>[] = [];
    for (const [nodeId, ids] of byNode) for (const some of chunk(ids, IDS_PER_MESSAGE)) posts.push(post(nodeId, some, { op, deviceIds: some.join(",") }));
    await Promise.all(posts);
  };

  /** Devices of other nodes, collected during one turn of the event loop and sent as one message per node. */
  const waiting: Record<Wake, Map<string, string | null>> = { nudge: new Map(), freed: new Map() };
  let scheduled = false;
  const failed = (error: unknown): void => {
    onNudge("failed", 1);
    onError(error);
  };
  const sendWaiting = (): void => {
    scheduled = false;
    for (const op of WAKES) {
      const devices = waiting[op];
      if (devices.size === 0) continue;
      waiting[op] = new Map();
      void sendTo(op, devices).catch(failed);
    }
  };
  const sendLater = (op: Wake, deviceId: string, nodeId: string | null): void => {
    waiting[op].set(deviceId, nodeId);
    if (!scheduled) setImmediate(sendWaiting);
    scheduled = true;
  };

  const cancelElsewhere = async (deviceId: string, { commandId, deadline, reason }: CancelNotice): Promise<void> => {
    const message: BusMessage = { op: "cancel", deviceId, commandId, deadline, reason: reason ?? null };
    const nodeId = await owners.owner(deviceId);
    if (nodeId === null) await bus.publish(ALL_NODES, message);
    else await post(nodeId, [deviceId], message);
  };

  return {
    attach: (sessions) => {
      local = sessions;
    },
    nudge: (deviceIds, nodeOf = unknownNode) => {
      for (const deviceId of deviceIds)
        if (local.nudge(deviceId)) onNudge("local", 1);
        else sendLater("nudge", deviceId, nodeOf(deviceId));
    },
    freed: (deviceIds) => {
      for (const deviceId of deviceIds)
        if (local.freed(deviceId)) onNudge("local", 1);
        else sendLater("freed", deviceId, null);
    },
    takesNow: (deviceId, epoch) => local.takesNow(deviceId, epoch),
    pushNow: (deviceId, command) => {
      onNudge("local", 1);
      local.pushNow(deviceId, command);
    },
    cancel: (deviceId, order) => {
      const notice = order.reason === undefined ? order : { ...order, reason: order.reason.slice(0, MAX_REASON) };
      if (!local.cancel(deviceId, notice)) void cancelElsewhere(deviceId, notice).catch(onError);
    },
    // The owner's entry may lag behind a socket that has just opened; an eviction, like a cancel without an owner, is rare enough to go to every node.
    evict: (deviceId, order) => {
      local.evict(deviceId, order);
      void bus.publish(ALL_NODES, evictionMessage(deviceId, order)).catch(onError);
    },
    evictAt: (nodeId, deviceId, order) => void post(nodeId, [deviceId], evictionMessage(deviceId, order)).catch(onError),
    receive: (message) => carryOut(local, message),
  };
};
