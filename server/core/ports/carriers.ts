// Carriers: connections of agents and connectors to the edge, in which a feature opens a connection to a service of the device.
import type { Duplex } from "node:stream";

/** The device whose agent opened it, or the tunnel whose connector did. */
export type CarrierKey = string;

/** `offline`: no carrier; `full`: too many connections or bytes at once; the others are the agent's words. */
export type DialFailureReason = "offline" | "full" | "unknown" | "not_allowed" | "refused" | "timeout" | "unreachable";

export class DialFailure extends Error {
  override readonly name = "DialFailure";
  readonly reason: DialFailureReason;
  constructor(reason: DialFailureReason) {
    super(`no connection to the service: ${reason}`);
    this.reason = reason;
  }
}

export interface CarrierFacts {
  readonly carrierId: string;
  readonly key: CarrierKey;
  readonly tenantId: string;
  readonly kind: "raw" | "websocket";
  readonly clientVersion: string | null;
  readonly openedAt: Date;
}

export interface DialOptions {
  /** Each direction ends by itself, as TCP's do. Default: the end of one is the end of both. */
  readonly halfOpen?: boolean;
}

export interface CarrierListener {
  opened(facts: CarrierFacts): void;
  closed(facts: CarrierFacts): void;
}

export interface Carriers {
  /**
   * A connection to what the authority names on the device: a tunnel's id, or the `host:port` of a route. On this node's carrier, else through the node
   * that holds it. Rejects with `DialFailure`. Destroying the stream ends the connection at once.
   */
  dial(key: CarrierKey, authority: string, options?: DialOptions): Promise<Duplex>;
  /** On this node only. */
  has(key: CarrierKey): boolean;
  list(key: CarrierKey): readonly CarrierFacts[];
  all(): readonly CarrierFacts[];
  /** Ends what is open for this key on this node, for example because its token was rotated. */
  end(key: CarrierKey): void;
  listen(listener: CarrierListener): void;
  /** Open connections to services, and carriers. */
  figures(): { readonly carriers: number; readonly streams: number };
}
