// Rows of the work on deliveries: leases of endpoints, what is due, results.

import { statement } from "../../../core/statements.ts";
import type { Sql } from "../../../platform/database/db.ts";

type Query = Pick<Sql, "query">;

export interface Leased {
  readonly webhook_id: string;
  readonly tenant_id: string;
  readonly fence: number;
  readonly consecutive_failures: number;
  readonly failing_since: Date | null;
}

// By the database's clock; nodes skip the rows that another one is leasing.
const CLAIM = statement<Leased>(
  "webhooks.claim",
  `update webhook_endpoints set holder = $1, fence = fence + 1, leased_until = clock_timestamp() + make_interval(secs => $2)
    where webhook_id in (
      select webhook_id from webhook_endpoints where next_due_at <= now() and (leased_until is null or leased_until <= now())
       order by next_due_at limit $3 for no key update skip locked)
   returning webhook_id, tenant_id, fence, consecutive_failures, failing_since`,
);
export const claimEndpoints = (db: Query, holder: string, leaseSeconds: number, limit: number): Promise<readonly Leased[]> =>
  db.query(CLAIM, [holder, leaseSeconds, limit]);

export interface Held {
  readonly webhookId: string;
  readonly fence: number;
}
const idsOf = (held: readonly Pick<Held, "webhookId">[]) => held.map(({ webhookId }) => webhookId);
const fencesOf = (held: readonly Held[]) => held.map(({ fence }) => fence);
const LOCKED = `locked as (
   select e.webhook_id from webhook_endpoints e join unnest($1::text[], $2::bigint[]) as v(webhook_id, fence) on v.webhook_id = e.webhook_id and v.fence = e.fence
    order by e.webhook_id for no key update of e)`;

const RENEW = statement<{ readonly webhook_id: string }>(
  "webhooks.renew",
  `with ${LOCKED}
   update webhook_endpoints e set leased_until = clock_timestamp() + make_interval(secs => $3) from locked where e.webhook_id = locked.webhook_id
   returning e.webhook_id`,
);
/** The endpoints that are still held. */
export const renewLeases = async (db: Query, held: readonly Held[], leaseSeconds: number): Promise<ReadonlySet<string>> => {
  const rows = await db.query(RENEW, [idsOf(held), fencesOf(held), leaseSeconds]);
  return new Set(rows.map(({ webhook_id }) => webhook_id));
};

export interface EndpointRow {
  readonly webhook_id: string;
  readonly epoch: number;
  readonly url: string;
  readonly format: string;
  readonly is_open: boolean;
  readonly secret: Buffer;
  readonly previous_secret: Buffer | null;
  readonly headers: Buffer | null;
  readonly max_per_second: number;
  readonly version: number;
}
const READ_ENDPOINTS = statement<EndpointRow>(
  "webhooks.readEndpoints",
  `select e.webhook_id, e.epoch, w.url, w.format, w.status = 'active' and w.deleted_at is null as is_open, w.secret,
          case when w.previous_secret_until > now() then w.previous_secret end as previous_secret, w.headers, w.max_per_second, w.version
     from webhook_endpoints e join webhooks w on w.tenant_id = e.tenant_id and w.webhook_id = e.webhook_id where e.webhook_id = any($1::text[])`,
);
export const readEndpoints = (db: Query, webhookIds: readonly string[]): Promise<readonly EndpointRow[]> => db.query(READ_ENDPOINTS, [webhookIds]);

export interface DueRow {
  readonly webhook_id: string;
  readonly delivery_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly subject_id: string;
  readonly trigger: string;
  readonly body: string;
  readonly traceparent: string | null;
  readonly tries: number;
  readonly attempt_count: number;
}
// An earlier event of the subject that waits for its next attempt holds back the later ones, for an hour at most. `offset 0` keeps this a look into an
// index per row, and `least` leaves the planner only the index of subjects: with old statistics it read all that waits, for each row.
const READ_DUE = statement<DueRow>(
  "webhooks.readDue",
  `select d.* from unnest($1::text[], $2::int[]) as wanted(webhook_id, places) cross join lateral (
     select o.webhook_id, o.delivery_id, o.event_id, o.event_type, o.subject_id, o.trigger, o.body, o.traceparent, o.tries, o.attempt_count
       from webhook_deliveries o
      where o.webhook_id = wanted.webhook_id and o.status in ('pending', 'retrying') and o.next_attempt_at <= now()
        and not exists (
          select 1 from webhook_deliveries h where h.webhook_id = o.webhook_id and h.subject_id = o.subject_id and h.status = 'retrying'
             and h.position < o.position and least(h.next_attempt_at, h.holds_until) > now() offset 0)
        and (o.webhook_id, o.subject_id) not in (select busy.* from unnest($3::text[], $4::text[]) as busy)
      order by o.position limit wanted.places) as d`,
);
export interface Wanted {
  readonly webhookId: string;
  readonly places: number;
  /** Subjects of which the caller still has something. */
  readonly busy: readonly string[];
}
export const readDue = (db: Query, wanted: readonly Wanted[]): Promise<readonly DueRow[]> =>
  db.query(READ_DUE, [
    wanted.map(({ webhookId }) => webhookId),
    wanted.map(({ places }) => places),
    wanted.flatMap(({ webhookId, busy }) => busy.map(() => webhookId)),
    wanted.flatMap(({ busy }) => busy),
  ]);

