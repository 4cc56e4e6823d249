// What a rate limiter promises, whether it counts in this process or in Redis: test/conformance/rate-limit.ts runs every promise against both.

export interface RateBucket {
  readonly name: string;
  /** Whom it counts: an address, a credential, a device. */
  readonly key: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

export interface BucketState {
  readonly bucket: string;
  readonly limit: number;
  readonly remaining: number;
  readonly windowSeconds: number;
  readonly resetAt: Date;
}

/** Names the tightest bucket: of the refusing ones that which opens last, else that with the least left. */
export interface RateLimitVerdict extends BucketState {
  readonly allowed: boolean;
  /** Whole seconds until resetAt, at least 1. */
  readonly retryAfterSeconds: number;
}

/** Judges all buckets of a call together; a refused call consumes nothing. */
export interface RateLimiter {
  /** Needs at least one bucket: a call that nothing limits has no verdict. */
  take(buckets: readonly RateBucket[], cost?: number): Promise<RateLimitVerdict>;
  /** One state per bucket, in their order; consumes nothing and starts no window. */
  peek(buckets: readonly RateBucket[]): Promise<readonly BucketState[]>;
}
