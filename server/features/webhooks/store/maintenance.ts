// Rows that are over, and figures over all tenants.
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

const DELETE_OLD = statement<{ readonly delivery_id: string }>(
  "webhooks.deleteOld",
  `delete from webhook_deliveries where delivery_id in (
     select delivery_id from webhook_deliveries
      where tenant_id = $1 and webhook_id = any($2::text[]) and status not in ('pending', 'retrying') and created_at < now() - make_interval(days => $3)
      order by event_id limit $4)
   returning delivery_id`,
);
export const deleteOldDeliveries = async (
  db: Query,
  { tenantId, webhookIds, days, limit }: { readonly tenantId: string; readonly webhookIds: readonly string[]; readonly days: number; readonly limit: number },
): Promise<number> => (await db.query(DELETE_OLD, [tenantId, webhookIds, days, limit])).length;
