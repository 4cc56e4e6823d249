// Commands of all tenants that have waited for longer than they should.
import type { SqlTx } from "../../../core/events.ts";
import { statement } from "../../../core/statements.ts";

interface StuckCommand {
  readonly tenant_id: string;
  readonly command_id: string;
  readonly device_id: string;
  readonly status: string;
  readonly since: Date;
}
export interface BlockedCommand extends StuckCommand {
  /** The open command before it in its lane. */
  readonly ahead_id: string | null;
}

const FIND_OVERDUE = statement<StuckCommand>(
  "commands.findOverdue",
  `select q.tenant_id, q.command_id, q.device_id, q.status, q.deadline_at as since from command_queue q
    where q.deadline_at < now() - $1 * interval '1 second' order by q.deadline_at limit $2`,
);

export const findOverdue = (sql: SqlTx, afterSeconds: number, limit: number): Promise<readonly StuckCommand[]> =>
  sql.query(FIND_OVERDUE, [afterSeconds, limit]);

const FIND_BLOCKED = statement<BlockedCommand>(
  "commands.findBlocked",
  `select c.tenant_id, c.command_id, c.device_id, c.status, c.available_at as since, b.command_id as ahead_id
     from (select * from command_queue q where q.status = 'queued' and q.seq > 0 and q.available_at < now() - $1 * interval '1 second'
            order by q.available_at limit $3) c
     join device_presence p on p.device_id = c.device_id and p.tenant_id = c.tenant_id and p.connectivity <> 'none'
     left join lateral (
       select o.command_id from command_queue o where o.tenant_id = c.tenant_id and o.device_id = c.device_id and o.lane = c.lane and o.seq < c.seq
        order by o.seq limit 1) b on true
    order by c.available_at limit $2`,
);

/** Due commands of connected devices; one of an absent device waits for the device until it expires. Looks at the oldest due commands only. */
export const findBlocked = (sql: SqlTx, { afterSeconds, limit, among }: { readonly afterSeconds: number; readonly limit: number; readonly among: number }) =>
  sql.query(FIND_BLOCKED, [afterSeconds, limit, among]);

const FIND_UNTOLD = statement<{
  readonly tenant_id: string;
  readonly command_id: string;
  readonly type: string;
  readonly attempts: number;
  readonly since: Date;
}>(
  "commands.findUntold",
  `select u.tenant_id, u.command_id, c.type, u.attempts, coalesce(c.finished_at, u.retry_at) as since
     from (select * from untold_outcomes order by retry_at limit $1) u join commands c on c.tenant_id = u.tenant_id and c.command_id = u.command_id`,
);

export const findUntold = (sql: SqlTx, limit: number) => sql.query(FIND_UNTOLD, [limit]);

const COUNT_NEWER = statement<{ readonly count: number }>(
  "commands.countNewer",
  "select count(*)::int as count from (select from commands where issued_at > now() - $1 * interval '1 millisecond' limit $2) as newer",
);

/** How many commands were queued in the last time, at most so many. */
export const countNewer = async (sql: SqlTx, withinMs: number, upTo: number): Promise<number> => {
  const [row] = await sql.query(COUNT_NEWER, [withinMs, upTo]);
  return row?.count ?? 0;
};
