// Deletes what is older than the plans keep, in batches.
import type { SqlTx } from "../../../core/events.ts";
import type { ExpiryBatch, ExpiryStep } from "../../../core/rows/retention.ts";
import { statement } from "../../../core/statements.ts";
import { TODAY } from "./write.ts";

const TRACES = 200;
const SPANS = 5_000;
const NAME_DAYS = 30;

// A summary goes after its spans, so that no span stays without one.
const FORGET = statement<{ readonly spans: number; readonly traces: number; readonly last: Date | null }>(
  "traces.forget",
  `with old as (
     select tenant_id, trace_id, expires_at from traces where expires_at >= $1::timestamptz and expires_at < now() order by expires_at limit ${TRACES}
        for update skip locked),
   doomed as (
     select s.ctid from old join trace_spans s using (tenant_id, trace_id) limit ${SPANS}),
   spans as (delete from trace_spans where ctid in (select ctid from doomed) returning 1),
   gone as (
     delete from traces t using old o where t.tenant_id = o.tenant_id and t.trace_id = o.trace_id and (select count(*) from doomed) < ${SPANS} returning 1)
   select (select count(*)::int from spans) as spans, (select count(*)::int from gone) as traces, (select max(expires_at) from old) as last`,
);

/** A trace with too many spans for one batch stays for the next. */
export const forgetTraces = async (db: SqlTx, { since }: Pick<ExpiryBatch, "since">): Promise<ExpiryStep> => {
  const [row] = await db.query(FORGET, [since]);
  if (row === undefined) return { looked: 0, last: null };
  return { looked: row.spans + row.traces, last: row.traces > 0 ? row.last : since };
};

const FORGET_NAMES = statement<{ readonly deleted: number }>(
  "traces.forgetNames",
  `with names as (delete from trace_operations where last_seen_at < now() - interval '${NAME_DAYS} days' returning 1),
   days as (delete from trace_usage where day < ${TODAY} - 2 returning 1)
   select (select count(*) from names) + (select count(*) from days) as deleted`,
);
export const forgetNames = async (db: SqlTx): Promise<void> => {
  await db.query(FORGET_NAMES);
};
