// A bucket of tokens: so many at once, so many a second. Plain numbers, so that each connection can have one.
export interface TokenBucket {
  readonly perSecond: number;
  readonly burst: number;
  tokens: number;
  /** Monotonic milliseconds. */
  filledAt: number;
}

export const newBucket = (perSecond: number, burst: number, nowMs: number): TokenBucket => ({ perSecond, burst, tokens: burst, filledAt: nowMs });

export const takeToken = (bucket: TokenBucket, nowMs: number): boolean => {
  bucket.tokens = Math.min(bucket.burst, bucket.tokens + ((nowMs - bucket.filledAt) / 1_000) * bucket.perSecond);
  bucket.filledAt = nowMs;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
};

/** Whole seconds until the next token; call it after a refusal. */
export const secondsToToken = (bucket: TokenBucket): number => Math.max(1, Math.ceil((1 - bucket.tokens) / bucket.perSecond));
