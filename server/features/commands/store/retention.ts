// Deletes commands that ended long ago, in small batches and on one node at a time.
import type { SqlTx } from "../../../core/events.ts";
import { becomeLeader } from "../../../core/leader-election.ts";
import { statement } from "../../../core/statements.ts";

// The index summarises ranges of pages by the time of the ends in them. An open command is kept however old it is.
const DELETE_ENDED = statement<{ readonly count: number }>(
  "commands.deleteEnded",
  `with gone as (
     delete from commands c using (
       select tenant_id, command_id from commands where finished_at < now() - $1 * interval '1 day' limit $2) old
      where c.tenant_id = old.tenant_id and c.command_id = old.command_id
     returning c.command_id)
   select count(*) from gone`,
);

/** How many it deleted; none while another node is deleting. */
export const deleteEnded = async (tx: SqlTx, { keepDays, limit }: { readonly keepDays: number; readonly limit: number }): Promise<number> => {
  if (!(await becomeLeader(tx, "commandRetention"))) return 0;
  const [gone] = await tx.query(DELETE_ENDED, [keepDays, limit]);
  return gone?.count ?? 0;
};
