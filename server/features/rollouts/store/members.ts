// The devices of a rollout in a step: what is open, what comes next, and what has become of them, each for all of them in one statement.
import type { FleetSelector, RolloutDeviceStatus } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import { matchesAnyRule } from "../../../core/people/fleet-rules.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

/** What is known of the app of a device. */
interface AppColumns {
  readonly app_id: string | null;
  readonly app_status: string | null;
  readonly app_revision: number | null;
  readonly app_last_revision: number | null;
  readonly app_version: string | null;
  readonly app_reported: number | null;
  readonly app_failure: string | null;
  readonly app_message: string | null;
  readonly app_lines: readonly string[] | null;
}
const APP_COLUMNS = `m.app_id, a.status as app_status, a.revision as app_revision, a.last_revision as app_last_revision, a.template_version as app_version,
  (a.reported ->> 'revision')::int as app_reported, a.failure ->> 'reason' as app_failure, a.failure ->> 'message' as app_message, a.failure -> 'lines' as app_lines`;
// `offset 0` makes each member find its own row by the key. A planner whose figures of a new fleet are old reads all devices of the tenant instead.
const DEVICE = `cross join lateral (select * from devices f where f.tenant_id = m.tenant_id and f.device_id = m.device_id offset 0) d
  left join lateral (select * from apps f where f.tenant_id = m.tenant_id and f.app_id = m.app_id and f.removed_at is null offset 0) a on true`;

export interface OpenMember extends AppColumns {
  readonly device_id: string;
  readonly position: number;
  readonly status: "ordered" | "verifying";
  readonly attempt: number;
  readonly command_id: string | null;
  readonly revision: number | null;
  readonly before_revision: number | null;
  readonly before_version: string | null;
  readonly deadline_at: Date | null;
  /** Null while the command is open. */
  readonly ended_as: string | null;
  readonly failure_code: string | null;
  readonly said: string | null;
  readonly sent_at: Date | null;
  readonly agent_version: string | null;
  readonly is_deleted: boolean;
}

// The statement reads by primary keys, at most as many as may be under way at once.
const FIND_OPEN = statement<OpenMember>(
  "rollouts.findOpen",
  `select m.device_id, m.position, m.status, m.attempt, m.command_id, m.revision, (m.before ->> 'revision')::int as before_revision, m.before ->> 'version' as before_version,
      m.deadline_at, c.status as ended_as, c.failure_code, left(c.output ->> 'message', 500) as said, coalesce(q.sent_at, c.sent_at) as sent_at, d.agent_version,
      d.deleted_at is not null as is_deleted, ${APP_COLUMNS}
     from rollout_devices m ${DEVICE}
     left join lateral (select * from commands f where f.tenant_id = m.tenant_id and f.command_id = m.command_id offset 0) c on true
     left join lateral (select * from command_queue f where f.tenant_id = c.tenant_id and f.device_id = c.device_id and f.seq = c.seq offset 0) q on true
    where m.tenant_id = $1 and m.rollout_id = $2 and m.status in ('ordered', 'verifying') order by m.position limit 1000`,
);
export const findOpen = (tx: SqlTx, { tenantId }: SystemScope, rolloutId: string): Promise<OpenMember[]> => tx.query(FIND_OPEN, [tenantId, rolloutId]);

export interface WaitingMember extends AppColumns {
  readonly device_id: string;
  readonly position: number;
  readonly late: boolean;
  readonly attempt: number;
  readonly ordered_at: Date | null;
  readonly is_online: boolean;
  readonly is_deleted: boolean;
  readonly in_fleet: boolean;
  readonly agent_version: string | null;
  /** The revision that a rollback restores. */
  readonly restore: number | null;
}

const FIND_WAITING = statement<WaitingMember>(
  "rollouts.findWaiting",
  `select m.device_id, m.position, m.late, m.attempt, m.ordered_at, d.status = 'online' as is_online, d.deleted_at is not null as is_deleted,
      ($5::text is null or ($6::jsonb is null and d.fleet_ids @> array[$5::text]) or ($6::jsonb is not null and ${matchesAnyRule("d", "$6::jsonb")})) as in_fleet,
      d.agent_version, (m.before ->> 'restore')::int as restore, ${APP_COLUMNS}
     from (select * from (select * from rollout_devices o where o.tenant_id = $1 and o.rollout_id = $2 and o.status = 'pending' and o.due order by o.position limit $4) u
       union all select * from (select * from rollout_devices o where o.tenant_id = $1 and o.rollout_id = $2 and o.status = 'pending' and not o.late and not o.due and o.position <= $3
         and (o.deadline_at is null or o.deadline_at <= $7)
         and not exists (select from rollout_devices e where e.tenant_id = o.tenant_id and e.device_id = o.device_id and e.status in ('ordered', 'verifying') offset 0)
         order by o.position limit $4) w) m ${DEVICE}
    order by m.due desc, m.position limit $4`,
);

