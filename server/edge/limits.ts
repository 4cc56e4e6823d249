// The limits of the edge, each with its unit.
export const EDGE_LIMITS = {
  /** The size of all headers of a request together. */
  headerBytes: 32_768,
  /** The time from the connection, or from the end of the former answer, to the whole head of a request. */
  headMs: 15_000,
  /** The pause between two requests on one connection. */
  keepAliveMs: 60_000,
  /** Visitors' connections, all together. */
  connections: 10_000,
  /** Open requests of one connection of HTTP/2. */
  streams: 128,
  /** How long a shutdown waits for answers under way. */
  drainMs: 10_000,
} as const;
export type EdgeLimits = { readonly [Name in keyof typeof EDGE_LIMITS]: number };
