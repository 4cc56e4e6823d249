// Lists of commands: a device's, the tenant's, some by their ids; and their counts.
import { encodeTime } from "ulid";
import type { CommandStatus } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
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

const LIST = statement<DbRow>(
  "commands.list",
  `select ${ALL_COLUMNS} from commands_now c where ${MATCHING} and c.device_id = $7 and c.seq < coalesce($8::bigint, 9223372036854775807) order by c.seq desc limit $9 offset $10`,
);
const COUNT = statement<{ readonly total: number }>("commands.count", `select count(*) as total from commands_now c where ${MATCHING} and c.device_id = $7`);

export interface CommandWindow {
  readonly limit: number;
  readonly offset: number;
  /** Only those before this one; null at the newest. */
  readonly beforeSeq: number | null;
}

export const listCommands = async (
  db: Db,
  scope: SystemScope,
  filter: CommandFilter & { readonly deviceId: string },
  { limit, offset, beforeSeq }: CommandWindow,
): Promise<readonly CommandRow[]> => (await db.query(LIST, [...filterValues(scope, filter), filter.deviceId, beforeSeq, limit, offset])).map(toRow);

export const countCommands = async (db: Db, scope: SystemScope, filter: CommandFilter & { readonly deviceId: string }): Promise<number> => {
  const [row] = await db.query(COUNT, [...filterValues(scope, filter), filter.deviceId]);
  return row?.total ?? 0;
};

/** A row without payload and output, with its device's name. */
export interface NamedRow {
  readonly row: CommandRow;
  readonly deviceName: string | null;
}
interface NamedDbRow extends DbRow {
  readonly device_name: string | null;
}
const toNamed = (row: NamedDbRow): NamedRow => ({ row: toRow(row), deviceName: row.device_name });

/** For a caller who is limited to some devices; the parameter is `limitsValue`. */
const seen = (n: string): string =>
  `(${n}::jsonb is null or exists (select from devices d where d.tenant_id = c.tenant_id and d.device_id = c.device_id and ${withinLimits("d", n)}))`;

const BLOCKED = "(c.finished_at is null and c.status = 'queued' and c.available_at <= now())";
type Order = "newest" | "oldest";
const ORDERS = { newest: { direction: "desc", beyond: "<" }, oldest: { direction: "asc", beyond: ">" } } as const;
// Open commands are few; ended ones come in the order of the primary key. Each branch reads no more than it needs.
const OPEN_ONES = `(select ${OPEN_COLUMNS} from command_queue q ${WITH_COMMAND})`;
const ENDED_ONES = `(select ${ENDED_COLUMNS} from commands c where c.finished_at is not null)`;
const branch = (order: Order, source: string, condition: string): string =>
  `(select ${LIGHT_COLUMNS} from ${source} c where ${MATCHING} and ${condition} and ($7::boolean is null or $7 = ${BLOCKED})
      and c.command_id ${ORDERS[order].beyond} $8 and c.command_id >= $9 and ($12::text is null or c.device_id = $12) and ${seen("$11")}
      order by c.command_id ${ORDERS[order].direction} limit $10)`;
const allIn = (order: Order): string =>
  `select c.*, coalesce(d.name, d.hostname) as device_name
     from (${branch(order, OPEN_ONES, "$5 is distinct from false")}
           union all ${branch(order, ENDED_ONES, "$5 is distinct from true and $7 is distinct from true")}) c
     left join devices d on d.tenant_id = c.tenant_id and d.device_id = c.device_id order by c.command_id ${ORDERS[order].direction} limit $10`;
const LIST_ALL = {
  newest: statement<NamedDbRow>("commands.listAll", allIn("newest")),
  oldest: statement<NamedDbRow>("commands.listAllOldest", allIn("oldest")),
};

/** After every id and before every id. */
const NEWEST = `cmd_${"z".repeat(26)}`;
const OLDEST = "cmd_";
/** The clocks of nodes and database may differ. */
const SKEW_MS = 3_600_000;
/** No command that was queued since then has a lower id, because ids begin with their time. */
const idSince = (ms: number): string => `cmd_${encodeTime(Math.max(0, ms - SKEW_MS), 10)}`;

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
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly NamedRow[]> => {
  const from = filter.since === undefined ? OLDEST : idSince(Date.parse(filter.since));
  const { order = "newest", blocked = null, deviceId = null } = filter;
  const beyond = after ?? (order === "newest" ? NEWEST : OLDEST);
  return (await db.query(LIST_ALL[order], [...filterValues(scope, filter), blocked, beyond, from, limit, limitsValue(scope), deviceId])).map(toNamed);
};

const GET_MANY = statement<NamedDbRow>(
  "commands.getMany",
  `select ${LIGHT_COLUMNS}, coalesce(d.name, d.hostname) as device_name from commands_now c left join devices d on d.tenant_id = c.tenant_id and d.device_id = c.device_id
    where c.tenant_id = $1 and c.command_id = any($2::text[]) and ${seen("$3")}`,
);

export const getCommands = async (db: Db, scope: SystemScope, commandIds: readonly string[]): Promise<readonly NamedRow[]> =>
  (await db.query(GET_MANY, [scope.tenantId, commandIds, limitsValue(scope)])).map(toNamed);

const SUMMARIZE = statement<{ readonly status: string; readonly open: boolean; readonly count: number; readonly past: number; readonly blocked: number }>(
  "commands.summarize",
  `select c.status, true as open, count(*), count(*) filter (where c.deadline_at < now()) as past, count(*) filter (where ${BLOCKED}) as blocked
     from ${OPEN_ONES} c where c.tenant_id = $1 and ${seen("$3")} group by c.status
   union all select c.status, false, count(*), 0, 0 from commands c
    where c.tenant_id = $1 and c.finished_at is not null and c.command_id >= $2 and c.issued_at > now() - interval '1 day' and ${seen("$3")} group by c.status`,
);

export interface CommandCounts {
  readonly open: Record<string, number>;
  readonly pastDeadline: number;
  readonly blocked: number;
  readonly endedLastDay: Record<string, number>;
}

const DAY_MS = 86_400_000;

export const summarizeCommands = async (db: Db, scope: SystemScope, now: Date): Promise<CommandCounts> => {
  const rows = await db.query(SUMMARIZE, [scope.tenantId, idSince(now.getTime() - DAY_MS), limitsValue(scope)]);
  const countsOf = (isOpen: boolean) => Object.fromEntries(rows.flatMap(({ status, open, count }) => (open === isOpen ? [[status, count]] : [])));
  return {
    open: countsOf(true),
    endedLastDay: countsOf(false),
    pastDeadline: rows.reduce((sum, { past }) => sum + past, 0),
    blocked: rows.reduce((sum, { blocked }) => sum + blocked, 0),
  };
};
