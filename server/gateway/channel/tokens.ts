// Two ways to count what one connection may do: a bucket of tokens, and turns within a window. Plain numbers, so that each connection can have one.
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

/** So many in a window that begins with the first of them. */
export interface TurnCounter {
  readonly limit: number;
  readonly windowMs: number;
  used: number;
  endsAt: number;
}

export const newTurns = (limit: number, windowSeconds: number): TurnCounter => ({ limit, windowMs: windowSeconds * 1_000, used: 0, endsAt: 0 });

/** 0 when there was a turn; otherwise the whole seconds until the next window. */
export const takeTurn = (turns: TurnCounter, nowMs: number): number => {
  if (nowMs >= turns.endsAt) {
    turns.used = 0;
    turns.endsAt = nowMs + turns.windowMs;
  }
  if (turns.used >= turns.limit) return Math.max(1, Math.ceil((turns.endsAt - nowMs) / 1_000));
  turns.used += 1;
  return 0;
};
