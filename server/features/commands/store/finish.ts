// Ends commands that this node has in hand, with their events, in one statement and without locking them first: a command whose row was changed since
// the node read it is left alone.

import type { DurableEvent, Happened } from "../../../core/events.ts";
import { eventColumns, eventSource, INSERT_EVENTS } from "../../../core/rows/event-rows.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/database/db.ts";
import { arrayParameters, assignments, END_STATE, namesOf, placesInQueue, placesOfCommands } from "./columns.ts";
import type { CommandRow } from "./rows.ts";

const FIRST_STATE = 6;
const FINISH = statement<{ readonly command_id: string }>(
  "commands.finish",
  `with v as materialized (
     select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::int[], ${arrayParameters(END_STATE, FIRST_STATE)})
       as v(tenant_id, device_id, seq, command_id, revision, ${namesOf(END_STATE)})),
   gone as (delete from command_queue q where q.ctid = any(${placesInQueue("o.revision = v.revision")}) returning q.tenant_id, q.command_id),
   ended as (
     update commands c set ${assignments(END_STATE)} from v where c.ctid = any(${placesOfCommands("gone")}) and c.tenant_id = v.tenant_id and c.command_id = v.command_id),
   told as (${INSERT_EVENTS} from ${eventSource(FIRST_STATE + END_STATE.length)} join gone on gone.command_id = e.subject_id)
   select command_id from gone`,
);

export interface Finished {
  /** As it ended; `revision` is that of the row in the queue. */
  readonly row: CommandRow;
  readonly event: Happened<DurableEvent>;
}

/** Returns the ids of those that it ended. Committed when it returns. */
export const finishCommands = async (db: Db, finished: readonly Finished[]): Promise<ReadonlySet<string>> => {
  const sorted = [...finished].sort((a, b) => (a.row.commandId < b.row.commandId ? -1 : 1));
  const rows = sorted.map(({ row }) => row);
  const gone = await db.query(FINISH, [
    rows.map(({ tenantId }) => tenantId),
    rows.map(({ deviceId }) => deviceId),
    rows.map(({ seq }) => seq),
    rows.map(({ commandId }) => commandId),
    rows.map(({ revision }) => revision),
    ...END_STATE.map(({ value }) => rows.map(value)),
    ...eventColumns(sorted.map(({ event }) => event)),
  ]);
  return new Set(gone.map(({ command_id }) => command_id));
};
