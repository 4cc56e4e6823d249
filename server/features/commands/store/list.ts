// Lists of commands: a device's, the tenant's, some by their ids; and their counts.
import type { CommandStatus } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import { idSince, oldestId } from "../../../core/id-times.ts";
import { WALK_ROWS } from "../../../core/rows/walk.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/database/db.ts";
import { ALL_COLUMNS, ENDED_COLUMNS, LIGHT_COLUMNS, OPEN_COLUMNS, WITH_COMMAND } from "./columns.ts";
import { type CommandRow, type DbRow, toRow } from "./rows.ts";

export interface CommandFilter {
  readonly status?: readonly CommandStatus[] | undefined;
  readonly type?: string | undefined;
  readonly createdBy?: string | undefined;
  readonly open?: boolean | undefined;
  /** ISO time. */
  readonly since?: string | undefined;
}

// Casts name the types, because a parameter may be null.
const MATCHING = `c.tenant_id = $1 and ($2::text[] is null or c.status = any($2)) and ($3::text is null or c.type = $3) and ($4::text is null or c.created_by = $4)
  and ($5::boolean is null or $5 = (c.finished_at is null)) and ($6::timestamptz is null or c.issued_at >= $6)`;
const filterValues = ({ tenantId }: SystemScope, { status, type, createdBy, open, since }: CommandFilter): readonly unknown[] => [
  tenantId,
  status ?? null,
  type ?? null,
  createdBy ?? null,
  open ?? null,
  since ?? null,
];

const BEFORE = "c.tenant_id = $1 and c.device_id = $7 and c.seq < coalesce($8::bigint, 9223372036854775807)";
// A page looks at so many of the device's newest commands, and ends where it stopped.
const REACHED = `with w as materialized (
  select (select c.seq from commands c where ${BEFORE} order by c.seq desc offset $9::int - 1 limit 1) as reached)`;
const OF_DEVICE = `commands_now c where ${MATCHING} and ${BEFORE} and c.seq >= coalesce(w.reached, 0)`;
const LIST = statement<Partial<DbRow> & { readonly reached: number | null }>(
  "commands.list",
  `${REACHED} select w.reached, l.* from w left join lateral (
     select ${ALL_COLUMNS} from ${OF_DEVICE} order by c.seq desc limit $10 offset $11) l on true order by l.seq desc`,
);
const COUNT = statement<{ readonly total: number | null }>(
  "commands.count",
  `${REACHED} select case when w.reached is null then (select count(*) from ${OF_DEVICE}) end as total from w`,
);

export interface CommandWindow {
  readonly limit: number;
  readonly offset: number;
  /** Only those before this one; null at the newest. */
  readonly beforeSeq: number | null;
}

/** Some rows of a list, and the last command that it looked at when there are more. */
export interface Walked<R, K> {
  readonly rows: readonly R[];
  readonly reached: K | null;
}

export const listCommands = async (
  db: Db,
  scope: SystemScope,
  filter: CommandFilter & { readonly deviceId: string },
  { limit, offset, beforeSeq }: CommandWindow,
): Promise<Walked<CommandRow, number>> => {
  const found = await db.query(LIST, [...filterValues(scope, filter), filter.deviceId, beforeSeq, WALK_ROWS, limit, offset]);
  return { rows: found.flatMap((row) => (isFound(row) ? [toRow(row)] : [])), reached: found[0]?.reached ?? null };
};

/** Null: there are too many to look at. */
export const countCommands = async (db: Db, scope: SystemScope, filter: CommandFilter & { readonly deviceId: string }): Promise<number | null> => {
  const [row] = await db.query(COUNT, [...filterValues(scope, filter), filter.deviceId, null, WALK_ROWS]);
  return row?.total ?? null;
};

/** A row without payload and output, with its device's name. */
export interface NamedRow {
  readonly row: CommandRow;
  readonly deviceName: string | null;
}
interface NamedDbRow extends DbRow {
  readonly device_name: string | null;
}
const isFound = <R extends DbRow>(row: Partial<R>): row is R => typeof row.command_id === "string";
const toNamed = (row: NamedDbRow): NamedRow => ({ row: toRow(row), deviceName: row.device_name });

/** For a caller who is limited to some devices; the parameter is `limitsValue`. */
const seen = (n: string): string =>
  `(${n}::jsonb is null or exists (select from devices d where d.tenant_id = c.tenant_id and d.device_id = c.device_id and ${withinLimits("d", n)}))`;

