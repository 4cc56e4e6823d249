// Used signatures: recent ones in memory and, with several nodes, in Redis; those of changes also in the database, where they survive a restart.
import { createHash } from "node:crypto";
import type { SqlTx } from "../core/events.ts";
import { createRecentSet } from "../core/recent-set.ts";
import type { SignatureMemory } from "../core/signature-memory.ts";
import { statement } from "../core/statements.ts";
import type { Job } from "./jobs.ts";
import type { Redis } from "./redis.ts";
import { signatureKey } from "./redis-keys.ts";

// Twice the clock tolerance and a little more: a signature from the future stays good that long.
const REMEMBERED_SECONDS = 660;
const REMEMBERED_MS = REMEMBERED_SECONDS * 1_000;
const MAX_SIGNATURES = 200_000;
const SWEEP_ROWS = 1_000;

export interface CountedSignatureMemory extends SignatureMemory {
  /** Bindings that only this node knows, because Redis was away. */
  readonly degraded: number;
}

/**
 * 128 bits of the use's digest, one byte per character: a seventh of the size of id and signature. Any two of 400,000 collide once in 10^27;
 * the gateway would refuse the second, and its agent signs again with the next millisecond.
 */
const shortKey = (digest: Buffer): string => digest.toString("latin1", 0, 16);

/** With Redis all nodes remember together. While it is away each remembers for itself: a changing call is still refused by its row, a socket still has to prove its nonce. */
export const createSignatureMemory = (redis: Redis | null = null): CountedSignatureMemory => {
  const seen = createRecentSet<string>({ keep: MAX_SIGNATURES, keepMs: REMEMBERED_MS });
  let degraded = 0;

  const askAll = async (digest: Buffer, place: string): Promise<string | null> => {
    if (redis === null) return null;
    try {
      const first = await redis.command("SET", signatureKey(digest), place, "NX", "GET", "PX", String(REMEMBERED_MS));
      return typeof first === "string" ? first : place;
    } catch {
      degraded += 1;
      return null;
    }
  };

  return {
    bind: async (use, place, kept = place) => {
      const digest = createHash("sha256").update(use).digest();
      const key = shortKey(digest);
      const known = seen.get(key) ?? (await askAll(digest, place));
      // Two arrive at once and Redis fails for one of them: the first to arrive here counts.
      const first = seen.get(key) ?? known ?? place;
      seen.set(key, first === place ? kept : first);
      return first;
    },
    claim: (use, place, kept) => {
      const digest = createHash("sha256").update(use).digest();
      const key = shortKey(digest);
      const first = seen.get(key);
      if (first !== undefined) return { first, shared: null };
      seen.set(key, kept);
      return { first: place, shared: redis === null ? null : askAll(digest, place).then((found) => found ?? place) };
    },
    get coversMs() {
      return redis === null ? seen.coversMs() : Infinity;
    },
    get degraded() {
      return degraded;
    },
  };
};

const INSERT_USED = statement<{ readonly one: number }>(
  "signatures.insertUsed",
  `insert into used_signatures (agent_id, signature, route, expires_at) values ($1, decode($2, 'hex'), $3, now() + make_interval(secs => $4))
   on conflict do nothing returning 1 as one`,
);
const DELETE_EXPIRED = statement<{ readonly one: number }>(
  "signatures.deleteExpired",
  "delete from used_signatures where ctid in (select ctid from used_signatures where expires_at < now() limit $1) returning 1 as one",
);

export const createSignatures = (db: Pick<SqlTx, "query">, memory: SignatureMemory) => ({
  memory,
  insertUsed: async ({ agentId, signature, place }: { readonly agentId: string; readonly signature: string; readonly place: string }): Promise<boolean> => {
    const inserted = await db.query(INSERT_USED, [agentId, signature, place, REMEMBERED_SECONDS]);
    return inserted.length === 1;
  },
  jobs: [
    {
      name: "signatures.forget",
      everyMs: 60_000,
      run: async () => (await db.query(DELETE_EXPIRED, [SWEEP_ROWS])).length === SWEEP_ROWS,
    },
  ] satisfies readonly Job[],
});
