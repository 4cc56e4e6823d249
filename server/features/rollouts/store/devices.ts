// The devices of a rollout as people read them.
import { type Page, type RolloutDevice, RolloutDeviceStatus, type RolloutFailure, type RolloutTrait } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createLongListing } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { SeenCounts } from "../record.ts";
import { boundsOf, phaseAt } from "../rules/phases.ts";
import { LIVE } from "../rules/states.ts";
import type { RolloutRow } from "./rollout-row.ts";

const list = createLongListing("rollout-devices", { position: { kind: "number" } }, { column: "deviceId", kind: "text" });

export interface DevicesQuery {
  readonly status?: readonly string[] | undefined;
  readonly code?: string | undefined;
  readonly phase?: number | undefined;
  readonly late?: boolean | undefined;
  readonly pageSize?: number | undefined;
  readonly cursor?: string | undefined;
}

const FIND_PROGRESS = statement<{ readonly command_id: string; readonly status: string; readonly progress: unknown }>(
  "rollouts.findProgress",
  `select c.command_id, c.status, c.progress from (select * from unnest($2::text[]) as w(command_id)) w
     cross join lateral (select * from commands_now o where o.tenant_id = $1 and o.command_id = w.command_id offset 0) c`,
);
const FIND_NAMES = statement<{ readonly device_id: string; readonly name: string | null }>(
  "rollouts.findNames",
  "select d.device_id, coalesce(d.name, d.hostname) as name from devices d where d.tenant_id = $1 and d.device_id = any($2::text[])",
);

const progressText = (status: string, progress: unknown): string => {
  const { message, percent } = (progress ?? {}) as { readonly message?: unknown; readonly percent?: unknown };
  const said = [typeof percent === "number" ? `${percent} %` : null, typeof message === "string" ? message.slice(0, 200) : null].filter(
    (each) => each !== null,
  );
  return [status, ...said].join(": ");
};

type Shown = Pick<RolloutDevice, "before" | "after">["before"];
const shownAt = (stored: unknown): Shown => {
  if (stored === null) return null;
  const { version = null, revision = null } = stored as NonNullable<Shown>; // as: only this feature writes the column
  return { version, revision };
};

export const pageOfDevices = async (db: Clients & SqlTx, scope: SystemScope, row: RolloutRow, query: DevicesQuery): Promise<Page<RolloutDevice>> => {
  const { rolloutDevice } = db.for(scope);
  const bounds = boundsOf(row.phases);
  const { status, code, phase, late } = query;
  const within = phase === undefined ? {} : { position: { gt: phase === 1 ? 0 : (bounds[phase - 2] ?? 0), lte: bounds[phase - 1] ?? 0 } };
  const own = { rolloutId: row.rolloutId };
  const where = { ...own, ...given({ code, late }), ...(status === undefined ? {} : { status: { in: [...status] } }), ...within };
  const page = await list(
    { ...query, sort: "position" },
    {
      owner: row.rolloutId,
      walk: (asked) => rolloutDevice.findMany({ ...asked, where: { ...own, AND: asked.where }, select: { position: true, deviceId: true } }),
      rows: (asked) => rolloutDevice.findMany({ ...asked, where: { ...where, AND: asked.where } }),
      count: (asked) => rolloutDevice.count({ where: { ...where, AND: asked.where } }),
      record: (member) => member,
    },
  );
  const open = page.items.flatMap(({ status: each, commandId }) => (["ordered", "verifying"].includes(each) && commandId !== null ? [commandId] : []));
  const [progress, names] = await Promise.all([
    open.length === 0 ? [] : db.query(FIND_PROGRESS, [scope.tenantId, open]),
    db.query(FIND_NAMES, [scope.tenantId, page.items.map(({ deviceId }) => deviceId)]),
  ]);
  const texts = new Map(progress.map((each) => [each.command_id, progressText(each.status, each.progress)]));
  const named = new Map(names.map((each) => [each.device_id, each.name]));
  const { total: _, ...rest } = page;
  return {
    ...rest,
    items: page.items.map((member) => ({
      rolloutId: row.rolloutId,
      deviceId: member.deviceId as RolloutDevice["deviceId"], // as: a row's id
      name: named.get(member.deviceId) ?? null,
      phase: phaseAt(bounds, member.position),
      position: member.position,
      status: RolloutDeviceStatus.parse(member.status),
      late: member.late,
      code: member.code,
      message: member.message,
      attempt: member.attempt,
      commandId: member.commandId as RolloutDevice["commandId"], // as: a row's id
      progress: texts.get(member.commandId ?? "") ?? null,
      before: shownAt(member.before),
      after: shownAt(member.after),
      orderedAt: member.orderedAt?.toISOString() ?? null,
      finishedAt: member.finishedAt?.toISOString() ?? null,
    })),
  };
};

