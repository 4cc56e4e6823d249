// Counts wrong pairing codes per address and over the whole installation, because a code is short enough to guess.

import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { secretHash } from "../../core/ids.ts";
import type { RateBucket, RateLimiter } from "../../core/ports/rate-limiter.ts";
import type { OpenScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import { readCode } from "./codes.ts";
import { findByCode, type Pairing } from "./store/pairings.ts";

export interface GuessDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly limiter: Pick<RateLimiter, "take" | "peek">;
  /** The buckets that a wrong code from this address counts against; empty when the limits are lifted. */
  readonly guessBuckets: (ip: string) => readonly RateBucket[];
}

export interface FoundCode {
  readonly codeHash: Uint8Array<ArrayBuffer>;
  readonly pairing: Pairing;
}

export interface CodeGuesses {
  /** Null for an unknown code, which counts as a guess. Throws RATE_LIMIT_EXCEEDED, without reading the code, while a bucket is exhausted. */
  find(call: Pick<OpenScope, "ip">, typed: string): Promise<FoundCode | null>;
  /** Counts a guess; for a code that exists but belongs to another tenant or machine. */
  count(call: Pick<OpenScope, "ip">): Promise<void>;
}

export const createCodeGuesses = ({ db, clock, limiter, guessBuckets }: GuessDeps): CodeGuesses => {
  // Peeks before the query and takes after a miss, so right codes cost nothing. Concurrent guesses exceed the limit by at most their number.
  const refuseWhenSpent = async (ip: string): Promise<void> => {
    const buckets = guessBuckets(ip);
    if (buckets.length === 0) return;
    if (!(await limiter.peek(buckets)).some(({ remaining }) => remaining <= 0)) return;
    const { allowed, bucket, limit, windowSeconds, resetAt, retryAfterSeconds } = await limiter.take(buckets);
    if (allowed) return;
    throw new AppError("RATE_LIMIT_EXCEEDED", {
      details: { bucket, limit, windowSeconds, resetAt: resetAt.toISOString() },
      retryAfter: retryAfterSeconds,
    });
  };
  const count = async ({ ip }: Pick<OpenScope, "ip">): Promise<void> => {
    const buckets = guessBuckets(ip);
    if (buckets.length > 0) await limiter.take(buckets);
  };
  return {
    count,
    find: async (call, typed) => {
      const code = readCode(typed);
      if (code === null) return null;
      await refuseWhenSpent(call.ip);
      const codeHash = secretHash(code);
      const pairing = await findByCode(db, codeHash, clock.now());
      if (pairing === null) await count(call);
      return pairing === null ? null : { codeHash, pairing };
    },
  };
};
