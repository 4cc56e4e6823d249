// Reads the PostgreSQL protocol in the proxy and drops answers to COMMIT: the server has committed, and the client never learns it.
import type { ProxyOptions } from "../rig/proxy.ts";

/** A simple query, as node-postgres sends it. */
const COMMIT = Buffer.from("Q\0\0\0\x0bCOMMIT\0", "latin1");
/** The server is ready and outside of a transaction. */
const ENDED = Buffer.from("Z\0\0\0\x05I", "latin1");

/** Finds a pattern in a stream, also across chunks. */
const createFinder = (pattern: Buffer): ((chunk: Buffer) => boolean) => {
  let tail: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const seen = Buffer.concat([tail, chunk]);
    tail = seen.subarray(Math.max(0, seen.length - pattern.length + 1));
    return seen.includes(pattern);
  };
};

/** Calls `lose` at each COMMIT and, if it returns true, breaks the connection instead of the answer. */
export const losingCommits =
  (lose: () => boolean): NonNullable<ProxyOptions["filter"]> =>
  (cut) => {
    const asksToCommit = createFinder(COMMIT);
    const hasEnded = createFinder(ENDED);
    let losing = false;
    return (direction, chunk) => {
      if (direction === "up") {
        if (asksToCommit(chunk) && lose()) losing = true;
        return chunk;
      }
      const ended = hasEnded(chunk);
      if (!losing) return chunk;
      if (ended) cut();
      return Buffer.alloc(0);
    };
  };