/** Nobody can tell what fewer devices have in common. */
const FEWEST = 3;
const MAX_COMMON = 3;
// A trait tells something if devices with it fail at least half as often again as all do.
const COMMON = statement<RolloutTrait & { readonly code: string }>(
  "rollouts.commonTraits",
  `with m as materialized (
     select m.device_id, coalesce(m.code, 'FAILED') as code, m.status <> 'succeeded' as failed, d.tags, d.model, d.platform, d.arch, d.os_version, d.agent_version
       from rollout_devices m join devices d on d.tenant_id = m.tenant_id and d.device_id = m.device_id
      where m.tenant_id = $1 and m.rollout_id = $2 and m.status in ('succeeded', 'failed', 'timed_out') and ${withinLimits("d", "$3")}),
   t as materialized (
     select m.code, m.failed, x.kind, x.value from m cross join lateral (
       select 'tag' as kind, unnest(m.tags) as value union all
       values ('model', m.model), ('platform', m.platform), ('arch', m.arch), ('osVersion', m.os_version), ('agentVersion', m.agent_version)) x
      where x.value is not null),
   f as (select m.code, count(*) as failed from m where m.failed group by m.code having count(*) >= ${FEWEST}),
   a as (select t.kind, t.value, count(*) as finished from t group by t.kind, t.value),
   b as (select t.code, t.kind, t.value, count(*) as failed from t where t.failed group by t.code, t.kind, t.value)
   select b.code, b.kind, b.value, b.failed::int as failed, a.finished::int as finished from b join f using (code) join a using (kind, value)
    where b.failed * 5 >= f.failed * 4 and b.failed * 2 * (select count(*) from m) >= 3 * f.failed * a.finished
    order by b.failed::float8 / a.finished desc, b.failed desc, b.kind, b.value`,
);

const MAX_CODES = 100;
const GROUP_FAILURES = statement<{
  readonly code: string | null;
  readonly count: number;
  readonly message: string | null;
  readonly lines: readonly string[] | null;
  readonly devices: RolloutFailure["devices"];
}>(
  "rollouts.groupFailures",
  `select m.code, count(*)::int as count, (array_agg(m.message order by m.position))[1] as message, (array_agg(m.lines order by m.position))[1] as lines,
      to_json((array_agg(json_build_object('deviceId', m.device_id, 'name', coalesce(d.name, d.hostname), 'appId', m.app_id, 'commandId', m.command_id)
        order by m.position))[1:5]) as devices
     from rollout_devices m join devices d on d.tenant_id = m.tenant_id and d.device_id = m.device_id
    where m.tenant_id = $1 and m.rollout_id = $2 and m.status in ('failed', 'timed_out') and ${withinLimits("d", "$3")}
    group by m.code order by 2 desc, 1 limit ${MAX_CODES}`,
);
export const groupFailures = async (sql: SqlTx, scope: SystemScope, { rolloutId }: RolloutRow): Promise<RolloutFailure[]> => {
  const rows = await sql.query(GROUP_FAILURES, [scope.tenantId, rolloutId, limitsValue(scope)]);
  if (rows.length === 0) return [];
  const traits = await sql.query(COMMON, [scope.tenantId, rolloutId, limitsValue(scope)]);
  return rows.map(({ code: given, lines, ...shown }) => {
    const code = given ?? "FAILED";
    const common = traits.filter((trait) => trait.code === code).slice(0, MAX_COMMON);
    return { code, lines: [...(lines ?? [])], common: common.map(({ code: _, ...trait }) => trait), ...shown };
  });
};

