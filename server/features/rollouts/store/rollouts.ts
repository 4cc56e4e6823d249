// Rows of rollouts.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { Page, RolloutStatus } from "../../../../protocol/index.ts";
import { isLimited } from "../../../core/access.ts";
import type { Clients, Tx } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { LIVE } from "../rules/states.ts";
import { type RolloutRow, toRolloutRow } from "./rollout-row.ts";

/** For the plan: those that are live, drafts not among them. */
export const countLiveRollouts = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).rollout.count({ where: { status: { in: [...LIVE] } } });

/** The rollouts that have one of a limited caller's devices; null for all others. */
const visibleTo = async (db: Clients, scope: SystemScope): Promise<readonly string[] | null> => {
  if (!isLimited(scope)) return null;
  const rows = await db.for(scope).rolloutDevice.groupBy({ by: ["rolloutId"] });
  return rows.map(({ rolloutId }) => rolloutId);
};

const list = createListing("rollouts", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "rolloutId", kind: "text" });
type RolloutsQuery = Parameters<typeof list>[0] & {
  readonly fleetId?: string | undefined;
  readonly updatePolicyId?: string | undefined;
  readonly subject?: "agent" | "app" | undefined;
  readonly status?: readonly string[] | undefined;
};

export const pageOfRollouts = async (db: Clients, scope: SystemScope, query: RolloutsQuery): Promise<Page<RolloutRow>> => {
  const { rollout } = db.for(scope);
  const { fleetId, updatePolicyId, subject, status } = query;
  const among = await visibleTo(db, scope);
  const where = {
    ...given({ fleetId, updatePolicyId }),
    ...(subject === undefined ? {} : { subject: subject === "agent" ? "agent" : { startsWith: "app:" } }),
    ...(status === undefined ? {} : { status: { in: [...status] } }),
    ...(among === null ? {} : { rolloutId: { in: [...among] } }),
  };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => rollout.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => rollout.count({ where }),
    record: toRolloutRow,
  });
};

interface InStatus {
  readonly status: readonly RolloutStatus[];
  readonly orderBy: Prisma.RolloutOrderByWithRelationInput[];
  readonly take: number;
}
const findInStatus = async (db: Clients, scope: SystemScope, { status, ...asked }: InStatus): Promise<readonly RolloutRow[]> => {
  const among = await visibleTo(db, scope);
  const where = { status: { in: [...status] }, ...(among === null ? {} : { rolloutId: { in: [...among] } }) };
  return (await db.for(scope).rollout.findMany({ where, ...asked })).map(toRolloutRow);
};
/** Rollouts that have not ended, the newest first. */
export const findUnderWay = (db: Clients, scope: SystemScope, take: number): Promise<readonly RolloutRow[]> =>
  findInStatus(db, scope, { status: LIVE, orderBy: [{ rolloutId: "desc" }], take });
/** Rollouts that stopped or wait for an approval. */
export const findStopped = (db: Clients, scope: SystemScope, take: number): Promise<readonly RolloutRow[]> =>
  findInStatus(db, scope, { status: ["paused", "awaiting_approval"], orderBy: [{ updatedAt: "desc" }, { rolloutId: "asc" }], take });

export const findRollout = async (db: Clients, scope: SystemScope, rolloutId: string): Promise<RolloutRow | null> => {
  const row = await db.for(scope).rollout.findFirst({ where: { rolloutId } });
  if (row === null) return null;
  const isSeen = !isLimited(scope) || (await db.for(scope).rolloutDevice.count({ where: { rolloutId } })) > 0;
  return isSeen ? toRolloutRow(row) : null;
};

const LOCK_ONE = statement<{ readonly rollout_id: string }>(
  "rollouts.lockOne",
  "select r.rollout_id from rollouts r where r.tenant_id = $1 and r.rollout_id = $2 for no key update",
);
/** Hold its work first. Null: there is none. */
export const lockRollout = async (tx: Tx, { tenantId }: SystemScope, rolloutId: string): Promise<RolloutRow | null> => {
  await tx.query(LOCK_ONE, [tenantId, rolloutId]);
  return findRollout(tx, { tenantId }, rolloutId);
};

export type NewRollout = Pick<
  RolloutRow,
  "rolloutId" | "name" | "fleetId" | "updatePolicyId" | "subject" | "settings" | "target" | "conflicts" | "status" | "createdBy"
> &
  Partial<Pick<RolloutRow, "content" | "startAt" | "retryOf" | "rollbackOf" | "followOf" | "steps" | "waitingFor" | "approvedBy">>;

export const insertRollout = async (db: Clients, { tenantId }: SystemScope, made: NewRollout): Promise<RolloutRow> => {
  const data = made as unknown as Prisma.RolloutUncheckedCreateInput; // as: parsed JSON
  return toRolloutRow(await db.for({ tenantId }).rollout.create({ data }));
};

/** Writes the whole row, which is locked. */
export const saveRollout = async (db: Clients, { tenantId }: SystemScope, row: RolloutRow): Promise<RolloutRow> => {
  const { rolloutId, tenantId: _tenant, content: _content, createdAt: _created, createdBy: _by, updatedAt: _updated, version: _version, ...columns } = row;
  const data = { ...columns, version: { increment: 1 } } as unknown as Prisma.RolloutUncheckedUpdateInput; // as: parsed JSON
  const [saved] = await db.for({ tenantId }).rollout.updateManyAndReturn({ where: { rolloutId }, data });
  if (saved === undefined) throw new Error(`rollout ${rolloutId} is gone although it is locked`);
  return toRolloutRow(saved);
};

