// Calls that wait on one node for the end of a command whose device another node holds: they ask that node, which tells them at once.
// Either message may be lost; looks into the database make up for it (waiters.ts).
import { LRUCache } from "lru-cache";
import { chunk, IDS_PER_MESSAGE } from "../../core/chunk.ts";
import type { Bus } from "../../platform/bus.ts";

export interface RemoteWaiters {
  /** Asks the node that holds the device to tell of the command's end. */
  ask(nodeId: string, commandId: string): void;
  /** Tells the nodes that asked for one of these that it has ended. */
  notify(ended: readonly { readonly commandId: string }[]): void;
  open(): Promise<void>;
  close(): Promise<void>;
}

export interface RemoteWaitersDeps {
  readonly bus: Pick<Bus, "publish" | "subscribe">;
  readonly nodeId: string;
  /** The bus channel of one node. */
  readonly channelOf: (nodeId: string) => string;
  /** Commands have ended on another node. */
  readonly onEnded: (commandIds: readonly string[]) => void;
  readonly onError: (error: unknown) => void;
}

const OPS = ["await", "ended"] as const;
type Op = (typeof OPS)[number];

/** Awaited commands that we remember for other nodes; calls beyond hear a little later. */
const MAX_ASKED = 20_000;
/** Longer than any call waits. */
const ASKED_MS = 60_000;

export const createRemoteWaiters = ({ bus, nodeId, channelOf, onEnded, onError }: RemoteWaitersDeps): RemoteWaiters => {
  /** Who asked, by command. */
  const asked = new LRUCache<string, string>({ max: MAX_ASKED, ttl: ASKED_MS });
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
        const who = asked.get(commandId);
        if (who === undefined) continue;
        asked.delete(commandId);
        send("ended", who, commandId);
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
