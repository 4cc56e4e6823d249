// Rows of security events: written in batches with a bound per tenant, type and day, and read by the rules.
import { factsOf, type SecurityEventType } from "../../../protocol/index.ts";
import type { SqlTx } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { deleteByTime, type ExpiryBatch, type ExpiryStep, runExpiry } from "../../core/rows/retention.ts";
import { statement } from "../../core/statements.ts";
import type { Counted } from "./watch.ts";

/** A limit for each type, so that noise of one leaves room for the others. */
const ROWS_PER_DAY = 1_000;

// A key that moves between two known addresses is no news, so only an address without an event makes one.
const WRITE = statement<{ readonly eventId: string }>(
  "security.writeEvents",
  `with given as (
     select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::int[],
       $11::text[], $12::text[], $13::text[])
       as g(event_id, tenant_id, type, severity, entity_type, entity_id, minute, first_at, last_at, count, ip_address, reason, operation)
   ), quota as (
     select k.tenant_id, k.type, $14::int - (select count(*) from
       (select 1 from security_events e where e.tenant_id = k.tenant_id and e.type = k.type and e.minute > now() - interval '1 day' limit $14::int) c) as free
     from (select distinct tenant_id, type from given) k
   ), known as (
     select g.*, q.free, exists (select 1 from security_events e where e.tenant_id = g.tenant_id and e.type = g.type and e.entity_type = g.entity_type
       and e.entity_id = g.entity_id and e.minute = g.minute) as is_known
     from given g join quota q on q.tenant_id = g.tenant_id and q.type = g.type
     where g.type <> 'api_key.used_from_new_ip' or not exists (select 1 from security_events e where e.tenant_id = g.tenant_id and e.type = g.type
       and e.entity_type = g.entity_type and e.entity_id = g.entity_id and e.ip_address = g.ip_address)
   ), placed as (
     select k.*, row_number() over (partition by k.tenant_id, k.type, k.is_known order by k.event_id) as place from known k
   )
   insert into security_events (event_id, tenant_id, type, severity, entity_type, entity_id, minute, first_at, last_at, count, ip_address, reason, operation)
   select event_id, tenant_id, type, severity, entity_type, entity_id, minute, first_at, last_at, count, ip_address, reason, operation from placed
   where is_known or place <= free
   on conflict (tenant_id, type, entity_type, entity_id, minute) do update set count = security_events.count + excluded.count, pending = true,
     last_at = greatest(security_events.last_at, excluded.last_at), ip_address = excluded.ip_address, reason = excluded.reason, operation = excluded.operation
   returning event_id as "eventId"`,
);

/** How many of them became rows, or part of one. */
export const writeEvents = async (sql: SqlTx, counted: readonly Counted[]): Promise<number> => {
  const of = <T>(read: (each: Counted) => T): T[] => counted.map(read);
  const rows = await sql.query(WRITE, [
    of(() => newId("sev")),
    of(({ tenantId }) => tenantId),
    of(({ type }) => type),
    of(({ type }) => factsOf(type).severity),
    of(({ entityType }) => entityType),
    of(({ entityId }) => entityId),
    of(({ minute }) => minute),
    of(({ firstAt }) => firstAt),
    of(({ lastAt }) => lastAt),
    of(({ total, written }) => total - written),
    of(({ ipAddress }) => ipAddress),
    of(({ reason }) => reason),
    of(({ operation }) => operation),
    ROWS_PER_DAY,
  ]);
  return rows.length;
};

export interface TakenEvent {
  readonly tenantId: string;
  readonly type: SecurityEventType;
  readonly entityType: string;
  readonly entityId: string;
  readonly ipAddress: string | null;
  readonly lastAt: Date;
}

const TAKE = statement<TakenEvent>(
  "security.takePending",
  `update security_events e set pending = false where e.event_id in (
     select p.event_id from security_events p where p.pending and p.tenant_id = (select f.tenant_id from security_events f where f.pending order by f.last_at limit 1)
     order by p.last_at limit $1 for update skip locked)
   returning e.tenant_id as "tenantId", e.type, e.entity_type as "entityType", e.entity_id as "entityId", e.ip_address as "ipAddress", e.last_at as "lastAt"`,
);

/** Events of one tenant that no rule has seen; nobody else gets them, and they are pending again if the transaction fails. */
export const takePending = (tx: SqlTx, limit: number): Promise<readonly TakenEvent[]> => tx.query(TAKE, [limit]);

const SUM = statement<{ readonly total: number }>(
  "security.sumSince",
  `select coalesce(sum(count), 0)::int as total from security_events
   where tenant_id = $1 and type = $2 and entity_type = $3 and entity_id = $4 and last_at > $5::timestamptz`,
);

export const sumSince = async (sql: SqlTx, { tenantId, type, entityType, entityId }: TakenEvent, since: Date): Promise<number> =>
  (await sql.query(SUM, [tenantId, type, entityType, entityId, since]))[0]?.total ?? 0;

const EVENT_DAYS = 30;
const ALERT_DAYS = 180;
const DELETE_OLD = statement<ExpiryStep>(
  "security.deleteOldEvents",
  deleteByTime({ table: "security_events", time: "last_at", before: `now() - interval '${EVENT_DAYS} days'` }),
);
const DELETE_OLD_ALERTS = statement<ExpiryStep>(
  "security.deleteOldAlerts",
  deleteByTime({ table: "security_alerts", time: "resolved_at", before: `now() - interval '${ALERT_DAYS} days'` }),
);

export const deleteOldSecurityEvents = (sql: SqlTx, batch: ExpiryBatch): Promise<ExpiryStep> => runExpiry(sql, DELETE_OLD, batch);
export const deleteOldSecurityAlerts = (sql: SqlTx, batch: ExpiryBatch): Promise<ExpiryStep> => runExpiry(sql, DELETE_OLD_ALERTS, batch);