const BLOCKED = "(c.finished_at is null and c.status = 'queued' and c.available_at <= now())";
type Order = "newest" | "oldest";
const ORDERS = {
  newest: { direction: "desc", beyond: "<", upTo: ">=" },
  oldest: { direction: "asc", beyond: ">", upTo: "<=" },
} as const;
// In the order of its ids, which is that of the primary key; a device's own in the order of its queue, which an index has too.
const KEYS = {
  tenant: {
    column: "command_id",
    least: "''",
    most: `'cmd_${"z".repeat(26)}'`,
    type: "text",
    within: (c: string) => `${c}.tenant_id = $1 and ${c}.command_id >= $9 and $12::text is null`,
  },
  device: {
    column: "seq",
    least: "0",
    most: "9223372036854775807",
    type: "bigint",
    within: (c: string) => `${c}.tenant_id = $1 and ${c}.device_id = $12 and $9::text is not null`,
  },
} as const;
type Among = keyof typeof KEYS;
// Open commands are few; those of other tenants are left out before they are looked up. The ended ones are looked at in the order of the list, up to $13
// of them: no filter has an index, because each would cost every command more than a page that ends early costs its reader. Each branch reads no more
// than it needs.
const openOnes = (condition: string): string => `(select ${OPEN_COLUMNS} from command_queue q ${WITH_COMMAND} where ${condition})`;
const ENDED_ONES = `(select ${ENDED_COLUMNS} from commands c where c.finished_at is not null)`;
const listIn = (order: Order, among: Among): string => {
  const { direction, beyond, upTo } = ORDERS[order];
  const { column, least, most, type, within } = KEYS[among];
  const [first, last] = order === "newest" ? [most, least] : [least, most];
  // No alternatives, which an index would not take for a range.
  const next = (c: string) => `${within(c)} and ${c}.${column} ${beyond} coalesce($8::text::${type}, ${first})`;
  const near = (c: string) => `${next(c)} and ${c}.${column} ${upTo} coalesce(w.reached, ${last})`;
  const branch = (source: string, condition: string): string =>
    `(select ${LIGHT_COLUMNS} from ${source} c where ${MATCHING} and ${near("c")}
        and ${condition} and ($7::boolean is null or $7 = ${BLOCKED}) and ${seen("$11")} order by c.${column} ${direction} limit $10)`;
  return `with w as materialized (
    select (select c.${column} from commands c where $13::int is not null and ${next("c")} order by c.${column} ${direction} offset $13 - 1 limit 1) as reached)
    select w.reached, l.* from w left join lateral (
      select c.*, coalesce(d.name, d.hostname) as device_name
        from (${branch(openOnes(near("q")), "$5 is distinct from false")}
              union all ${branch(ENDED_ONES, "$5 is distinct from true and $7 is distinct from true")}) c
        left join devices d on d.tenant_id = c.tenant_id and d.device_id = c.device_id order by c.${column} ${direction} limit $10) l on true
     order by l.${column} ${direction}`;
};
/** The row is empty on a page without commands. */
type ListedRow<K> = Partial<NamedDbRow> & { readonly reached: K | null };
const LIST_ALL = {
  tenant: {
    newest: statement<ListedRow<string>>("commands.listAll", listIn("newest", "tenant")),
    oldest: statement<ListedRow<string>>("commands.listAllOldest", listIn("oldest", "tenant")),
  },
  device: {
    newest: statement<ListedRow<number>>("commands.listOfDevice", listIn("newest", "device")),
    oldest: statement<ListedRow<number>>("commands.listOfDeviceOldest", listIn("oldest", "device")),
  },
} as const;

export interface TenantCommandFilter extends CommandFilter {
  readonly blocked?: boolean | undefined;
  readonly deviceId?: string | undefined;
  readonly order?: Order;
}

