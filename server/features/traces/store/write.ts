// Writes spans: one statement inserts a batch, brings the summaries of its traces up to date and counts it against the tenant's day.
import type { SqlTx } from "../../../core/events.ts";
import { statement } from "../../../core/statements.ts";
import type { StoredSpan } from "../span.ts";

export const TODAY = "floor(extract(epoch from now()) / 86400)::int";
/** Services and operations of a trace that its summary names. */
const NAMES = 50;
/** Devices, apps and requests of a trace by which a list finds it. */
const IDS = 100;
const OPERATIONS_OF_TENANT = 1_000;

// An update that changes nothing locks the row, and an insert takes the place of one that is not there yet.
const LOCK_DAY = statement<{ readonly spans: number }>(
  "traces.lockDay",
  `insert into trace_usage as u (tenant_id, day) values ($1, ${TODAY}) on conflict (tenant_id, day) do update set spans = u.spans returning spans`,
);
/** Spans that the tenant has had today. Until the end of the transaction nobody else writes any. */
export const lockDay = async (tx: SqlTx, tenantId: string): Promise<number> => {
  const [row] = await tx.query(LOCK_DAY, [tenantId]);
  return row?.spans ?? 0;
};

const COUNT_SPANS = statement<{ readonly trace_id: string; readonly span_count: number }>(
  "traces.countSpans",
  "select trace_id, span_count from traces where tenant_id = $1 and trace_id = any($2::text[])",
);
export const countSpans = async (tx: SqlTx, tenantId: string, traceIds: readonly string[]): Promise<ReadonlyMap<string, number>> => {
  const rows = await tx.query(COUNT_SPANS, [tenantId, traceIds]);
  return new Map(rows.map(({ trace_id, span_count }) => [trace_id, span_count]));
};

interface Column {
  readonly name: string;
  readonly type: string;
  readonly value: (span: StoredSpan) => unknown;
}
/** The columns of trace_spans. */
const COLUMNS: readonly Column[] = [
  { name: "trace_id", type: "text", value: (span) => span.traceId },
  { name: "span_id", type: "text", value: (span) => span.spanId },
  { name: "parent_span_id", type: "text", value: (span) => span.parentSpanId },
  { name: "source", type: "text", value: (span) => span.source },
  { name: "service", type: "text", value: (span) => span.service },
  { name: "name", type: "text", value: (span) => span.name },
  { name: "kind", type: "int2", value: (span) => span.kind },
  { name: "start_us", type: "int8", value: (span) => span.startUs },
  { name: "duration_us", type: "int8", value: (span) => span.durationUs },
  { name: "status", type: "int2", value: (span) => span.status },
  { name: "status_message", type: "text", value: (span) => span.statusMessage },
  { name: "device_id", type: "text", value: (span) => span.deviceId },
  { name: "command_id", type: "text", value: (span) => span.commandId },
  { name: "attributes", type: "jsonb", value: (span) => JSON.stringify(span.attributes) },
  { name: "resource", type: "jsonb", value: (span) => JSON.stringify(span.resource) },
  { name: "events", type: "jsonb", value: (span) => JSON.stringify(span.events) },
  { name: "links", type: "jsonb", value: (span) => JSON.stringify(span.links) },
];
/** For the summary only. */
const BESIDE: readonly Column[] = [
  { name: "app_id", type: "text", value: (span) => span.appId },
  { name: "request_id", type: "text", value: (span) => span.requestId },
];
const GIVEN = [...COLUMNS, ...BESIDE];
const names = (columns: readonly Column[]): string => columns.map(({ name }) => name).join(", ");
const FIRST_PARAMETER = 3;

const ROOT_FIRST = "order by (parent_span_id is null) desc, start_us";
const some = (column: string): string => `coalesce((array_agg(distinct ${column}) filter (where ${column} is not null))[1:${IDS}], '{}')`;
const merged = (column: string, max: number): string =>
  `${column} = (select coalesce((array_agg(distinct e))[1:${max}], '{}') from unnest(t.${column} || excluded.${column}) e)`;
/** The root wins over other spans, and the earlier one over the later. */
const better = (column: string): string =>
  `${column} = case when (excluded.rooted, t.root_us) > (t.rooted, excluded.root_us) then excluded.${column} else t.${column} end`;

const WRITE = statement<{ readonly added: number }>(
  "traces.write",
  `with given as (
     select * from unnest(${GIVEN.map(({ type }, at) => `$${at + FIRST_PARAMETER}::${type}[]`).join(", ")}) as g(${names(GIVEN)})),
   added as (
     insert into trace_spans (tenant_id, ${names(COLUMNS)}) select $1, ${names(COLUMNS)} from given
     on conflict (tenant_id, trace_id, span_id) do nothing returning trace_id, span_id),
   fresh as (select g.* from given g join added using (trace_id, span_id)),
   summed as (
     select trace_id, min(start_us) as start_us, max(start_us + duration_us) as end_us, bool_or(parent_span_id is null) as rooted,
       (array_agg(start_us ${ROOT_FIRST}))[1] as root_us, (array_agg(service ${ROOT_FIRST}))[1] as root_service,
       (array_agg(name ${ROOT_FIRST}))[1] as root_operation, count(*) as span_count, count(*) filter (where status = 2) as error_count,
       (array_agg(distinct service))[1:${NAMES}] as services, (array_agg(distinct name))[1:${NAMES}] as operations,
       ${some("device_id")} as device_ids, ${some("app_id")} as app_ids, ${some("request_id")} as request_ids
     from fresh group by trace_id),
   upserted as (
     insert into traces as t (tenant_id, trace_id, start_us, end_us, duration_us, rooted, root_us, root_service, root_operation, span_count, error_count,
       services, operations, device_ids, app_ids, request_ids, expires_at)
     select $1, trace_id, start_us, end_us, end_us - start_us, rooted, root_us, root_service, root_operation, span_count, error_count,
       services, operations, device_ids, app_ids, request_ids, now() + $2 * interval '1 day' from summed
     on conflict (tenant_id, trace_id) do update set
       start_us = least(t.start_us, excluded.start_us), end_us = greatest(t.end_us, excluded.end_us),
       duration_us = greatest(t.end_us, excluded.end_us) - least(t.start_us, excluded.start_us),
       rooted = t.rooted or excluded.rooted, ${["root_us", "root_service", "root_operation"].map(better).join(", ")},
       span_count = t.span_count + excluded.span_count, error_count = t.error_count + excluded.error_count,
       ${merged("services", NAMES)}, ${merged("operations", NAMES)}, ${merged("device_ids", IDS)}, ${merged("app_ids", IDS)}, ${merged("request_ids", IDS)}),
   named as (
     insert into trace_operations as o (tenant_id, service, operation) select distinct $1, service, name from fresh f
      where (select count(*) from trace_operations where tenant_id = $1) < ${OPERATIONS_OF_TENANT}
         or exists (select from trace_operations k where k.tenant_id = $1 and k.service = f.service and k.operation = f.name)
     on conflict (tenant_id, service, operation) do update set last_seen_at = now() where o.last_seen_at < now() - interval '1 hour'),
   counted as (update trace_usage set spans = spans + (select count(*) from added) where tenant_id = $1 and day = ${TODAY})
   select count(*) as added from added`,
);

/** Leaves out spans that are there already; returns how many were new. */
export const writeSpans = async (tx: SqlTx, tenantId: string, spans: readonly StoredSpan[], keepDays: number): Promise<number> => {
  const [row] = await tx.query(WRITE, [tenantId, keepDays, ...GIVEN.map(({ value }) => spans.map(value))]);
  return row?.added ?? 0;
};