export interface Result {
  readonly webhookId: string;
  readonly deliveryId: string;
  /** Attempts before this one: whoever writes first wins. */
  readonly attemptsBefore: number;
  readonly status: "succeeded" | "retrying" | "exhausted" | "blocked";
  /** Seconds until the next attempt. */
  readonly delay: number | null;
  readonly attempt: object;
}
export interface Health extends Held {
  readonly consecutiveFailures: number;
  readonly failingSince: Date | null;
  /** The number in this batch. */
  readonly succeeded: number;
  readonly failed: number;
}
/** Kept per delivery. */
const ATTEMPTS = 20;
// `not in`, although it says the same as `in ('pending', 'retrying')`: the planner must not take the index of open rows and read all of them per result.
const WRITE_RESULTS = statement(
  "webhooks.writeResults",
  `with ${LOCKED},
   fared as (
     update webhook_endpoints e set consecutive_failures = h.failures, failing_since = h.since,
            last_success_at = case when h.succeeded > 0 then now() else e.last_success_at end,
            last_failure_at = case when h.failed > 0 then now() else e.last_failure_at end
       from unnest($1::text[], $3::int[], $4::timestamptz[], $5::int[], $6::int[]) as h(webhook_id, failures, since, succeeded, failed)
       join locked on locked.webhook_id = h.webhook_id where e.webhook_id = h.webhook_id
     returning e.tenant_id, e.webhook_id, h.succeeded, h.failed),
   counted as (
     insert into webhook_hours as c (tenant_id, webhook_id, hour, succeeded, failed)
     select tenant_id, webhook_id, date_trunc('hour', now()), succeeded, failed from fared
     on conflict (tenant_id, webhook_id, hour) do update set succeeded = c.succeeded + excluded.succeeded, failed = c.failed + excluded.failed)
   update webhook_deliveries d set status = r.status, tries = d.tries + 1, attempt_count = d.attempt_count + 1,
          attempts = case when jsonb_array_length(d.attempts) < ${ATTEMPTS} then d.attempts else d.attempts - 0 end || r.attempt,
          next_attempt_at = now() + make_interval(secs => r.delay),
          completed_at = case when r.delay is null then now() end
     from unnest($7::text[], $8::text[], $9::int[], $10::text[], $11::float8[], $12::jsonb[]) as r(webhook_id, delivery_id, before, status, delay, attempt)
     join locked on locked.webhook_id = r.webhook_id
    where d.delivery_id = r.delivery_id and d.attempt_count = r.before and d.status not in ('succeeded', 'exhausted', 'cancelled', 'blocked')`,
);
/** Writes nothing of an endpoint that another node has leased meanwhile. */
export const writeResults = async (db: Query, health: readonly Health[], results: readonly Result[]): Promise<void> => {
  await db.query(WRITE_RESULTS, [
    idsOf(health),
    fencesOf(health),
    health.map(({ consecutiveFailures }) => consecutiveFailures),
    health.map(({ failingSince }) => failingSince),
    health.map(({ succeeded }) => succeeded),
    health.map(({ failed }) => failed),
    idsOf(results),
    results.map(({ deliveryId }) => deliveryId),
    results.map(({ attemptsBefore }) => attemptsBefore),
    results.map(({ status }) => status),
    results.map(({ delay }) => delay),
    results.map(({ attempt }) => JSON.stringify(attempt)),
  ]);
};

/** What is due although it is held back is looked at again after this time. */
const HELD_SECONDS = 5;
const RELEASE = statement<{ readonly webhook_id: string }>(
  "webhooks.release",
  `with locked as (
     select e.webhook_id from webhook_endpoints e
       join unnest($1::text[], $2::bigint[], $3::bigint[]) as v(webhook_id, fence, epoch) on v.webhook_id = e.webhook_id and v.fence = e.fence and v.epoch = e.epoch
      order by e.webhook_id for no key update of e)
   update webhook_endpoints e set holder = null, leased_until = null, next_due_at = least(
       (select min(r.next_attempt_at) from webhook_deliveries r where r.webhook_id = e.webhook_id and r.status = 'retrying' and r.next_attempt_at > now()),
       case when exists (select 1 from webhook_deliveries o where o.webhook_id = e.webhook_id and o.status in ('pending', 'retrying') and o.next_attempt_at <= now())
            then now() + interval '${HELD_SECONDS} seconds' end)
     from locked where e.webhook_id = locked.webhook_id
   returning e.webhook_id`,
);
/** Gives back endpoints that have nothing due; not those that have got something since `epoch` was read. */
export const releaseEndpoints = async (db: Query, held: readonly (Held & { readonly epoch: number })[]): Promise<ReadonlySet<string>> => {
  const rows = await db.query(RELEASE, [idsOf(held), fencesOf(held), held.map(({ epoch }) => epoch)]);
  return new Set(rows.map(({ webhook_id }) => webhook_id));
};

const HAND_BACK = statement(
  "webhooks.handBack",
  `with ${LOCKED} update webhook_endpoints e set holder = null, leased_until = null from locked where e.webhook_id = locked.webhook_id`,
);
/** Lets other nodes go on with them at once. */
export const handBack = async (db: Query, held: readonly Held[]): Promise<void> => {
  await db.query(HAND_BACK, [idsOf(held), fencesOf(held)]);
};

const CANCEL_SOME = statement<{ readonly delivery_id: string }>(
  "webhooks.cancelSome",
  `update webhook_deliveries set status = 'cancelled', next_attempt_at = null, completed_at = now()
    where delivery_id in (select delivery_id from webhook_deliveries where webhook_id = $1 and status in ('pending', 'retrying') order by position limit 1000)
   returning delivery_id`,
);
/** Cancels deliveries of a webhook that is disabled or deleted; true when there may be more. */
export const cancelSome = async (db: Query, webhookId: string): Promise<boolean> => (await db.query(CANCEL_SOME, [webhookId])).length === 1_000;
