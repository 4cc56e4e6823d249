// Applies an operation's rate limit to a caller and says in headers how much is left.
import { type Bucket, LIMITS, type LimitClass, type Operation, type Weight } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { BucketState, RateBucket, RateLimiter, RateLimitVerdict } from "../../core/ports/rate-limiter.ts";
import { actorOf, type OpenScope, type Overrides, type Principal } from "../../core/scope.ts";
import { limitAddress } from "../http/request-info.ts";

const credentialKey = ({ principal, tenantId, ip }: OpenScope): string => {
  if (principal === null) return `ip:${limitAddress(ip)}`;
  if (principal.kind === "user") return `${tenantId ?? "-"}:${principal.impersonator === undefined ? principal.userId : actorOf(principal)}`;
  return principal.kind === "apiKey" ? principal.keyId : principal.agentId;
};

/** Null where the bucket has nothing to count for this call. */
const keyOf = ({ per }: Bucket, scope: OpenScope, input: unknown): string | null => {
  if (per === "ip") return limitAddress(scope.ip);
  if (per === "installation") return "all";
  if (per === "credential") return credentialKey(scope);
  if (per === "tenant") return scope.tenantId;
  if (per === "device") return scope.principal?.kind === "agent" ? scope.principal.deviceId : null;
  const value = (input as Record<string, unknown> | undefined)?.[per.slice("input:".length)];
  return typeof value === "string" ? value : null;
};

const overridden = (name: string, limit: number, overrides: Overrides): number | null => {
  const exact = overrides[name] ?? (name in overrides ? null : undefined);
  if (exact !== undefined) return exact;
  return "*" in overrides ? (overrides["*"] ?? null) : limit;
};

/** The server's own figures first (RATE_LIMIT_*), then the tenant's overrides. Null lifts a bucket. */
const figure = ({ name, limit }: Bucket, configured: Overrides, tenant: Overrides): number | null => {
  const base = overridden(name, limit, configured);
  return base === null ? null : overridden(name, base, tenant);
};

const isInputBucket = ({ per }: Bucket): boolean => per.startsWith("input:");
const CLASSES: ReadonlyMap<LimitClass, readonly Bucket[]> = new Map(Object.entries(LIMITS) as [LimitClass, readonly Bucket[]][]);
const sorted = (when: (bucket: Bucket) => boolean): ReadonlyMap<LimitClass, readonly Bucket[]> =>
  new Map([...CLASSES].map(([name, buckets]) => [name, buckets.filter(when)]));
/** Counted before the input is read; BY_INPUT counts by a field of it. */
const BY_CALLER = sorted((bucket) => !isInputBucket(bucket));
const BY_INPUT = sorted(isInputBucket);

/** People look at pages, which read much; what they change counts like everybody's calls. */
const isPersonsRead = ({ limit, kind }: Operation, { principal }: OpenScope): boolean => limit === "standard" && kind === "query" && principal?.kind === "user";

/** What the calls of one batch have taken already, by the key of its bucket. */
export type Taken = Map<string, Promise<RateLimitVerdict | null>>;

const NO_BUCKETS: readonly RateBucket[] = [];
const NO_OVERRIDES: Overrides = {};

const EVERYDAY: Readonly<Record<Principal["kind"], readonly LimitClass[]>> = {
  user: ["reads", "standard"],
  apiKey: ["standard"],
  agent: ["agent", "heartbeat", "inventory"],
};

const weightOf = ({ field, per, otherwise }: Weight, input: unknown): number => {
  const entries = (input as Readonly<Record<string, unknown>>)[field];
  return Array.isArray(entries) ? Math.ceil(entries.length / per) : otherwise;
};

export interface LimitDeps {
  readonly limiter: RateLimiter;
  readonly configured: Overrides;
}

