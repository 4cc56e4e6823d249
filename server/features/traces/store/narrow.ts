// Pages of traces for a limited caller: figures, filters, order and cursors know only the spans of devices in the caller's reach.
import type { SqlTx } from "../../../core/events.ts";
import { WALK_ROWS } from "../../../core/rows/walk.ts";
import type { TenantScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { TraceFilter, TraceWindow } from "../span.ts";

export interface NarrowRow {
  readonly traceId: string;
  readonly startUs: number;
  readonly durationUs: number;
  readonly rootService: string;
  readonly rootOperation: string;
  readonly spanCount: number;
  readonly errorCount: number;
  readonly services: readonly string[];
}

const ROOT_FIRST = "order by (s.parent_span_id is null) desc, s.start_us";
const DURATION = "max(s.start_us + s.duration_us) - min(s.start_us)";
/** A trace whose other spans began earlier than this is not looked for, nor one before twice as many others as a page may look at. */
const EARLIER_US = 86_400_000_000;
const some = (parameter: string, holds: string): string => `($${parameter}::text is null or bool_or(${holds}))`;

// The summaries say which traces may have such spans; what is answered comes from the spans.
const LIST = statement<NarrowRow>(
  "traces.listNarrow",
  `with candidates as materialized (
     select trace_id from (
       select trace_id, device_ids, end_us from traces
        where tenant_id = $1 and start_us >= greatest($3::int8, $16::int8) - ${EARLIER_US} and start_us < least($4::int8, $13::int8 + 1)
        order by start_us desc limit ${2 * WALK_ROWS}) near
      where device_ids && $2::text[] and end_us >= $3)
   select s.trace_id as "traceId", min(s.start_us) as "startUs", ${DURATION} as "durationUs",
     (array_agg(s.service ${ROOT_FIRST}))[1] as "rootService", (array_agg(s.name ${ROOT_FIRST}))[1] as "rootOperation",
     count(*) as "spanCount", count(*) filter (where s.status = 2) as "errorCount", (array_agg(distinct s.service))[1:50] as services
   from candidates c join trace_spans s on s.tenant_id = $1 and s.trace_id = c.trace_id where s.device_id = any($2)
   group by s.trace_id
   having min(s.start_us) >= $3 and min(s.start_us) < $4
     and ${some("5", "s.service = $5")} and ${some("6", "s.name = $6")} and ${some("7", "s.device_id = $7")}
     and ${some("8", "s.resource ->> 'svc.app.id' = $8")} and ${some("9", "s.source = 'gateway' and s.attributes ->> 'mooring.request_id' = $9")}
     and ($10::boolean is null or $10 = bool_or(s.status = 2))
     and ($11::int8 is null or ${DURATION} >= $11) and ($12::int8 is null or ${DURATION} <= $12)
     and ($13::int8 is null or (min(s.start_us), s.trace_id) < ($13, $14::text)) and ($16::int8 is null or (min(s.start_us), s.trace_id) >= ($16, $17::text))
   order by 2 desc, 1 desc limit $15`,
);

export interface NarrowPage {
  readonly query: TraceFilter;
  readonly window: TraceWindow;
  readonly visible: readonly string[];
  /** Start and id of the last trace before the page. */
  readonly last: readonly unknown[] | null;
  /** Start and id of the last trace that the page may look at. */
  readonly upTo: readonly unknown[] | null;
  readonly take: number;
}

const US = 1_000;
const inUs = (ms: number | undefined): number | null => (ms === undefined ? null : ms * US);

/** Newest first. */
export const listNarrow = (db: SqlTx, { tenantId }: TenantScope, { query, window, visible, last, upTo, take }: NarrowPage): Promise<readonly NarrowRow[]> => {
  const { service, operation, deviceId, appId, requestId, status, minDurationMs, maxDurationMs } = query;
  const names = [service, operation, deviceId, appId, requestId].map((value) => value ?? null);
  const failed = status === undefined ? null : status === "error";
  return db.query(LIST, [
    ...[tenantId, visible, window.fromMs * US, window.toMs * US, ...names, failed, inUs(minDurationMs), inUs(maxDurationMs)],
    ...[last?.[0] ?? null, last?.[1] ?? null, take, upTo?.[0] ?? null, upTo?.[1] ?? null],
  ]);
};
