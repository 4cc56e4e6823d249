// Bus and session owners of a single node: the same promises as over Redis, kept inside the process.

import type { SessionOwners } from "../../core/ports/agent-sessions.ts";
import type { BusMessage } from "../../core/ports/pub-sub.ts";
import { type Bus, encodeMessage, newBusStats } from "./bus.ts";

export const openMemoryBus = (): Bus => {
  const handlers = new Map<string, Set<(message: BusMessage) => void>>();
  return {
    // Delivers a copy in a later turn, like a network, so no subscriber can depend on more.
    publish: async (channel, message, maxBytes) => {
      const text = encodeMessage(message, maxBytes);
      if (!handlers.has(channel)) return false;
      setImmediate(() => {
        for (const handle of handlers.get(channel) ?? []) handle(JSON.parse(text) as BusMessage);
      });
      return true;
    },
    subscribe: async (channel, handler) => {
      const set = handlers.get(channel) ?? new Set();
      handlers.set(channel, set.add(handler));
      return async () => {
        set.delete(handler);
        if (set.size === 0) handlers.delete(channel);
      };
    },
    healthy: () => true,
    degradation: () => null,
    onResync: () => undefined,
    stats: newBusStats(),
    close: async () => handlers.clear(),
  };
};

export const openMemorySessionOwners = (): SessionOwners => {
  const entries = new Map<string, { readonly nodeId: string; readonly epoch: number }>();
  return {
    owner: async (deviceId) => entries.get(deviceId)?.nodeId ?? null,
    claim: async (deviceId, nodeId, epoch) => {
      if ((entries.get(deviceId)?.epoch ?? -1) <= epoch) entries.set(deviceId, { nodeId, epoch });
    },
    release: async (deviceId, epoch) => {
      if (entries.get(deviceId)?.epoch === epoch) entries.delete(deviceId);
    },
    disown: async (deviceId, nodeId) => {
      if (entries.get(deviceId)?.nodeId === nodeId) entries.delete(deviceId);
    },
  };
};