export interface WaitingTurn {
  readonly rolloutId: string;
  /** The last position of the current phase. */
  readonly bound: number;
  readonly limit: number;
  /** Null: whoever left the fleet stays a member, as in a rollback. */
  readonly fleet: { readonly fleetId: string; readonly selector: FleetSelector | null } | null;
  readonly now: Date;
}
/** The next in turn, those that have come back first. */
export const findWaitingMembers = (tx: SqlTx, { tenantId }: SystemScope, { rolloutId, bound, limit, fleet, now }: WaitingTurn): Promise<WaitingMember[]> => {
  const selector = fleet === null || fleet.selector === null ? null : JSON.stringify([fleet.selector]);
  return tx.query(FIND_WAITING, [tenantId, rolloutId, bound, limit, fleet?.fleetId ?? null, selector, now]);
};

/** What becomes of one device; what is absent stays as it is. */
export interface RolloutMemberChange {
  readonly deviceId: string;
  readonly status: RolloutDeviceStatus;
  readonly late?: boolean;
  readonly code?: string | null;
  readonly message?: string | null;
  readonly lines?: readonly string[] | null;
  readonly attempt?: number;
  readonly commandId?: string | null;
  readonly after?: { readonly version: string | null; readonly revision: number | null } | null;
  readonly revision?: number | null;
  readonly orderedAt?: Date | null;
  readonly deadlineAt?: Date | null;
  readonly finishedAt?: Date | null;
}

const kept = (name: string, type: string): string => `case when n.change ? '${name}' then (n.change ->> '${name}')::${type} else m.${columnOf(name)} end`;
const keptJson = (name: string): string => `case when n.change ? '${name}' then nullif(n.change -> '${name}', 'null'::jsonb) else m.${name} end`;
const columnOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

// The array names the keys once more, so that the rows are found by them whatever the planner believes of a rollout that has just been frozen.
const SAVE = statement(
  "rollouts.saveMembers",
  `update rollout_devices m set status = n.change ->> 'status', due = false, late = ${kept("late", "boolean")}, code = ${kept("code", "text")}, message = ${kept("message", "text")},
      lines = ${keptJson("lines")},
      attempt = ${kept("attempt", "int")}, command_id = ${kept("commandId", "text")}, after = ${keptJson("after")},
      revision = ${kept("revision", "int")}, ordered_at = ${kept("orderedAt", "timestamptz")}, deadline_at = ${kept("deadlineAt", "timestamptz")},
      finished_at = ${kept("finishedAt", "timestamptz")}
     from (select change ->> 'deviceId' as device_id, change from jsonb_array_elements($3::jsonb) as change) n
    where m.tenant_id = $1 and m.rollout_id = $2 and m.device_id = any($4::text[]) and m.device_id = n.device_id`,
);
export const saveMembers = async (tx: SqlTx, { tenantId }: SystemScope, rolloutId: string, changes: readonly RolloutMemberChange[]): Promise<void> => {
  if (changes.length === 0) return;
  await tx.query(SAVE, [tenantId, rolloutId, JSON.stringify(changes), changes.map(({ deviceId }) => deviceId)]);
};

const ABORT_PENDING = statement<{ readonly count: number }>(
  "rollouts.abortPending",
  `with gone as (update rollout_devices m set status = $3, code = $4, due = false, late = false, finished_at = $5 where m.ctid = any(array(
       select o.ctid from rollout_devices o where o.tenant_id = $1 and o.rollout_id = $2 and o.status = 'pending' and (not $7::boolean or o.late) limit $6)) returning 1)
   select count(*)::int as count from gone`,
);
/** Ends what is pending, `limit` at once; only those that are late if so asked. */
export const endPending = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  rolloutId: string,
  end: { readonly status: "aborted" | "skipped"; readonly code: string; readonly now: Date; readonly limit: number; readonly onlyLate: boolean },
): Promise<number> => (await tx.query(ABORT_PENDING, [tenantId, rolloutId, end.status, end.code, end.now, end.limit, end.onlyLate]))[0]?.count ?? 0;

