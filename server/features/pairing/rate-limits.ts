// The rate limits of wrong pairing codes and wrong enrollment tokens.
import { LIMITS } from "../../../protocol/index.ts";
import type { RateBucket, RateLimiter } from "../../core/ports/rate-limiter.ts";
import type { Failures, PairingDeps } from "./types.ts";

export interface PairingLimitDeps {
  /** RATE_LIMIT_PAIRING: null lifts the limits, undefined keeps the contract's. */
  readonly limit: number | null | undefined;
  readonly limiter: RateLimiter;
  /** How rate limits name an address. */
  readonly addressKey: (ip: string) => string;
}

const WRONG_TOKENS_PER_MINUTE = 3;
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** Counts wrong enrollment tokens by address. */
const createWrongTokens = ({ limit: given, limiter, addressKey }: PairingLimitDeps): Failures => {
  const limit = given ?? (given === null ? UNLIMITED : WRONG_TOKENS_PER_MINUTE);
  return { take: (ip) => limiter.take([{ name: "pairing.autoActivate.ip", key: addressKey(ip), limit, windowSeconds: 60 }]) };
};

/** Buckets of wrong pairing codes. A number in RATE_LIMIT_PAIRING limits one caller; only `off` lifts the bucket that all callers share. */
const createGuessBuckets =
  ({ limit: given, addressKey }: PairingLimitDeps) =>
  (ip: string): readonly RateBucket[] =>
    given === null
      ? []
      : LIMITS["pairing.guess"].map(({ name, limit, windowSeconds, per }) =>
          per === "ip" ? { name, key: addressKey(ip), limit: given ?? limit, windowSeconds } : { name, key: "all", limit, windowSeconds },
        );

export const pairingLimits = (deps: PairingLimitDeps): Pick<PairingDeps, "failures" | "limiter" | "guessBuckets"> => ({
  failures: createWrongTokens(deps),
  limiter: deps.limiter,
  guessBuckets: createGuessBuckets(deps),
});
