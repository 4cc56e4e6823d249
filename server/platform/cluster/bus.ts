// The bus: cross-node pub/sub for hints. A message may be lost, doubled or late, so every subscriber also sweeps the database.
// Two implementations keep the same promises (test/conformance): inside one process (bus-memory.ts) and over Redis (bus-redis.ts).

import type { BusMessage, PubSub } from "../../core/ports/pub-sub.ts";

export interface Bus extends PubSub {
  /** Why messages get lost; null while they do not. */
  degradation(): BusDegradation | null;
  /** Runs the hook once messages arrive again after some may have been lost. */
  onResync(hook: () => void): void;
  readonly stats: Readonly<BusStats>;
  close(): Promise<void>;
}

/** `away`: Redis does not answer. `deaf`: it answers, but its subscription delivers nothing. `refuses writes`: it is a replica, or full. */
export type BusDegradation = "away" | "deaf" | "refuses writes";

export interface BusStats {
  /** Messages that could not be sent. */
  lost: number;
  /** Probes to this node's own channel that did not come back in time. */
  probeMisses: number;
  /** Subscriptions replaced because they were deaf. */
  renewals: number;
}

export const newBusStats = (): BusStats => ({ lost: 0, probeMisses: 0, renewals: 0 });

const MAX_BYTES = 1_024;

export const encodeMessage = (message: BusMessage, maxBytes = MAX_BYTES): string => {
  const text = JSON.stringify(message);
  if (Buffer.byteLength(text) > maxBytes) throw new Error(`a bus message may not exceed ${maxBytes} bytes`);
  return text;
};