export const createLimits = ({ limiter, configured }: LimitDeps) => {
  const counted = (buckets: readonly Bucket[] = [], scope: OpenScope, input: unknown): readonly RateBucket[] => {
    if (buckets.length === 0) return NO_BUCKETS;
    const counting: RateBucket[] = [];
    for (const bucket of buckets) {
      const key = keyOf(bucket, scope, input);
      const limit = figure(bucket, configured, scope.tenant?.rateLimitOverrides ?? NO_OVERRIDES);
      if (key !== null && limit !== null) counting.push({ name: bucket.name, key, limit, windowSeconds: bucket.windowSeconds });
    }
    return counting;
  };
  const byCaller = (limitClass: LimitClass, scope: OpenScope): readonly RateBucket[] => counted(BY_CALLER.get(limitClass), scope, undefined);
  /** Takes so many units of each bucket; throws RATE_LIMIT_EXCEEDED, with the verdict as details. */
  const take = async (buckets: readonly RateBucket[], cost = 1): Promise<RateLimitVerdict | null> => {
    if (buckets.length === 0) return null;
    const verdict = await limiter.take(buckets, cost);
    if (!verdict.allowed) throw new RateLimited(verdict);
    return verdict;
  };
  /** Takes what the call costs its caller; null when that is nothing. The reads of a person in one batch cost one together. */
  const admit = (op: Operation, scope: OpenScope, taken?: Taken): Promise<RateLimitVerdict | null> | null => {
    const isRead = isPersonsRead(op, scope);
    const buckets = byCaller(isRead ? "reads" : op.limit, scope);
    const [first] = buckets;
    if (first === undefined) return null;
    if (!isRead || taken === undefined) return take(buckets);
    const shared = taken.get(first.key) ?? take(buckets);
    taken.set(first.key, shared);
    return shared;
  };
  /** Takes what follows from the input: the buckets that count by it, and the weight beyond the one unit that `admit` took. Null when that is nothing. */
  const admitInput = ({ limit, weight }: Operation, scope: OpenScope, input: unknown): Promise<RateLimitVerdict | null> | null => {
    const more = weight === undefined ? 0 : weightOf(weight, input) - 1;
    if (more > 0) return take(byCaller(limit, scope), more);
    const buckets = counted(BY_INPUT.get(limit), scope, input);
    return buckets.length === 0 ? null : take(buckets);
  };
  /** The buckets that this caller's everyday calls count against; consumes nothing. */
  const describe = (scope: OpenScope): Promise<readonly BucketState[]> => {
    const classes = EVERYDAY[scope.principal?.kind ?? "apiKey"];
    const buckets = classes.flatMap((limitClass) => byCaller(limitClass, scope));
    return buckets.length === 0 ? Promise.resolve([]) : limiter.peek(buckets);
  };
  return { byCaller, admit, admitInput, take, describe };
};
export type Limits = ReturnType<typeof createLimits>;

export class RateLimited extends AppError {
  readonly verdict: RateLimitVerdict;
  constructor(verdict: RateLimitVerdict) {
    const { bucket, limit, windowSeconds, resetAt, retryAfterSeconds } = verdict;
    super("RATE_LIMIT_EXCEEDED", { details: { bucket, limit, windowSeconds, resetAt: resetAt.toISOString() }, retryAfter: retryAfterSeconds });
    this.verdict = verdict;
  }
}

/** The interface's X-RateLimit-* (Reset in Unix seconds) and the IETF draft's pair (t in seconds from now). */
export const limitHeaders = ({ bucket, limit, remaining, resetAt, windowSeconds }: RateLimitVerdict, now: Date): Record<string, string> => {
  const seconds = Math.max(0, Math.ceil((resetAt.getTime() - now.getTime()) / 1_000));
  return {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
    "X-RateLimit-Reset": String(Math.ceil(resetAt.getTime() / 1_000)),
    "RateLimit-Policy": `"${bucket}";q=${limit};w=${windowSeconds}`,
    RateLimit: `"${bucket}";r=${remaining};t=${seconds}`,
  };
};

export const tighter = (a: RateLimitVerdict | null, b: RateLimitVerdict | null): RateLimitVerdict | null => {
  if (a === null || b === null) return a ?? b;
  return b.remaining / b.limit < a.remaining / a.limit ? b : a;
};

/**
 * Counts failed credentials per address; beyond the limit a failure is answered 429 instead of 401.
 * A good credential never fails for a neighbour's bad ones, so a whole site behind one address stays served.
 */
export const guardFailures =
  <A extends readonly unknown[], T>(
    { limiter, limit, ipOf }: { readonly limiter: RateLimiter; readonly limit: number | null; readonly ipOf: (...args: A) => string },
    prove: (...args: A) => Promise<T>,
  ) =>
  async (...args: A): Promise<T> => {
    // Read the address now: a caller that leaves during the proof counts too.
    const ip = ipOf(...args);
    try {
      return await prove(...args);
    } catch (error) {
      if (limit === null || !(error instanceof AppError) || error.status !== 401) throw error;
      const verdict = await limiter.take([{ name: "failed_auth", key: limitAddress(ip), limit, windowSeconds: 60 }]);
      throw verdict.allowed ? error : new RateLimited(verdict);
    }
  };
