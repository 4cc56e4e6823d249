// Rows that are over, and figures over all tenants.
import { idSince, oldestId } from "../../../core/id-times.ts";
import { statement } from "../../../core/statements.ts";
import type { Sql } from "../../../platform/database/db.ts";

type Query = Pick<Sql, "query">;

/** A scrape must stay cheap however much waits. */
const COUNTED_UP_TO = 10_000;
const COUNT_WAITING = statement<{ readonly status: string; readonly count: number }>(
  "webhooks.countWaiting",
  `select status, count(*)::int as count
     from (select status from webhook_deliveries where status in ('pending', 'retrying') limit ${COUNTED_UP_TO}) as waiting group by status`,
);
export const countWaiting = async (db: Query): Promise<ReadonlyMap<string, number>> =>
  new Map((await db.query(COUNT_WAITING)).map(({ status, count }) => [status, count]));

const OLDEST_DUE = statement<{ readonly seconds: number }>(
  "webhooks.oldestDue",
  "select greatest(0, coalesce(extract(epoch from now() - min(next_due_at)), 0))::float8 as seconds from webhook_endpoints where next_due_at <= now()",
);
export const oldestDueSeconds = async (db: Query): Promise<number> => (await db.query(OLDEST_DUE))[0]?.seconds ?? 0;

const COUNT_FAILING = statement<{ readonly count: number }>(
  "webhooks.countFailing",
  "select count(*)::int as count from webhook_endpoints where consecutive_failures >= $1",
);
export const countFailing = async (db: Query, after: number): Promise<number> => (await db.query(COUNT_FAILING, [after]))[0]?.count ?? 0;

export interface LateEndpoint {
  readonly webhook_id: string;
  readonly tenant_id: string;
  readonly next_due_at: Date;
}
const FIND_LATE = statement<LateEndpoint>(
  "webhooks.findLate",
  `select webhook_id, tenant_id, next_due_at from webhook_endpoints
    where next_due_at < now() - make_interval(secs => $1) and (leased_until is null or leased_until < now()) order by next_due_at limit $2`,
);
/** Endpoints that have been due for longer and that no node has. */
export const findLate = (db: Query, afterSeconds: number, limit: number): Promise<readonly LateEndpoint[]> => db.query(FIND_LATE, [afterSeconds, limit]);

// A delivery is not older than its event, so the ids end the search before the younger ones.
const DELETE_OLD = statement<{ readonly looked: number; readonly last: string | null }>(
  "webhooks.deleteOld",
  `with old as materialized (
     select ctid as place, event_id from webhook_deliveries
      where tenant_id = $1 and webhook_id = $2 and event_id > $3 and event_id < $4 and created_at < $5 and status not in ('pending', 'retrying')
      order by event_id limit $6),
   gone as (delete from webhook_deliveries where ctid = any(array(select place from old)) returning 1)
   select count(*)::int as looked, max(event_id) as last from old`,
);

export interface OldDeliveries {
  readonly tenantId: string;
  readonly webhookId: string;
  /** Deliveries from before this time go. */
  readonly before: Date;
  /** Earlier events were looked at before. */
  readonly after?: string;
  readonly limit: number;
}
/** Returns the event behind which the next batch begins; null: no more is old. */
export const deleteOldDeliveries = async (
  db: Query,
  { tenantId, webhookId, before, after = oldestId("evt"), limit }: OldDeliveries,
): Promise<string | null> => {
  const [batch] = await db.query(DELETE_OLD, [tenantId, webhookId, after, idSince("evt", before.getTime()), before, limit]);
  return batch === undefined || batch.looked < limit ? null : batch.last;
};
