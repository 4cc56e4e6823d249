// Points of a day's line: one statement counts all tenants every half hour, so that nobody who looks pays for it.
import { DAY_POINTS, POINT_SECONDS } from "../../../protocol/index.ts";
import type { SqlTx } from "../../core/events.ts";
import { goodBackup } from "../../core/rows/good-backup.ts";
import type { SystemScope } from "../../core/scope.ts";
import { statement } from "../../core/statements.ts";

const POINT_MS = POINT_SECONDS * 1_000;

const COUNTED = statement<{ readonly counted: boolean }>("overview.counted", "select exists (select from overview_points p where p.at = $1) as counted");
/** Whether some node has counted at this time. */
export const isCounted = async (sql: SqlTx, at: Date): Promise<boolean> => (await sql.query(COUNTED, [at]))[0]?.counted ?? false;

// An app counts as backed up once there was any backup of it.
const COUNT = statement(
  "overview.count",
  `with d as (
     select d.tenant_id, count(*) filter (where d.status = 'online') as online, count(*) filter (where d.status = 'offline') as offline
       from devices d where d.deleted_at is null group by d.tenant_id),
   a as (select a.tenant_id, count(*) as error from apps a where a.removed_at is null and a.status = 'error' group by a.tenant_id),
   c as (select c.tenant_id, count(*) as queued from commands c where c.issued_at >= $3 and c.issued_at < $2 group by c.tenant_id),
   saved as (
     select b.tenant_id, max(b.completed_at) filter (where ${goodBackup("b")}) >= $2::timestamptz - interval '26 hours' as fresh
       from backups b join apps a on a.tenant_id = b.tenant_id and a.app_id = b.app_id and a.removed_at is null group by b.tenant_id, b.app_id),
   s as (select s.tenant_id, count(*) filter (where s.fresh) as fresh, count(*) filter (where s.fresh is not true) as late from saved s group by s.tenant_id)
   insert into overview_points as p (tenant_id, slot, at, online, offline, apps_in_error, commands, fresh_backups, late_backups)
   select t.tenant_id, $1::int2, $2, coalesce(d.online, 0), coalesce(d.offline, 0), coalesce(a.error, 0), coalesce(c.queued, 0), coalesce(s.fresh, 0), coalesce(s.late, 0)
     from tenants t left join d using (tenant_id) left join a using (tenant_id) left join c using (tenant_id) left join s using (tenant_id) order by t.tenant_id
   on conflict (tenant_id, slot) do update set at = excluded.at, online = excluded.online, offline = excluded.offline, apps_in_error = excluded.apps_in_error,
     commands = excluded.commands, fresh_backups = excluded.fresh_backups, late_backups = excluded.late_backups`,
);
const slotAt = (at: Date): number => (at.getTime() / POINT_MS) % DAY_POINTS;
/** At a time of `lastPointAt`. */
export const countAll = (sql: SqlTx, at: Date): Promise<unknown> => sql.query(COUNT, [slotAt(at), at, new Date(at.getTime() - POINT_MS)]);

/** The newest time at which points are counted. */
export const lastPointAt = (now: Date): Date => new Date(Math.floor(now.getTime() / POINT_MS) * POINT_MS);

export interface PointRow {
  readonly at: Date;
  readonly online: number;
  readonly offline: number;
  readonly apps_in_error: number;
  readonly commands: number;
  readonly fresh_backups: number;
  readonly late_backups: number;
}
const READ = statement<PointRow>(
  "overview.read",
  "select p.at, p.online, p.offline, p.apps_in_error, p.commands, p.fresh_backups, p.late_backups from overview_points p where p.tenant_id = $1 and p.at > $2 and p.at <= $3",
);
/** The tenant's points of the 24 hours up to this time. */
export const readPoints = (sql: SqlTx, { tenantId }: SystemScope, until: Date): Promise<readonly PointRow[]> =>
  sql.query(READ, [tenantId, new Date(until.getTime() - DAY_POINTS * POINT_MS), until]);