/** The newest rollout that undoes this one. */
export const childOf = async (db: Clients, { tenantId }: SystemScope, rolloutId: string): Promise<RolloutRow | null> => {
  const row = await db.for({ tenantId }).rollout.findFirst({ where: { rollbackOf: rolloutId }, orderBy: { rolloutId: "desc" } });
  return row === null ? null : toRolloutRow(row);
};

/** Whether a rollout that has not ended updates the fleet. */
export const hasLiveRollout = async (db: Clients, { tenantId }: SystemScope, fleetId: string): Promise<boolean> =>
  (await db.for({ tenantId }).rollout.count({ where: { fleetId, status: { in: ["draft", ...LIVE] } } })) > 0;

export const liveRolloutsOf = async (db: Clients, { tenantId }: SystemScope, fleetId: string, limit: number): Promise<readonly string[]> => {
  const rows = await db
    .for({ tenantId })
    .rollout.findMany({ where: { fleetId, status: { in: [...LIVE] } }, orderBy: { rolloutId: "asc" }, take: limit, select: { rolloutId: true } });
  return rows.map(({ rolloutId }) => rolloutId);
};

/** The newest rollout of this subject on the fleet that has begun. */
export const newestOf = async (
  db: Clients,
  { tenantId }: SystemScope,
  { fleetId, subject }: Pick<RolloutRow, "fleetId" | "subject">,
): Promise<string | null> => {
  const row = await db.for({ tenantId }).rollout.findFirst({
    where: { fleetId, subject, phase: { gt: 0 }, rollbackOf: null },
    orderBy: { rolloutId: "desc" },
    select: { rolloutId: true },
  });
  return row?.rolloutId ?? null;
};

const FORGET_DEVICES = statement<{ readonly forgotten: number }>(
  "rollouts.forgetDevices",
  `with gone as (delete from rollout_devices m where m.ctid = any(array(
       select o.ctid from rollouts r join rollout_devices o on o.tenant_id = r.tenant_id and o.rollout_id = r.rollout_id where r.completed_at < $1 limit $2)) returning 1)
   select count(*)::int as forgotten from gone`,
);
const FORGOTTEN_AT_ONCE = 500;
/** Forgets ended rollouts of all tenants, their devices first. True if there may be more. */
export const forgetEnded = async (db: Clients & SqlTx, before: Date): Promise<boolean> => {
  const [gone] = await db.query(FORGET_DEVICES, [before, FORGOTTEN_AT_ONCE]);
  if ((gone?.forgotten ?? 0) > 0) return true;
  const rollouts = await db.system.rollout.deleteMany({ where: { completedAt: { lt: before } }, limit: FORGOTTEN_AT_ONCE });
  return rollouts.count === FORGOTTEN_AT_ONCE;
};

/** Live rollouts of the same subject that have not frozen their devices. */
export const findUnfrozen = async (
  db: Clients,
  { tenantId }: SystemScope,
  { rolloutId, subject }: Pick<RolloutRow, "rolloutId" | "subject">,
): Promise<readonly RolloutRow[]> => {
  const where = { subject, phase: 0, status: { in: ["awaiting_approval", "scheduled"] }, rolloutId: { not: rolloutId }, rollbackOf: null, retryOf: null };
  return (await db.for({ tenantId }).rollout.findMany({ where, take: MAX_LIVE })).map(toRolloutRow);
};
const MAX_LIVE = 100;

/** The step of a rollout after which nobody follows any more. */
export const GIVEN_UP = "follow_given_up";
const MAX_FAILED = 3;
const FIND_FOLLOWED = statement<{ readonly tenant_id: string; readonly rollout_id: string; readonly given_up: boolean }>(
  "rollouts.findFollowed",
  `select x.tenant_id, x.rollout_id, x.failed >= ${MAX_FAILED} as given_up from (select distinct on (r.tenant_id, r.fleet_id, r.subject) r.tenant_id, r.rollout_id, r.status, r.settings ->> 'newDevices' as joining, r.follow_of, r.steps,
        (select count(*) from rollouts o where o.tenant_id = r.tenant_id and o.follow_of = coalesce(r.follow_of, r.rollout_id) and o.status in ('failed', 'aborted') and o.rollout_id >= coalesce(
          (select max(g.rollout_id) from rollouts g where g.tenant_id = r.tenant_id and g.follow_of = coalesce(r.follow_of, r.rollout_id) and g.status = 'completed'), '')) as failed
      from rollouts r where r.completed_at > $1 and r.rollback_of is null and r.phase > 0 order by r.tenant_id, r.fleet_id, r.subject, r.rollout_id desc) x
    where x.joining = 'follow' and (x.status = 'completed' or x.follow_of is not null) 
      and (x.failed < ${MAX_FAILED} or not exists (select from json_array_elements(x.steps) s where s ->> 'event' = '${GIVEN_UP}')) order by x.rollout_id limit $2`,
);
/** The newest rollout of each fleet and subject that follows new devices, over all tenants. `givenUp`: three failed in a row, and nobody was told of it. */
export const findFollowed = async (
  db: Clients & SqlTx,
  since: Date,
  limit: number,
): Promise<readonly { readonly row: RolloutRow; readonly givenUp: boolean }[]> => {
  const found = await db.query(FIND_FOLLOWED, [since, limit]);
  const rows = await db.system.rollout.findMany({ where: { rolloutId: { in: found.map(({ rollout_id }) => rollout_id) } } });
  const givenUp = new Set(found.flatMap(({ rollout_id, given_up }) => (given_up ? [rollout_id] : [])));
  return rows.map((row) => ({ row: toRolloutRow(row), givenUp: givenUp.has(row.rolloutId) }));
};
