// Rows of work that goes on in steps, and of the tenants' turns.
import type { SqlTx } from "../events.ts";
import type { SystemScope } from "../scope.ts";
import { statement } from "../statements.ts";
import type { NewWork, WorkState } from "./types.ts";

/** Rises when a release writes work that an older one would do wrong. */
export const ENGINE = 1;

export interface ClaimedWork {
  readonly tenantId: string;
  readonly recordId: string;
  readonly kind: string;
  readonly failures: number;
  readonly now: Date;
}

/** More tenants than steps run at once, so that a claim finds work although others have just taken that of the first ones. */
const TENANTS_TRIED = 16;

// The tenant that has waited longest comes first, however much work another one has.
const FIND_TENANTS = statement<{ readonly tenant_id: string }>(
  "many.findTenants",
  `select d.tenant_id from (select distinct w.tenant_id from many_work w where w.step_at <= now() and w.kind = any($1::text[]) and w.engine <= $2) d
     join tenants t on t.tenant_id = d.tenant_id and t.status = 'active'
     left join many_turns u on u.tenant_id = d.tenant_id order by u.last_step_at nulls first, d.tenant_id limit $3`,
);

// Two places per tenant in the whole installation, so one tenant cannot fill all nodes.
const TAKE_PLACE = statement<{ readonly mine: boolean }>(
  "many.takePlace",
  `select pg_try_advisory_xact_lock(hashtextextended($1, 7266530031)) or pg_try_advisory_xact_lock(hashtextextended($1, 7266530032)) as mine`,
);

// The lock of this row is the lease of the step.
const TAKE_WORK = statement<{ readonly record_id: string; readonly kind: string; readonly failures: number; readonly now: Date }>(
  "many.takeWork",
  `select w.record_id, w.kind, w.failures, now() from many_work w
    where w.tenant_id = $1 and w.step_at <= now() and w.kind = any($2::text[]) and w.engine <= $3
    order by w.priority, w.step_at limit 1 for no key update skip locked`,
);

/** Null: nothing is due, or others step all that is. */
export const claimWork = async (tx: SqlTx, kinds: readonly string[]): Promise<ClaimedWork | null> => {
  for (const { tenant_id: tenantId } of await tx.query(FIND_TENANTS, [kinds, ENGINE, TENANTS_TRIED])) {
    const [place] = await tx.query(TAKE_PLACE, [tenantId]);
    if (place?.mine !== true) continue;
    const [work] = await tx.query(TAKE_WORK, [tenantId, kinds, ENGINE]);
    if (work !== undefined) return { tenantId, recordId: work.record_id, kind: work.kind, failures: work.failures, now: work.now };
  }
  return null;
};

const FINISH_STEP = statement(
  "many.finishStep",
  `with gone as (delete from many_work w where w.tenant_id = $1 and w.record_id = $2 and $3::timestamptz is null),
   next as (update many_work w set step_at = $3, failures = 0, last_error = null where w.tenant_id = $1 and w.record_id = $2 and $3::timestamptz is not null)
   insert into many_turns (tenant_id, last_step_at) values ($1, clock_timestamp()) on conflict (tenant_id) do update set last_step_at = excluded.last_step_at`,
);

/** Null: the work has ended. */
export const finishStep = async (tx: SqlTx, { tenantId, recordId }: ClaimedWork, next: Date | null): Promise<void> => {
  await tx.query(FINISH_STEP, [tenantId, recordId, next]);
};

// 1, 2, 4 and so on to 60 seconds. Its tenant has had its turn.
const NOTE_FAILURE = statement(
  "many.noteFailure",
  `with failed as (update many_work w set failures = w.failures + 1, last_error = $3, step_at = now() + least(60, power(2, least(w.failures, 6))) * interval '1 second'
      where w.tenant_id = $1 and w.record_id = $2)
   insert into many_turns (tenant_id, last_step_at) select t.tenant_id, clock_timestamp() from tenants t where t.tenant_id = $1
     on conflict (tenant_id) do update set last_step_at = excluded.last_step_at`,
);

