// Writes locked commands after a transition: an open one in the queue, an ended one in its own table, which takes it out of the queue.
import { isOpen } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import { statement } from "../../../core/statements.ts";
import { arrayParameters, assignments, END_STATE, namesOf, placesInQueue, placesOfCommands, QUEUE_STATE, SAME_QUEUED } from "./columns.ts";
import type { CommandRow } from "./rows.ts";

const SAVE_OPEN = statement(
  "commands.saveOpen",
  `with v as materialized (
     select * from unnest($1::text[], $2::text[], $3::bigint[], ${arrayParameters(QUEUE_STATE, 4)}) as v(tenant_id, device_id, seq, ${namesOf(QUEUE_STATE)}))
   update command_queue q set revision = q.revision + 1, ${assignments(QUEUE_STATE)} from v where q.ctid = any(${placesInQueue()}) and ${SAME_QUEUED}`,
);

const SAVE_ENDED = statement(
  "commands.saveEnded",
  `with v as materialized (
     select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], ${arrayParameters(END_STATE, 5)})
       as v(tenant_id, device_id, seq, command_id, ${namesOf(END_STATE)})),
   gone as (delete from command_queue q where q.ctid = any(${placesInQueue()}))
   update commands c set ${assignments(END_STATE)} from v
    where c.ctid = any(${placesOfCommands("v")}) and c.tenant_id = v.tenant_id and c.command_id = v.command_id`,
);

export const saveRows = async (tx: SqlTx, rows: readonly CommandRow[]): Promise<void> => {
  const open = rows.filter(({ status }) => isOpen(status));
  const ended = rows.filter(({ status }) => !isOpen(status));
  await Promise.all([
    open.length === 0 ? null : tx.query(SAVE_OPEN, [...keysOf(open), ...QUEUE_STATE.map(({ value }) => open.map(value))]),
    ended.length === 0
      ? null
      : tx.query(SAVE_ENDED, [...keysOf(ended), ended.map(({ commandId }) => commandId), ...END_STATE.map(({ value }) => ended.map(value))]),
  ]);
};

const keysOf = (rows: readonly CommandRow[]): readonly unknown[][] => [
  rows.map(({ tenantId }) => tenantId),
  rows.map(({ deviceId }) => deviceId),
  rows.map(({ seq }) => seq),
];
