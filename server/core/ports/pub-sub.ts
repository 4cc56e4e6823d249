// Publish and subscribe between nodes, as the gateway and the features use it; platform/cluster/bus.ts implements it.

/** At most 1 KiB as JSON: ids and short words, never payloads or secrets. Only lines of logs that somebody follows may be larger. */
export type BusMessage = Readonly<Record<string, string | number | boolean | null>>;

export interface PubSub {
  /** Resolves once the message is sent or lost, not once it is received; false when certainly nobody listens. Rejects only a message that is too large. */
  publish(channel: string, message: BusMessage, maxBytes?: number): Promise<boolean>;
  /** Resolves once subscribed; while Redis is away, once it is sure to follow. The handler must not throw. Returns a function that unsubscribes. */
  subscribe(channel: string, handler: (message: BusMessage) => void): Promise<() => Promise<void>>;
  /** False while messages get lost; subscribers sweep more often then. */
  healthy(): boolean;
}
