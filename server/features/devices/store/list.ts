// Lists of devices: filtered, sorted and paged; and how many there are of each kind.
import type { Device, DeviceCounts, DeviceQuery, Page } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing, likeLiteral } from "../../../core/listing.ts";
import { given } from "../../../core/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { living, omit, withPresence } from "./devices.ts";

const list = createListing(
  "devices",
  {
    createdAt: { kind: "time" },
    name: { kind: "text", nullable: true },
    status: { kind: "text" },
    agentVersion: { kind: "text", nullable: true },
    platform: { kind: "text", nullable: true },
  },
  { column: "deviceId", kind: "text" },
);

/** More devices than a condition may name. */
const MAX_NAMED = 10_000;

// A socket that broke counts as none, as `connectionOf` shows it.
const FIND_BY_PRESENCE = statement<{ readonly device_id: string }>(
  "devices.findByPresence",
  `select d.device_id from devices d join device_presence p on p.device_id = d.device_id
    where d.tenant_id = $1 and d.deleted_at is null and ($3::timestamptz is null or p.last_seen_at < $3)
      and ($2::text is null or $2 = case when p.connectivity = 'realtime' and p.session_id is null then 'none' else p.connectivity end) limit $4`,
);

/** Null without such a condition. Presence is written with every heartbeat, so it has no relation that Prisma could join. */
const findByPresence = async (sql: SqlTx, { tenantId }: SystemScope, { connectivity, seenBefore }: DeviceQuery): Promise<readonly string[] | null> => {
  if (connectivity === undefined && seenBefore === undefined) return null;
  const rows = await sql.query(FIND_BY_PRESENCE, [tenantId, connectivity ?? null, seenBefore ?? null, MAX_NAMED + 1]);
  if (rows.length <= MAX_NAMED) return rows.map(({ device_id }) => device_id);
  const message = `more than ${MAX_NAMED} devices match; ask for other connections or an earlier time`;
  throw new AppError("VALIDATION_FAILED", { details: { reason: "too_many_matches", issues: [{ path: "connectivity", code: "custom", message }] } });
};

const dateOf = (text: string | undefined): Date | undefined => (text === undefined ? undefined : new Date(text));

const whereOf = (query: DeviceQuery, named: readonly string[] | null) => {
  const { status, tag, notTag, deploymentId, q, platform, agentVersion, createdAfter, createdBefore } = query;
  const part = { contains: likeLiteral(q ?? ""), mode: "insensitive" } as const;
  return {
    ...living,
    ...given({ status, deploymentId, platform, agentVersion }),
    ...(tag === undefined ? {} : { tags: { hasEvery: tag } }),
    ...(notTag === undefined ? {} : { NOT: { tags: { hasSome: notTag } } }),
    ...(q === undefined ? {} : { OR: [{ name: part }, { hostname: part }] }),
    ...(createdAfter === undefined && createdBefore === undefined ? {} : { createdAt: given({ gte: dateOf(createdAfter), lt: dateOf(createdBefore) }) }),
    ...(named === null ? {} : { deviceId: { in: [...named] } }),
  };
};

export const listDevices = async (db: Clients & SqlTx, scope: SystemScope, query: DeviceQuery): Promise<Page<Device>> => {
  const { device } = db.for(scope);
  const where = whereOf(query, await findByPresence(db, scope, query));
  const { items, ...page } = await list(query, {
    owner: scope.tenantId,
    rows: (asked) => device.findMany({ ...asked, where: { ...where, AND: asked.where }, omit }),
    count: () => device.count({ where }),
    record: (row) => row,
  });
  return { items: await withPresence(db, scope, items), ...page };
};

const COUNT_GROUPS = statement<{ readonly value: string | null; readonly count: number; readonly total: number }>(
  "devices.countGroups",
  `with living as materialized (select d.status, d.agent_version, d.platform, d.tags from devices d where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$3")})
   select g.value, count(*), (select count(*) from living) as total
     from living d left join lateral unnest(case $2::text when 'tag' then d.tags when 'status' then array[d.status] when 'version' then array[d.agent_version] else array[d.platform] end) as g(value) on true
    group by g.value order by count(*) desc, g.value limit 200`,
);

/** Raw SQL, because Prisma cannot group by the elements of an array. */
export const countGroups = async (sql: SqlTx, scope: SystemScope, groupBy: DeviceCounts["groupBy"]): Promise<DeviceCounts> => {
  const rows = await sql.query(COUNT_GROUPS, [scope.tenantId, groupBy, limitsValue(scope)]);
  return { groupBy, total: rows[0]?.total ?? 0, groups: rows.map(({ value, count }) => ({ value, count })) };
};
