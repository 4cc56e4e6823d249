// Tells other nodes that something of a tenant has changed: which tenant, never what. A node that receives the hint reads the database; it also
// reads it now and then by itself, because a hint may be lost. However often a tenant changes, it is named once per tick.
import { chunk, IDS_PER_MESSAGE } from "../../core/rows/chunk.ts";
import type { Bus } from "./bus.ts";

export interface ChangeNotifier {
  changed(tenantId: string): void;
  /** Receives what changed on other nodes. The listener must not throw. */
  listen(listener: (tenantIds: readonly string[]) => void): void;
  open(): Promise<void>;
  close(): Promise<void>;
}

export interface ChangeNotifierDeps {
  readonly bus: Pick<Bus, "publish" | "subscribe">;
  readonly nodeId: string;
  readonly onError: (error: unknown) => void;
  readonly tickMs?: number;
}

const CHANNEL = "tenants";
const TICK_MS = 20;
/** The rest waits for the next tick. */
const MESSAGES_PER_TICK = 20;

export const createChangeNotifier = ({ bus, nodeId, onError, tickMs = TICK_MS }: ChangeNotifierDeps): ChangeNotifier => {
  const pending = new Set<string>();
  const listeners: ((tenantIds: readonly string[]) => void)[] = [];
  let timer: NodeJS.Timeout | null = null;
  let unsubscribe: (() => Promise<void>) | null = null;

  const publish = (): void => {
    timer = null;
    const ids = [...pending].slice(0, IDS_PER_MESSAGE * MESSAGES_PER_TICK);
    for (const id of ids) pending.delete(id);
    for (const some of chunk(ids, IDS_PER_MESSAGE)) void bus.publish(CHANNEL, { nodeId, ids: some.join(" ") }).catch(onError);
    if (pending.size > 0) schedule();
  };
  const schedule = (): void => {
    timer ??= setTimeout(publish, tickMs).unref();
  };

  return {
    changed: (tenantId) => {
      pending.add(tenantId);
      schedule();
    },
    listen: (listener) => void listeners.push(listener),
    open: async () => {
      unsubscribe = await bus.subscribe(CHANNEL, ({ nodeId: from, ids }) => {
        if (from === nodeId || typeof ids !== "string") return;
        for (const listener of listeners) listener(ids.split(" "));
      });
    },
    close: async () => {
      if (timer !== null) clearTimeout(timer);
      await unsubscribe?.();
    },
  };
};
