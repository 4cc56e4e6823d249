// Devices by a part of their tags: how many there are behind each `site:…`, and how many of them are offline.
import type { OverviewGroups } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { TagTotals } from "../../../core/people/common-tag.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

interface GroupRow {
  /** Null on rows that only name a key. */
  readonly tag: string | null;
  readonly key: string;
  readonly devices: number;
  readonly online: number;
  readonly offline: number;
  readonly provisioning: number;
  readonly first: Date | null;
  readonly last: Date | null;
  readonly total: number;
}

const KEYS = 20;
const GROUPS = 6;

const GROUP_BY_KEY = statement<GroupRow>(
  "devices.groupByKey",
  `with tagged as materialized (
     select d.device_id, d.status, g.tag, split_part(g.tag, ':', 1) as key from devices d cross join lateral unnest(d.tags) as g(tag)
      where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$2")} and g.tag ~ '^[^:]+:.'),
   keys as (select t.key, count(*)::int as devices from tagged t group by t.key order by count(*) desc, t.key limit ${KEYS}),
   chosen as (select coalesce($3::text, (select k.key from keys k order by k.devices desc, k.key limit 1)) as key),
   counted as (
     select t.tag, t.key, count(*)::int as devices, (count(*) filter (where t.status = 'online'))::int as online,
       (count(*) filter (where t.status = 'offline'))::int as offline, (count(*) filter (where t.status = 'provisioning'))::int as provisioning,
       (count(*) over ())::int as total
     from tagged t join chosen using (key) group by t.tag, t.key order by offline desc, devices desc, t.tag limit ${GROUPS}),
   away as (
     select t.tag, min(p.last_seen_at) as first, max(p.last_seen_at) as last from tagged t join counted c using (tag) join device_presence p on p.device_id = t.device_id
      where t.status = 'offline' group by t.tag)
   select c.tag, c.key, c.devices, c.online, c.offline, c.provisioning, a.first, a.last, c.total from counted c left join away a using (tag)
   union all select null, k.key, k.devices, 0, 0, 0, null, null, 0 from keys k`,
);

const byTrouble = (a: GroupRow, b: GroupRow): number => b.offline - a.offline || b.devices - a.devices;

/** Without a key, by the one that most tags have. */
export const groupByKey = async (sql: SqlTx, scope: SystemScope, key: string | null): Promise<OverviewGroups> => {
  const rows = await sql.query(GROUP_BY_KEY, [scope.tenantId, limitsValue(scope), key]);
  const keys = rows.filter(({ tag }) => tag === null).toSorted((a, b) => b.devices - a.devices || (a.key < b.key ? -1 : 1));
  const items = rows.toSorted(byTrouble).flatMap(({ tag, devices, online, offline, provisioning, first, last }) => {
    if (tag === null) return [];
    const offlineSince = first === null || last === null ? null : { first: first.toISOString(), last: last.toISOString() };
    return { tag, devices, online, offline, provisioning, offlineSince };
  });
  return { key: key ?? keys[0]?.key ?? null, keys: keys.map((row) => row.key), items, total: rows.find(({ tag }) => tag !== null)?.total ?? 0 };
};

const COUNT_TAGGED = statement<{ readonly tag: string; readonly count: number }>(
  "devices.countTagged",
  `select g.tag, count(*)::int as count from devices d cross join lateral unnest(d.tags) as g(tag)
    where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$2")} and g.tag = any($3) group by g.tag`,
);
/** How many devices have each of these tags. */
export const countTagged = async (sql: SqlTx, scope: SystemScope, tags: readonly string[]): Promise<TagTotals> => {
  if (tags.length === 0) return new Map();
  const rows = await sql.query(COUNT_TAGGED, [scope.tenantId, limitsValue(scope), tags]);
  return new Map(rows.map(({ tag, count }) => [tag, count]));
};
