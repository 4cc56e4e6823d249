// Connections of consumers of mesh routes, which their agents ask of the edge.
import type { Duplex } from "node:stream";

/** The device whose agent asks. */
export interface MeshOwner {
  readonly tenantId: string;
  readonly deviceId: string;
}

export interface MeshConnection {
  readonly stream: Duplex;
  /** Bytes that have passed, from the consumer and to it. */
  readonly passed: (bytesIn: number, bytesOut: number) => void;
}

/** To a route's id, or to `host:port` by the route that leads there. Rejects with `DialFailure`. */
export type ConnectMesh = (owner: MeshOwner, authority: string) => Promise<MeshConnection>;
