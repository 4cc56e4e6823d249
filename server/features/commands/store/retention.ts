// Deletes commands that ended long ago, in small batches and on one node at a time. A round goes through the primary key, tenant by tenant, and each batch
// begins behind the one before: what was deleted stays in its pages until a vacuum, and nobody walks over it again.
import type { SqlTx } from "../../../core/events.ts";
import { idSince, oldestId } from "../../../core/id-times.ts";
import { becomeLeader } from "../../../core/leader-election.ts";
import { statement } from "../../../core/statements.ts";

/** How far a round has come. */
export interface RetentionPlace {
  readonly tenantId: string;
  /** The last command of the tenant that was looked at; null: the tenant is through. */
  readonly after: string | null;
}
export const RETENTION_START: RetentionPlace = { tenantId: "", after: null };

// Jumps from tenant to tenant, so its cost is the number of tenants and not that of their commands.
const FIND_TENANT = statement<{ readonly tenantId: string }>(
  "commands.findTenantToRetain",
  `with recursive t as (
     (select c.tenant_id from commands c where c.tenant_id > $1 order by c.tenant_id limit 1)
     union all select (select c.tenant_id from commands c where c.tenant_id > t.tenant_id order by c.tenant_id limit 1) from t where t.tenant_id is not null)
   select t.tenant_id as "tenantId" from t
    where t.tenant_id is not null and (select c.command_id from commands c where c.tenant_id = t.tenant_id order by c.command_id limit 1) < $2 limit 1`,
);

// An open command is kept however old it is. Rows are deleted by their place: a join could read all of the tenant's.
const DELETE_ENDED = statement<{ readonly looked: number; readonly last: string | null; readonly deleted: number }>(
  "commands.deleteEnded",
  `with old as materialized (
     select c.ctid as place, c.command_id, c.finished_at < $5::timestamptz as over from commands c
      where c.tenant_id = $1 and c.command_id > $2 and c.command_id < $3 order by c.command_id limit $4),
   gone as (delete from commands c where c.ctid = any(array(select place from old where over)) returning 1)
   select count(*)::int as looked, max(old.command_id) as last, (select count(*)::int from gone) as deleted from old`,
);

export interface RetentionBatch {
  readonly place: RetentionPlace;
  /** Commands that ended earlier go. */
  readonly before: Date;
  readonly limit: number;
}
export interface RetentionStep {
  /** Where the next batch begins; null: the round is over, or another node is at it. */
  readonly next: RetentionPlace | null;
  readonly deleted: number;
}

export const deleteEnded = async (tx: SqlTx, { place, before, limit }: RetentionBatch): Promise<RetentionStep> => {
  if (!(await becomeLeader(tx, "commandRetention"))) return { next: null, deleted: 0 };
  const until = idSince("cmd", before.getTime());
  if (place.after === null) {
    const [tenant] = await tx.query(FIND_TENANT, [place.tenantId, until]);
    return { next: tenant === undefined ? null : { ...tenant, after: oldestId("cmd") }, deleted: 0 };
  }
  const [batch] = await tx.query(DELETE_ENDED, [place.tenantId, place.after, until, limit, before]);
  if (batch === undefined) throw new Error("the query returned no row");
  const { looked, last, deleted } = batch;
  return { next: { tenantId: place.tenantId, after: looked < limit ? null : last }, deleted };
};