const OFFLINE_MINUTES = 10;
export interface Broken {
  readonly device_id: string;
  readonly position: number;
  readonly code: string;
  readonly message: string | null;
  readonly lines: readonly string[] | null;
}
// The devices that had succeeded and are away since then for longer than ten minutes and not in maintenance, or no longer what they were to be.
const FIND_BROKEN = statement<Broken>(
  "rollouts.findBroken",
  `select m.device_id, m.position, case when $5::text is null and d.agent_version is distinct from $6 then 'WRONG_VERSION'
        when $5::text is not null and (a.app_id is null or a.status = 'error' or a.revision < m.revision) then 'APP_FAILED_IN_SOAK' else 'LOST_AFTER_UPDATE' end as code,
      a.failure ->> 'message' as message, a.failure -> 'lines' as lines
     from rollout_devices m ${DEVICE} left join device_presence p on p.device_id = m.device_id
    where m.tenant_id = $1 and m.rollout_id = $2 and m.status = 'succeeded' and m.position between $3 and $4 and d.deleted_at is null
      and (($5::text is null and d.agent_version is distinct from $6) or ($5::text is not null and (a.app_id is null or a.status = 'error' or a.revision < m.revision))
        or (d.status = 'offline' and p.last_seen_at < $7::timestamptz - interval '${OFFLINE_MINUTES} minutes' and coalesce((d.maintenance ->> 'enabled')::boolean, false) = false))
    order by m.position limit 1000`,
);
export interface Soaking {
  readonly rolloutId: string;
  readonly from: number;
  readonly to: number;
  readonly template: string | null;
  readonly version: string;
  readonly now: Date;
}
export const findBroken = (tx: SqlTx, { tenantId }: SystemScope, { rolloutId, from, to, template, version, now }: Soaking): Promise<Broken[]> =>
  tx.query(FIND_BROKEN, [tenantId, rolloutId, from, to, template, version, now]);

/** The code of a device that has shown the update after its time, and after its phase. */
export const LATE_RESULT = "LATE_RESULT";
// An index has the devices that timed out, so the statement reads no others.
const FIND_LATE_RESULTS = statement<{
  readonly device_id: string;
  readonly position: number;
  readonly version: string | null;
  readonly revision: number | null;
}>(
  "rollouts.findLateResults",
  `select m.device_id, m.position, coalesce(a.template_version, d.agent_version) as version, a.revision from rollout_devices m ${DEVICE}
    where m.tenant_id = $1 and m.rollout_id = $2 and m.status = 'timed_out' and m.code is distinct from '${LATE_RESULT}' and d.deleted_at is null
      and (($3::text is null and d.agent_version = $4)
        or ($3::text is not null and a.status = 'running' and a.revision = m.revision and (a.reported ->> 'revision')::int = m.revision))
    order by m.position limit 1000`,
);
/** Devices whose time was over, and which run the update now. */
export const findLateResults = (tx: SqlTx, { tenantId }: SystemScope, { rolloutId, template, version }: Pick<Soaking, "rolloutId" | "template" | "version">) =>
  tx.query(FIND_LATE_RESULTS, [tenantId, rolloutId, template, version]);

const RETRY = statement<{ readonly position: number; readonly status: string }>(
  "rollouts.retryMembers",
  `with asked as (select m.tenant_id, m.rollout_id, m.device_id, m.position, m.status from rollout_devices m
      where m.tenant_id = $1 and m.rollout_id = $2 and m.status in ('failed', 'timed_out') and ($3::text[] is null or m.code = any($3))
        and not exists (select from rollout_devices o where o.tenant_id = m.tenant_id and o.device_id = m.device_id and o.subject = m.subject
          and o.status in ('pending', 'ordered', 'verifying') and o.rollout_id <> m.rollout_id) for no key update)
   update rollout_devices m set status = 'pending', code = null, message = null, lines = null, late = false, due = true, finished_at = null, deadline_at = null, ordered_at = null from asked a
    where m.tenant_id = a.tenant_id and m.rollout_id = a.rollout_id and m.device_id = a.device_id returning a.position, a.status`,
);
/** Puts failed devices back; answers what they were. */
export const retryMembers = (tx: SqlTx, { tenantId }: SystemScope, rolloutId: string, codes: readonly string[] | null) =>
  tx.query(RETRY, [tenantId, rolloutId, codes]);

const CAME_ONLINE = statement<{ readonly rollout_id: string }>(
  "rollouts.cameOnline",
  `update rollout_devices m set due = true where m.tenant_id = $1 and m.device_id = any($2::text[]) and m.status = 'pending' and m.late and not m.due returning m.rollout_id`,
);
/** Devices that came back: the rollouts that have waited for them. */
export const cameOnline = async (tx: SqlTx, { tenantId }: Pick<SystemScope, "tenantId">, deviceIds: readonly string[]): Promise<readonly string[]> => [
  ...new Set((await tx.query(CAME_ONLINE, [tenantId, deviceIds])).map(({ rollout_id }) => rollout_id)),
];
