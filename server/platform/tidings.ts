// Tells other nodes that something of a tenant has changed: which tenant, never what. Whoever hears it looks into the database,
// and looks there by itself now and then, since a hint may be lost. However much happens, a tenant is named once a moment.
import { chunk, IDS_PER_MESSAGE } from "../core/chunk.ts";
import type { Bus } from "./bus.ts";

export interface Tidings {
  tell(tenantId: string): void;
  /** Hears of what happened on other nodes. The listener must not throw. */
  listen(hear: (tenantIds: readonly string[]) => void): void;
  open(): Promise<void>;
  close(): Promise<void>;
}

export interface TidingsDeps {
  readonly bus: Pick<Bus, "publish" | "subscribe">;
  readonly nodeId: string;
  readonly onError: (error: unknown) => void;
  readonly tickMs?: number;
}

const CHANNEL = "tenants";
const TICK_MS = 20;
/** Those beyond wait for the next tick. */
const MESSAGES_PER_TICK = 20;

export const createTidings = ({ bus, nodeId, onError, tickMs = TICK_MS }: TidingsDeps): Tidings => {
  const fresh = new Set<string>();
  const listeners: ((tenantIds: readonly string[]) => void)[] = [];
  let timer: NodeJS.Timeout | null = null;
  let stop: (() => Promise<void>) | null = null;

  const say = (): void => {
    timer = null;
    const ids = [...fresh].slice(0, IDS_PER_MESSAGE * MESSAGES_PER_TICK);
    for (const id of ids) fresh.delete(id);
    for (const some of chunk(ids, IDS_PER_MESSAGE)) void bus.publish(CHANNEL, { nodeId, ids: some.join(" ") }).catch(onError);
    if (fresh.size > 0) wake();
  };
  const wake = (): void => {
    timer ??= setTimeout(say, tickMs).unref();
  };

  return {
    tell: (tenantId) => {
      fresh.add(tenantId);
      wake();
    },
    listen: (hear) => void listeners.push(hear),
    open: async () => {
      stop = await bus.subscribe(CHANNEL, ({ nodeId: from, ids }) => {
        if (from === nodeId || typeof ids !== "string") return;
        for (const hear of listeners) hear(ids.split(" "));
      });
    },
    close: async () => {
      if (timer !== null) clearTimeout(timer);
      await stop?.();
    },
  };
};
