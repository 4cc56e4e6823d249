// Used signatures: recent ones in memory and, with several nodes, in Redis; those of changes also in the database, where they survive a restart.
import { createHash } from "node:crypto";
import type { SqlTx } from "../core/events.ts";
import type { SignatureMemory } from "../core/ports/signature-memory.ts";
import { deleteByTime, type ExpiryBatch, type ExpiryStep, inRounds, runExpiry } from "../core/rows/retention.ts";
import { statement } from "../core/statements.ts";
import { createRecentSet } from "../core/structures/recent-set.ts";
import { type Redis, script } from "./cluster/redis.ts";
import { signatureKey } from "./cluster/redis-keys.ts";
import { bySlot } from "./cluster/redis-slots.ts";
import { createBatch } from "./database/batch.ts";
import type { Job } from "./jobs.ts";

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

interface Use {
  readonly digest: Buffer;
  readonly place: string;
}

/** Stores the place of each use that has none, and returns the places of earlier uses; a place may be empty. */
const FIRST_USES = script(`
local found = {}
for at = 1, #KEYS do
  found[at] = redis.call('SET', KEYS[at], ARGV[at + 1], 'NX', 'GET', 'PX', ARGV[1])
end
return found`);

/** The uses of one turn of the event loop go together. A failed batch is not repeated: it would only add load to a Redis in trouble. */
const BOUNDS = { work: "agents", maxSize: 250, maxConcurrent: 4, maxWaiting: 50_000, neverSplit: true } as const;

/** With Redis all nodes remember together. While it is away each remembers for itself: a changing call is still refused by its row, a socket still has to prove its nonce. */
export const createSignatureMemory = (redis: Redis | null = null): CountedSignatureMemory => {
  const seen = createRecentSet<string>({ keep: MAX_SIGNATURES, keepMs: REMEMBERED_MS });
  let degraded = 0;

  const askShared = createBatch(async (asked: readonly Use[]): Promise<readonly (string | null)[]> => {
    if (redis === null) return asked.map(({ place }) => place);
    return bySlot({ redis, keyOf: ({ digest }) => signatureKey(digest) }, asked, async (some, keys) => {
      const found = await redis.run(FIRST_USES, keys, [REMEMBERED_MS, ...some.map(({ place }) => place)]);
      if (!Array.isArray(found)) throw new Error("Redis did not answer with a list");
      return some.map(({ place }, at) => (typeof found[at] === "string" ? found[at] : place));
    });
  }, BOUNDS);

  const askAll = async (digest: Buffer, place: string): Promise<string | null> => {
    if (redis === null) return null;
    const first = await askShared({ digest, place }).catch(() => null);
    if (first === null) degraded += 1;
    return first;
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
const DELETE_EXPIRED = statement<ExpiryStep>("signatures.deleteExpired", deleteByTime({ table: "used_signatures", time: "expires_at", before: "now()" }));
export const deleteExpiredSignatures = (sql: Pick<SqlTx, "query">, batch: ExpiryBatch): Promise<ExpiryStep> => runExpiry(sql, DELETE_EXPIRED, batch);

/** False: it was used before, on whichever node. `signature` is hexadecimal. */
export type FirstUse = (use: { readonly agentId: string; readonly signature: string; readonly place: string }) => Promise<boolean>;
export const createFirstUse =
  (db: Pick<SqlTx, "query">): FirstUse =>
  async ({ agentId, signature, place }) =>
    (await db.query(INSERT_USED, [agentId, signature, place, REMEMBERED_SECONDS])).length === 1;

export const createSignatures = (db: Pick<SqlTx, "query">, memory: SignatureMemory) => ({
  memory,
  insertUsed: createFirstUse(db),
  jobs: [
    {
      name: "signatures.forget",
      everyMs: 60_000,
      run: inRounds(SWEEP_ROWS, (batch) => deleteExpiredSignatures(db, batch)),
    },
  ] satisfies readonly Job[],
});
