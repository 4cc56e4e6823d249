// Lists of devices: filtered, sorted and paged; and how many there are of each kind.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { Device, DeviceCounts, DeviceQuery, Page } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { Clients, TenantClient } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing, likeLiteral } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { getDevices, living, omit, withPresence } from "./devices.ts";

const list = createListing(
  "devices",
  {
    createdAt: { kind: "time" },
    name: { kind: "text", nullable: true },
    status: { kind: "text" },
    agentVersion: { kind: "text", nullable: true },
    platform: { kind: "text", nullable: true },
    lastSeen: { kind: "time", nullable: true },
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
  throw tooMany("connectivity", "ask for other connections or an earlier time");
};

const tooMany = (path: string, advice: string): AppError => {
  const message = `more than ${MAX_NAMED} devices match; ${advice}`;
  return new AppError("VALIDATION_FAILED", { details: { reason: "too_many_matches", issues: [{ path, code: "custom", message }] } });
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

// The conditions of `whereOf`, and the caller's limits. $13 is 1 or -1, for both directions; never seen comes last in both, as in other lists.
const SEEN = "extract(epoch from p.last_seen_at)::float8 * $13::int";
const LIST_BY_SEEN = statement<{ readonly deviceId: string; readonly lastSeen: Date | null }>(
  "devices.listBySeen",
  `select d.device_id as "deviceId", p.last_seen_at as "lastSeen" from devices d join device_presence p on p.device_id = d.device_id
    where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$2")}
      and ($3::text is null or d.status = $3) and ($4::text[] is null or d.tags @> $4) and ($5::text[] is null or not d.tags && $5)
      and ($6::text is null or d.deployment_id = $6) and ($7::text is null or d.name ilike $7 or d.hostname ilike $7)
      and ($8::text is null or d.platform = $8) and ($9::text is null or d.agent_version = $9)
      and ($10::timestamptz is null or d.created_at >= $10) and ($11::timestamptz is null or d.created_at < $11)
      and ($12::text[] is null or d.device_id = any($12))
      and ($14::text is null or case
        when p.last_seen_at is null then $15::timestamptz is not null or d.device_id > $14
        else (${SEEN}, d.device_id) > (extract(epoch from $15::timestamptz)::float8 * $13, $14) end)
    order by ${SEEN} nulls last, d.device_id limit $16 offset $17`,
);

/** Raw SQL, because Prisma cannot sort by a table without a relation. */
const listBySeen = async (
  db: Clients & SqlTx,
  scope: SystemScope,
  { query, named, now }: { readonly query: DeviceQuery; readonly named: readonly string[] | null; readonly now: Date },
) => {
  const { status, tag, notTag, deploymentId, q, platform, agentVersion, createdAfter, createdBefore, sort } = query;
  const where = [status, tag, notTag, deploymentId, q === undefined ? null : `%${likeLiteral(q)}%`, platform, agentVersion, createdAfter, createdBefore, named];
  const values = [scope.tenantId, limitsValue(scope), ...where.map((value) => value ?? null), sort.startsWith("-") ? -1 : 1];
  const { items, ...page } = await list(query, {
    owner: scope.tenantId,
    rows: ({ take, skip }, last) => db.query(LIST_BY_SEEN, [...values, last?.[1] ?? null, last?.[0] ?? null, take, skip]),
    count: () => db.for(scope).device.count({ where: whereOf(query, named) }),
    record: ({ deviceId }) => deviceId,
  });
  const devices = new Map((await getDevices(db, scope, items, now)).map((device) => [device.deviceId as string, device]));
  return { items: items.flatMap((deviceId) => devices.get(deviceId) ?? []), ...page };
};

/** For conditions that raw SQL does not know. */
const idsOf = async ({ device }: Pick<TenantClient, "device">, where: Prisma.DeviceWhereInput): Promise<readonly string[]> => {
  const rows = await device.findMany({ where, select: { deviceId: true }, take: MAX_NAMED + 1 });
  if (rows.length > MAX_NAMED) throw tooMany("sort", "sort by another field");
  return rows.map(({ deviceId }) => deviceId);
};

export const listDevices = async (
  db: Clients & SqlTx,
  scope: SystemScope,
  query: DeviceQuery,
  { now, among }: { readonly now: Date; readonly among?: Prisma.DeviceWhereInput },
): Promise<Page<Device>> => {
  const { device } = db.for(scope);
  const named = await findByPresence(db, scope, query);
  const where = whereOf(query, named);
  if (query.sort.endsWith("lastSeen"))
    return listBySeen(db, scope, { query, named: among === undefined ? named : await idsOf({ device }, { ...where, AND: among }), now });
  const { items, ...page } = await list(query, {
    owner: scope.tenantId,
    rows: (asked) => device.findMany({ ...asked, where: { ...where, AND: [among ?? {}, asked.where] }, omit }),
    count: () => device.count({ where: { ...where, ...given({ AND: among }) } }),
    record: (row) => row,
  });
  return { items: await withPresence(db, scope, items, now), ...page };
};

const COUNT_GROUPS = statement<{ readonly value: string | null; readonly count: number; readonly total: number }>(
  "devices.countGroups",
  `with living as materialized (select d.status, d.agent_version, d.platform, d.tags from devices d where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$3")})
   select g.value, count(*), (select count(*) from living) as total
     from living d left join lateral unnest(case $2::text when 'tag' then d.tags when 'status' then array[d.status] when 'version' then array[d.agent_version] else array[d.platform] end) as g(value) on true
    group by g.value order by count(*) desc, g.value limit 200`,
);

/** Raw SQL, because Prisma cannot group by the elements of an array. */
export const countGroups = async (sql: SqlTx, scope: SystemScope, groupBy: DeviceCounts["groupBy"]): Promise<Omit<DeviceCounts, "version">> => {
  const rows = await sql.query(COUNT_GROUPS, [scope.tenantId, groupBy, limitsValue(scope)]);
  return { groupBy, total: rows[0]?.total ?? 0, groups: rows.map(({ value, count }) => ({ value, count })) };
};