const SEEN = statement<{ readonly status: string; readonly late: boolean; readonly phase: number; readonly count: number }>(
  "rollouts.seenCounts",
  `select m.status, m.late, case when m.position < 1 then 0 else width_bucket(m.position - 1, $3::int[]) + 1 end as phase, count(*)::int as count
     from rollout_devices m join devices d on d.tenant_id = m.tenant_id and d.device_id = m.device_id
    where m.tenant_id = $1 and m.rollout_id = $2 and ${withinLimits("d", "$4")} group by 1, 2, 3`,
);
/** The figures of the devices that a limited caller sees. */
export const seenCounts = async (sql: SqlTx, scope: SystemScope, row: RolloutRow): Promise<SeenCounts> => {
  const bounds = [...new Set(boundsOf(row.phases))];
  const rows = await sql.query(SEEN, [scope.tenantId, row.rolloutId, bounds.length === 0 ? [0] : bounds, limitsValue(scope)]);
  const sum = (...matches: ((each: (typeof rows)[number]) => boolean)[]): number =>
    rows.filter((each) => matches.every((match) => match(each))).reduce((total, { count }) => total + count, 0);
  const as =
    (...statuses: readonly string[]) =>
    ({ status }: { readonly status: string }): boolean =>
      statuses.includes(status);
  const counts = {
    total: sum(),
    pending: sum(as("pending")),
    ordered: sum(as("ordered")),
    verifying: sum(as("verifying")),
    succeeded: sum(as("succeeded")),
    failed: sum(as("failed")),
    timedOut: sum(as("timed_out")),
    skipped: sum(as("skipped")),
    aborted: sum(as("aborted")),
    late: sum(({ late }) => late),
  };
  const all = boundsOf(row.phases);
  const phases = row.phases.map((_phase, at) => {
    const own = ({ phase }: { readonly phase: number }): boolean => bounds[phase - 1] === all[at] && (row.phases[at]?.size ?? 0) > 0;
    return { size: sum(own), succeeded: sum(own, as("succeeded")), failed: sum(own, as("failed", "timed_out")), open: sum(own, as("ordered", "verifying")) };
  });
  return { counts, phases };
};

const COUNT_LIVE = statement<{ readonly fleet_id: string; readonly count: number }>(
  "rollouts.countLive",
  `select r.fleet_id, count(*)::int as count from rollouts r
    where r.tenant_id = $1 and r.fleet_id = any($2::text[]) and r.status = any($3::text[]) and ($4::jsonb is null or exists (
      select from rollout_devices m join devices d on d.tenant_id = m.tenant_id and d.device_id = m.device_id
       where m.tenant_id = r.tenant_id and m.rollout_id = r.rollout_id and ${withinLimits("d", "$4")})) group by r.fleet_id`,
);
/** How many live rollouts each fleet has; those of which a limited caller sees no device are left out. */
export const countLiveOf = async (sql: SqlTx, scope: SystemScope, fleetIds: readonly string[]): Promise<ReadonlyMap<string, number>> => {
  const rows = fleetIds.length === 0 ? [] : await sql.query(COUNT_LIVE, [scope.tenantId, fleetIds, LIVE, limitsValue(scope)]);
  return new Map(rows.map(({ fleet_id, count }) => [fleet_id, count]));
};
