// The carrier: one connection of an agent to the edge, with HTTP/2 inside, in which the agent is the server. protocol/carrier.md explains it to people who
// write an agent in another language.

/** The word in `Upgrade`, and the subprotocol of a WebSocket. */
export const CARRIER_PROTOCOL = "mooring-tunnel.v1";
export const CARRIER_PATH = "/v1/agent/tunnel";
/** Where a consumer of mesh routes opens its carrier, in which the gateway is the server. */
export const MESH_PATH = "/v1/agent/mesh";
/** The authority of the one stream that carries orders about the others. */
export const CONTROL_AUTHORITY = "control";
/** In the answer to a CONNECT that the agent refuses. */
export const DIAL_REASON_HEADER = "mooring-reason";
/** Why an agent could not reach a service. */
export const DIAL_REASONS = ["unknown", "not_allowed", "refused", "timeout", "unreachable", "full"] as const;
export type DialReason = (typeof DIAL_REASONS)[number];

export const CARRIER_LIMITS = {
  streams: 128,
  /** The credit of one stream, and of all together: a stream that nobody reads must not hold up the others. */
  windowBytes: 1_048_576,
  sessionWindowBytes: 268_435_456,
  dialMs: 5_000,
  pingMs: 20_000,
  pongMs: 15_000,
  /** After GOAWAY the streams that are open may go on this long. */
  lingerMs: 60_000,
} as const;

/** A line on the control stream: the agent ends the stream's connection, then its side of the stream. */
export const abortLine = (streamId: number): string => `abort ${streamId}\n`;
export const readAbort = (line: string): number | null => {
  const id = /^abort (\d{1,10})$/.exec(line)?.[1];
  return id === undefined ? null : Number(id);
};
