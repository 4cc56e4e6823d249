// The rate limiter's interface. One counts in this process, one in Redis; test/conformance/rate-limit.ts tests both.

export interface RateBucket {
  readonly name: string;
  /** The caller whom the bucket counts: an address, a credential or a device. */
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

/** Describes the tightest bucket: the refusing one that resets last, or else the one with the least left. */
export interface RateLimitVerdict extends BucketState {
  readonly allowed: boolean;
  /** Whole seconds until resetAt, at least 1. */
  readonly retryAfterSeconds: number;
}

/** Takes from all buckets of a call together; a refused call consumes nothing. */
export interface RateLimiter {
  /** Needs at least one bucket. */
  take(buckets: readonly RateBucket[], cost?: number): Promise<RateLimitVerdict>;
  /** One state per bucket, in their order; consumes nothing and starts no window. */
  peek(buckets: readonly RateBucket[]): Promise<readonly BucketState[]>;
}
