// Outcomes to retry, because the feature's handler threw. Every transaction that changes a row here has locked its command.
import type { CommandId, TenantId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import { statement } from "../../../core/statements.ts";
import type { CommandRow } from "./rows.ts";

interface Untold {
  readonly tenantId: TenantId;
  readonly commandId: CommandId;
}

const READ_PAYLOADS = statement<{ readonly command_id: string; readonly payload: CommandRow["payload"] }>(
  "commands.readPayloads",
  "select c.command_id, c.payload from unnest($1::text[], $2::text[]) as v(tenant_id, command_id) join commands c on c.tenant_id = v.tenant_id and c.command_id = v.command_id",
);
const ADD_UNTOLD = statement(
  "commands.addUntold",
  `insert into untold_outcomes (command_id, tenant_id, retry_at) values ($1, $2, now() + interval '5 seconds')
   on conflict (command_id) do update set attempts = 0, retry_at = excluded.retry_at`,
);
const REMOVE_UNTOLD = statement("commands.removeUntold", "delete from untold_outcomes where command_id = $1");
const TAKE_UNTOLD = statement<Untold>(
  "commands.takeUntold",
  `select u.command_id as "commandId", u.tenant_id as "tenantId" from untold_outcomes u join commands c on c.tenant_id = u.tenant_id and c.command_id = u.command_id
    where u.retry_at <= now() order by u.retry_at limit 1 for update of c skip locked`,
);
const REMOVE_ORPHANS = statement(
  "commands.removeOrphanedUntold",
  "delete from untold_outcomes u where retry_at <= now() and not exists (select 1 from commands c where c.tenant_id = u.tenant_id and c.command_id = u.command_id)",
);
const RETRY_LATER = statement(
  "commands.retryUntoldLater",
  `update untold_outcomes set attempts = attempts + 1, retry_at = now() + least(600, 10 * 2 ^ least(attempts, 10)) * interval '1 second' where command_id = $1`,
);

/** Reads the payloads, which the rows of a change leave out because they may be large. */
export const payloadsOf = async (tx: SqlTx, commands: readonly Untold[]): Promise<ReadonlyMap<string, CommandRow["payload"]>> => {
  const rows = await tx.query(READ_PAYLOADS, [commands.map(({ tenantId }) => tenantId), commands.map(({ commandId }) => commandId)]);
  return new Map(rows.map(({ command_id, payload }) => [command_id, payload]));
};

export const addUntold = (tx: SqlTx, { tenantId, commandId }: Untold): Promise<unknown> => tx.query(ADD_UNTOLD, [commandId, tenantId]);

export const removeUntold = (tx: SqlTx, commandId: string): Promise<unknown> => tx.query(REMOVE_UNTOLD, [commandId]);

/** Locks the command of the outcome that has been due longest; null when none is due. */
export const takeUntold = async (tx: SqlTx): Promise<Untold | null> => {
  const [row] = await tx.query(TAKE_UNTOLD, []);
  if (row !== undefined) return row;
  // Retention has deleted the command.
  await tx.query(REMOVE_ORPHANS, []);
  return null;
};

/** After 10 s, 20 s, ... at most 10 min. */
export const retryLater = (tx: SqlTx, commandId: string): Promise<unknown> => tx.query(RETRY_LATER, [commandId]);
