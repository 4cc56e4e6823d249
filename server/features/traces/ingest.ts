// Stores spans of one tenant within its plan: so many a day, and so many of one trace.
import { TRACE_LIMITS } from "../../../protocol/index.ts";
import type { TenantFacts } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { type Rejections, reject } from "./read-spans.ts";
import type { StoredSpan } from "./span.ts";
import { countSpans, lockDay, writeSpans } from "./store/write.ts";

/** For a tenant whose plan does not say. */
const MAX_KEEP_DAYS = 365;

export interface IngestDeps extends Pick<FeatureKit, "db" | "plan"> {}

const withinTraces = (spans: readonly StoredSpan[], counts: ReadonlyMap<string, number>): StoredSpan[] => {
  const seen = new Map(counts);
  return spans.filter(({ traceId }) => {
    const count = seen.get(traceId) ?? 0;
    seen.set(traceId, count + 1);
    return count < TRACE_LIMITS.spansPerTrace;
  });
};

export interface Stored {
  /** Not stored, by reason. */
  readonly rejected: Rejections;
}

export const createIngest =
  ({ db, plan }: IngestDeps) =>
  async (tenant: TenantFacts, spans: readonly StoredSpan[]): Promise<Stored> => {
    const { spansPerDay, traceRetentionDays } = plan.limitsOf(tenant);
    const traceIds = [...new Set(spans.map(({ traceId }) => traceId))];
    return db.sqlTx(async (tx) => {
      const rejected: Rejections = new Map();
      const [used, counts] = [await lockDay(tx, tenant.tenantId), await countSpans(tx, tenant.tenantId, traceIds)];
      const fitting = withinTraces(spans, counts);
      reject(rejected, `are beyond the ${TRACE_LIMITS.spansPerTrace} of one trace`, spans.length - fitting.length);
      const left = spansPerDay == null ? fitting.length : Math.max(0, spansPerDay - used);
      const accepted = fitting.slice(0, left);
      reject(rejected, `are beyond the plan's ${spansPerDay} of a day`, fitting.length - accepted.length);
      if (accepted.length > 0) await writeSpans(tx, tenant.tenantId, accepted, Math.min(traceRetentionDays ?? MAX_KEEP_DAYS, MAX_KEEP_DAYS));
      return { rejected };
    });
  };
export type Ingest = ReturnType<typeof createIngest>;
