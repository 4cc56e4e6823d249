// Two ways to count what one connection may do: a bucket of tokens, and turns within a window. Plain numbers that can stand within
// a larger object, so that each connection can have them at little cost.
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface TokenBucket {
  /** In thousandths: so many come in a millisecond as tokens in a second, and whole numbers stay whole. */
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

/** So many in a window that begins with the first of them. */
export interface TurnCounter {
  /** Null where there is no limit. */
  readonly turns: number | null;
  readonly turnWindowMs: number;
  turnsTaken: number;
  turnsEndAt: number;
}

/** 0 when there was a turn; otherwise the whole seconds until the next window. */
export const takeTurn = (counter: TurnCounter, nowMs: number): number => {
  if (counter.turns === null) return 0;
  if (nowMs >= counter.turnsEndAt) {
    counter.turnsTaken = 0;
    counter.turnsEndAt = nowMs + counter.turnWindowMs;
  }
  if (counter.turnsTaken >= counter.turns) return Math.max(1, Math.ceil((counter.turnsEndAt - nowMs) / 1_000));
  counter.turnsTaken += 1;
  return 0;
};
