// A token bucket: so many at once, and so many a second. Its state is two plain numbers, so many thousand buckets cost little.

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface TokenBucket {
  /** Thousandths of a token: `perSecond` of them arrive each millisecond, so whole numbers stay whole. */
  milliTokens: number;
  /** Monotonic milliseconds. */
  filledAt: number;
}

const TOKEN = 1_000;

export const newBucket = ({ burst }: Rate, nowMs: number): TokenBucket => ({ milliTokens: burst * TOKEN, filledAt: nowMs });

export const takeToken = (bucket: TokenBucket, { perSecond, burst }: Rate, nowMs: number): boolean => {
  const filled = Math.min(burst * TOKEN, bucket.milliTokens + (nowMs - bucket.filledAt) * perSecond);
  const allowed = filled >= TOKEN;
  bucket.filledAt = nowMs;
  bucket.milliTokens = allowed ? filled - TOKEN : filled;
  return allowed;
};

/** Whole seconds until the next token; call it after a refusal. */
export const secondsToToken = ({ milliTokens }: TokenBucket, { perSecond }: Rate): number => Math.max(1, Math.ceil((TOKEN - milliTokens) / TOKEN / perSecond));
