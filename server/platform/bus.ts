// Hints between nodes. A message may be lost, doubled or late: whoever relies on one also sweeps the database.
// Two implementations keep the same promises (test/conformance): within this process (bus-memory.ts) and over Redis (bus-redis.ts).

/** At most 1 KiB as JSON: ids and words, never payloads or secrets. */
export type BusMessage = Readonly<Record<string, string | number | boolean | null>>;

export interface Bus {
  /** Resolves once handed over or lost, not once received: false when surely nobody listens there. Rejects only a message that is too large. */
  publish(channel: string, message: BusMessage): Promise<boolean>;
  /** Resolves when the subscription holds, or is sure to be made as soon as that is possible. The handler must not throw. Returns how to stop. */
  subscribe(channel: string, handler: (message: BusMessage) => void): Promise<() => Promise<void>>;
  /** False while hints get lost: whoever relies on them looks more often. */
  healthy(): boolean;
  /** What keeps hints from arriving; null when nothing does. */
  ailment(): Ailment | null;
  /** Called when hints may have been lost and come again from now on. */
  onResync(hook: () => void): void;
  readonly stats: Readonly<BusStats>;
  close(): Promise<void>;
}

/** `away`: Redis does not answer. `deaf`: it answers, but what others say does not arrive here. `refuses writes`: it is a replica, or full. */
export type Ailment = "away" | "deaf" | "refuses writes";

export interface BusStats {
  /** Messages that could not be handed over. */
  lost: number;
  /** Probes of our own that did not come back in time. */
  probeMisses: number;
  /** Subscriptions made anew because they were deaf. */
  renewals: number;
}

export const newBusStats = (): BusStats => ({ lost: 0, probeMisses: 0, renewals: 0 });

const MAX_BYTES = 1_024;

export const encodeMessage = (message: BusMessage): string => {
  const text = JSON.stringify(message);
  if (Buffer.byteLength(text) > MAX_BYTES) throw new Error(`a message on the bus holds ${MAX_BYTES} bytes`);
  return text;
};