/** The tenant's commands after one of them in that order, or from the first. */
export const listAllCommands = async (
  db: Db,
  scope: SystemScope,
  filter: TenantCommandFilter,
  { after, limit }: { readonly after: string | number | null; readonly limit: number },
): Promise<Walked<NamedRow, string | number>> => {
  const from = filter.since === undefined ? oldestId("cmd") : idSince("cmd", Date.parse(filter.since));
  const { order = "newest", blocked = null, deviceId = null, open } = filter;
  const limits = limitsValue(scope);
  const isFiltered = [filter.status, filter.type, filter.createdBy, filter.since, open, blocked ?? undefined, limits ?? undefined].some(
    (value) => value !== undefined,
  );
  // Without a filter every row is shown.
  const walk = open === true || blocked === true ? null : isFiltered ? WALK_ROWS : limit;
  const values = [...filterValues(scope, filter), blocked, after, from, limit, limits, deviceId, walk];
  const found: readonly ListedRow<string | number>[] =
    deviceId === null ? await db.query(LIST_ALL.tenant[order], values) : await db.query(LIST_ALL.device[order], values);
  return { rows: found.flatMap((row) => (isFound(row) ? [toNamed(row)] : [])), reached: found[0]?.reached ?? null };
};

const GET_MANY = statement<NamedDbRow>(
  "commands.getMany",
  `select ${LIGHT_COLUMNS}, coalesce(d.name, d.hostname) as device_name from commands_now c left join devices d on d.tenant_id = c.tenant_id and d.device_id = c.device_id
    where c.tenant_id = $1 and c.command_id = any($2::text[]) and ${seen("$3")}`,
);

export const getCommands = async (db: Db, scope: SystemScope, commandIds: readonly string[]): Promise<readonly NamedRow[]> =>
  (await db.query(GET_MANY, [scope.tenantId, commandIds, limitsValue(scope)])).map(toNamed);

interface SummaryRow {
  readonly status: string | null;
  readonly open: boolean;
  readonly count: number;
  readonly past: number;
  readonly blocked: number;
  readonly since: Date | null;
}
// The ended ones of a day may be millions, so the newest are counted, and then a row without a status says since when.
const SUMMARIZE = statement<SummaryRow>(
  "commands.summarize",
  `with young as materialized (
     select c.tenant_id, c.device_id, c.status, c.issued_at, c.finished_at from commands c
      where c.tenant_id = $1 and c.command_id >= $2 order by c.command_id desc limit $4)
   select c.status, true as open, count(*), count(*) filter (where c.deadline_at < now()) as past, count(*) filter (where ${BLOCKED}) as blocked, null::timestamptz as since
     from ${openOnes("q.tenant_id = $1")} c where ${seen("$3")} group by c.status
   union all select c.status, false, count(*), 0, 0, null from young c
    where c.finished_at is not null and c.issued_at > now() - interval '1 day' and ${seen("$3")} group by c.status
   union all select null, false, count(*), 0, 0, min(c.issued_at) from young c having count(*) = $4 and min(c.issued_at) > now() - interval '1 day'`,
);

const COUNT_OPEN_SEEN = statement<{ readonly open: number; readonly overdue: number }>(
  "commands.countOpenSeen",
  `select count(*)::int as open, (count(*) filter (where c.deadline_at < now()))::int as overdue from ${openOnes("q.tenant_id = $1")} c where ${seen("$2")}`,
);
/** The open commands of the devices that the caller sees. */
export const countOpenSeen = async (db: Db, scope: SystemScope): Promise<{ readonly open: number; readonly overdue: number }> =>
  (await db.query(COUNT_OPEN_SEEN, [scope.tenantId, limitsValue(scope)]))[0] ?? { open: 0, overdue: 0 };

export interface CommandCounts {
  readonly open: Record<string, number>;
  readonly pastDeadline: number;
  readonly blocked: number;
  readonly endedLastDay: Record<string, number>;
  /** Only commands that were queued since then are counted; null: all of the day. */
  readonly endedSince: string | null;
}

const DAY_MS = 86_400_000;

export const summarizeCommands = async (db: Db, scope: SystemScope, now: Date, looksAt = WALK_ROWS): Promise<CommandCounts> => {
  const rows = await db.query(SUMMARIZE, [scope.tenantId, idSince("cmd", now.getTime() - DAY_MS), limitsValue(scope), looksAt]);
  const countsOf = (isOpen: boolean) =>
    Object.fromEntries(rows.flatMap(({ status, open, count }) => (open === isOpen && status !== null ? [[status, count]] : [])));
  return {
    open: countsOf(true),
    endedLastDay: countsOf(false),
    endedSince: rows.find(({ status }) => status === null)?.since?.toISOString() ?? null,
    pastDeadline: rows.reduce((sum, { past }) => sum + past, 0),
    blocked: rows.reduce((sum, { blocked }) => sum + blocked, 0),
  };
};
