// Deletes commands that ended long ago, each with its history, in small batches and on one node at a time.
import type { SqlTx } from "../../../core/events.ts";
import { statement, TRY_LOCK } from "../../../core/statements.ts";

// Any number that nothing else locks; released with the transaction.
const RETENTION_LOCK = 7_266_530_022;

// An ended command has no deadline, and the index of ended commands is ordered by the time of their end. An open command is kept however old it is.
const DELETE_ENDED = statement<{ readonly count: number }>(
  "commands.deleteEnded",
  `with gone as (
     delete from commands where command_id in (
       select command_id from commands where deadline_at is null and finished_at < now() - $1 * interval '1 day' order by finished_at limit $2)
     returning command_id, tenant_id, device_id, idempotency_key),
   keys as (
     delete from command_keys k using gone
      where k.tenant_id = gone.tenant_id and k.device_id = gone.device_id and k.idempotency_key = gone.idempotency_key),
   history as (delete from command_events e using gone where e.command_id = gone.command_id)
   select count(*) from gone`,
);

/** How many it deleted; none while another node is deleting. */
export const deleteEnded = async (tx: SqlTx, { keepDays, limit }: { readonly keepDays: number; readonly limit: number }): Promise<number> => {
  const [turn] = await tx.query(TRY_LOCK, [RETENTION_LOCK]);
  if (turn?.mine !== true) return 0;
  const [gone] = await tx.query(DELETE_ENDED, [keepDays, limit]);
  return gone?.count ?? 0;
};
