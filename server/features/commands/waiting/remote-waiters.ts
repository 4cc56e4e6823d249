// For calls that wait on one node for a command whose device another node holds: the waiting node asks that node, which notifies it when the command ends.
// Either message may be lost; waiters.ts then finds the end in the database.
import { chunk, IDS_PER_MESSAGE } from "../../../core/rows/chunk.ts";
import { createBoundedCache } from "../../../core/structures/bounded-cache.ts";
import type { Bus } from "../../../platform/cluster/bus.ts";

export interface RemoteWaiters {
  /** Asks the node that holds the device for a message when the command ends. */
  ask(nodeId: string, commandId: string): void;
  /** Notifies the nodes that asked for these commands. */
  notify(ended: readonly { readonly commandId: string }[]): void;
  open(): Promise<void>;
  close(): Promise<void>;
}

export interface RemoteWaitersDeps {
  readonly bus: Pick<Bus, "publish" | "subscribe">;
  readonly nodeId: string;
  /** The bus channel of one node. */
  readonly channelOf: (nodeId: string) => string;
  /** Called when commands have ended on another node. */
  readonly onEnded: (commandIds: readonly string[]) => void;
  readonly onError: (error: unknown) => void;
}

const OPS = ["await", "ended"] as const;
type Op = (typeof OPS)[number];

/** Commands that other nodes asked for; calls beyond this number learn of the end from the database. */
const MAX_ASKED = 20_000;
/** Longer than any call waits. */
const ASKED_MS = 60_000;

export const createRemoteWaiters = ({ bus, nodeId, channelOf, onEnded, onError }: RemoteWaitersDeps): RemoteWaiters => {
  /** The asking node, by command. */
  const asked = createBoundedCache<string>(MAX_ASKED, { ttl: ASKED_MS });
  /** Collects the messages of one turn of the event loop by node and sends them together. */
  const waiting: Record<Op, Map<string, string[]>> = { await: new Map(), ended: new Map() };
  let scheduled = false;
  let stop: (() => Promise<void>) | null = null;

  const sendAll = (): void => {
    scheduled = false;
    for (const op of OPS) {
      const byNode = [...waiting[op]];
      waiting[op].clear();
      for (const [to, ids] of byNode)
        for (const some of chunk(ids, IDS_PER_MESSAGE)) void bus.publish(channelOf(to), { op, from: nodeId, commandIds: some.join(" ") }).catch(onError);
    }
  };
  const send = (op: Op, to: string, commandId: string): void => {
    const ids = waiting[op].get(to);
    if (ids === undefined) waiting[op].set(to, [commandId]);
    else ids.push(commandId);
    if (!scheduled) setImmediate(sendAll);
    scheduled = true;
  };

  return {
    ask: (to, commandId) => {
      if (to !== nodeId) send("await", to, commandId);
    },
    notify: (commands) => {
      if (asked.size === 0) return;
      for (const { commandId } of commands) {
        const asker = asked.get(commandId);
        if (asker === undefined) continue;
        asked.delete(commandId);
        send("ended", asker, commandId);
      }
    },
    open: async () => {
      stop = await bus.subscribe(channelOf(nodeId), ({ op, from, commandIds }) => {
        if (typeof from !== "string" || typeof commandIds !== "string") return;
        const ids = commandIds.split(" ");
        if (op === "await") for (const id of ids) asked.set(id, from);
        if (op === "ended") onEnded(ids);
      });
    },
    close: async () => {
      await stop?.();
    },
  };
};