export const noteFailure = async (tx: SqlTx, { tenantId, recordId }: Pick<ClaimedWork, "tenantId" | "recordId">, error: string): Promise<void> => {
  await tx.query(NOTE_FAILURE, [tenantId, recordId, error]);
};

// The column has milliseconds and would round up, to a time that the next claim has not reached.
const BEGIN = statement(
  "many.begin",
  `insert into many_work (tenant_id, record_id, kind, priority, engine, step_at) values ($1, $2, $3, $4, $5, coalesce($6::timestamptz, date_trunc('milliseconds', now())))
     on conflict (tenant_id, record_id) do update set step_at = excluded.step_at`,
);
export const beginWork = async (tx: SqlTx, { tenantId }: SystemScope, { recordId, kind, priority, stepAt }: NewWork): Promise<void> => {
  await tx.query(BEGIN, [tenantId, recordId, kind, priority, ENGINE, stepAt]);
};

const HOLD = statement<{ readonly record_id: string }>(
  "many.hold",
  "select w.record_id from many_work w where w.tenant_id = $1 and w.record_id = $2 for no key update",
);
export const holdWork = async (tx: SqlTx, { tenantId }: SystemScope, recordId: string): Promise<boolean> =>
  (await tx.query(HOLD, [tenantId, recordId])).length > 0;

const WAKE = statement(
  "many.wake",
  "update many_work w set step_at = date_trunc('milliseconds', now()) where w.tenant_id = $1 and w.record_id = $2 and w.step_at > now()",
);
export const wakeWork = async (tx: SqlTx, { tenantId }: SystemScope, recordId: string): Promise<void> => {
  await tx.query(WAKE, [tenantId, recordId]);
};

const WAKE_IDLE = statement(
  "many.wakeIdle",
  `with idle as (select w.tenant_id, w.record_id from many_work w where w.tenant_id = $1 and w.record_id = any($2::text[]) and w.step_at > now()
      order by w.record_id for no key update skip locked)
   update many_work w set step_at = date_trunc('milliseconds', now()) from idle i where w.tenant_id = i.tenant_id and w.record_id = i.record_id`,
);
export const wakeIdleWork = async (tx: SqlTx, { tenantId }: Pick<SystemScope, "tenantId">, recordIds: readonly string[]): Promise<void> => {
  if (recordIds.length > 0) await tx.query(WAKE_IDLE, [tenantId, recordIds]);
};

const END = statement("many.end", "delete from many_work w where w.tenant_id = $1 and w.record_id = $2");
export const endWork = async (tx: SqlTx, { tenantId }: SystemScope, recordId: string): Promise<void> => {
  await tx.query(END, [tenantId, recordId]);
};

const STATES = statement<{ readonly record_id: string; readonly step_at: Date; readonly failures: number; readonly last_error: string | null }>(
  "many.states",
  "select w.record_id, w.step_at, w.failures, w.last_error from many_work w where w.tenant_id = $1 and w.record_id = any($2::text[])",
);
export const readStates = async (tx: SqlTx, { tenantId }: SystemScope, recordIds: readonly string[]): Promise<ReadonlyMap<string, WorkState>> => {
  const rows = recordIds.length === 0 ? [] : await tx.query(STATES, [tenantId, recordIds]);
  return new Map(rows.map((row) => [row.record_id, { stepAt: row.step_at, failures: row.failures, lastError: row.last_error }]));
};

const FIND_FAILING = statement<{
  readonly tenant_id: string;
  readonly record_id: string;
  readonly kind: string;
  readonly failures: number;
  readonly last_error: string | null;
  readonly since: Date;
}>(
  "many.findFailing",
  `select w.tenant_id, w.record_id, w.kind, w.failures, w.last_error, w.step_at - interval '60 seconds' as since from many_work w
    where w.step_at < now() + interval '61 seconds' and w.failures >= $1 order by w.step_at limit $2`,
);
/** Work whose last steps failed. */
export const findFailing = (sql: SqlTx, failures: number, limit: number) => sql.query(FIND_FAILING, [failures, limit]);
