// Changes commands after their claim: lock the rows, let the rules decide, write all rows and their history in one statement.

import type { CommandStatus } from "../../../../protocol/index.ts";
import type { DeviceRef } from "../../../core/delivery.ts";
import type { SqlTx } from "../../../core/events.ts";
import { type Statement, statement } from "../../../core/statements.ts";
import type { Instant } from "../state.ts";
import { CHANGEABLE, type CommandRow, type DbRow, IN_FLIGHT, LEAN_COLUMNS, OPEN, toInstant, toRow } from "./rows.ts";

export interface Locked {
  readonly rows: readonly CommandRow[];
  /** The transaction's time; null when no row was found. */
  readonly now: Instant | null;
}

interface LockedRow extends DbRow {
  readonly live_epoch: number | null;
  readonly db_now: Date;
}

const lockText = (where: string, tail = "order by c.command_id for update of c"): string =>
  `select ${LEAN_COLUMNS}, case when p.connectivity = 'realtime' then p.epoch end as live_epoch, now() as db_now
     from commands c left join device_presence p on p.device_id = c.device_id where ${where} ${tail}`;

const lock = async (tx: SqlTx, text: Statement<LockedRow>, values: readonly unknown[]): Promise<Locked> => {
  const rows = await tx.query(text, values);
  return { rows: rows.map(toRow), now: rows[0] === undefined ? null : toInstant(rows[0].db_now) };
};

export interface CommandRef extends DeviceRef {
  readonly commandId: string;
}

const LOCK_COMMANDS = statement<LockedRow>(
  "commands.lockCommands",
  lockText("(c.command_id, c.device_id, c.tenant_id) in (select * from unnest($1::text[], $2::text[], $3::text[]))"),
);

/** Finds a command only under its own device and tenant. */
export const lockCommands = (tx: SqlTx, refs: readonly CommandRef[]): Promise<Locked> =>
  lock(tx, LOCK_COMMANDS, [refs.map(({ commandId }) => commandId), refs.map(({ deviceId }) => deviceId), refs.map(({ tenantId }) => tenantId)]);

const SHARE_PRESENCE = statement<{ readonly one: number }>(
  "commands.sharePresence",
  "select 1 as one from device_presence p join commands c on c.device_id = p.device_id where c.command_id = $1 and c.tenant_id = $2 for share of p",
);
const WAIT_FOR_COMMAND = statement<{ readonly one: number }>(
  "commands.waitForCommand",
  "select 1 as one from commands where command_id = $1 and tenant_id = $2 for update",
);
const LOCK_COMMAND = statement<LockedRow>("commands.lockCommand", lockText("c.command_id = $1 and c.tenant_id = $2"));

// Locks the presence first, as a claim and a hello do: a cancel that waited for a hello must see the session that the hello opened. One statement
// that waits for the command would join it with the presence of before the wait. A device's first hello has no presence row yet; the second
// statement then waits for the command, and the third reads both.
export const lockCommand = async (tx: SqlTx, { tenantId }: { readonly tenantId: string }, commandId: string): Promise<Locked> => {
  const values = [commandId, tenantId];
  const [, , locked] = await Promise.all([tx.query(SHARE_PRESENCE, values), tx.query(WAIT_FOR_COMMAND, values), lock(tx, LOCK_COMMAND, values)]);
  return locked;
};

// Passes the device once per command: with a single value the planner uses an index by device and reads everything the device ever had.
const LOCK_OF_DEVICE = statement<LockedRow>("commands.lockOfDevice", lockText("(c.command_id, c.device_id) in (select * from unnest($1::text[], $2::text[]))"));

/** For a session, which is authenticated as this device and thereby its tenant. */
export const lockOfDevice = (tx: SqlTx, deviceId: string, commandIds: readonly string[]): Promise<Locked> =>
  lock(tx, LOCK_OF_DEVICE, [commandIds, commandIds.map(() => deviceId)]);

// Reads each device by itself (`offset 0` keeps the planner from reading every open command) and the listed commands by id.
const LOCK_FOR_SETTLING = statement<LockedRow>(
  "commands.lockForSettling",
  lockText(`c.command_id in (
       select held.command_id from unnest($1::text[], $2::text[]) as s(tenant_id, device_id) cross join lateral (
         select o.command_id from commands o where o.device_id = s.device_id and o.tenant_id = s.tenant_id and o.status in ${OPEN} and o.status in ${IN_FLIGHT} offset 0) held
       union select l.command_id from unnest($3::text[], $4::text[], $5::text[]) as v(tenant_id, device_id, command_id)
         join commands l on l.command_id = v.command_id and l.device_id = v.device_id and l.tenant_id = v.tenant_id)`),
);

/** Commands that these devices hold according to their rows, and those that they list, in any state. */
export const lockForSettling = (tx: SqlTx, devices: readonly DeviceRef[], listed: readonly CommandRef[]): Promise<Locked> =>
  lock(tx, LOCK_FOR_SETTLING, [
    devices.map(({ tenantId }) => tenantId),
    devices.map(({ deviceId }) => deviceId),
    listed.map(({ tenantId }) => tenantId),
    listed.map(({ deviceId }) => deviceId),
    listed.map(({ commandId }) => commandId),
  ]);

const LOCK_OPEN = statement<LockedRow>("commands.lockOpen", lockText(`c.tenant_id = $1 and c.device_id = $2 and c.status in ${OPEN}`));

export const lockOpen = (tx: SqlTx, { tenantId, deviceId }: DeviceRef): Promise<Locked> => lock(tx, LOCK_OPEN, [tenantId, deviceId]);

const LOCK_QUEUED = statement<LockedRow>(
  "commands.lockQueued",
  lockText(`c.tenant_id = $1 and c.device_id = $2 and c.status = 'queued' and c.status in ${OPEN}`),
);

export const lockQueued = (tx: SqlTx, { tenantId, deviceId }: DeviceRef): Promise<Locked> => lock(tx, LOCK_QUEUED, [tenantId, deviceId]);

const LOCK_OVERDUE = statement<LockedRow>(
  "commands.lockOverdue",
  lockText("c.deadline_at <= now()", "order by c.deadline_at limit $1 for update of c skip locked"),
);

/** For the reaper, of all tenants. Skips rows that another node has locked. */
export const lockOverdue = (tx: SqlTx, limit: number): Promise<Locked> => lock(tx, LOCK_OVERDUE, [limit]);

export interface HistoryEntry {
  readonly row: CommandRow;
  readonly from: CommandStatus | null;
  readonly code: string | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly actor: string;
}

const HISTORY_TYPES = ["text", "text", "text", "text", "bigint", "int", "text", "jsonb", "text"];
const NAMES = CHANGEABLE.map(({ column }) => column);
const TYPES = CHANGEABLE.map(({ sqlType }) => sqlType);
const arrays = (types: readonly string[], from: number): string => types.map((type, index) => `$${from + index}::${type}[]`).join(", ");

// One statement, because a statement costs more than a row.
const SAVE = statement(
  "commands.save",
  `
  with saved as (
    update commands c set ${NAMES.map((name) => `${name} = v.${name}`).join(", ")}
      from unnest($1::text[], ${arrays(TYPES, 2)}) as v(command_id, ${NAMES.join(", ")}) where c.command_id = v.command_id)
  insert into command_events (tenant_id, command_id, from_status, to_status, epoch, attempt, code, detail, actor, node_id)
  select e.*, $${NAMES.length + 2} from unnest(${arrays(HISTORY_TYPES, NAMES.length + 3)}) as e`,
);

/** Writes the rows as they are now, and one history entry for each transition. */
export const saveRows = async (tx: SqlTx, rows: readonly CommandRow[], entries: readonly HistoryEntry[], nodeId: string): Promise<void> => {
  if (rows.length === 0) return;
  await tx.query(SAVE, [
    rows.map(({ commandId }) => commandId),
    ...CHANGEABLE.map(({ value }) => rows.map(value)),
    nodeId,
    entries.map(({ row }) => row.tenantId),
    entries.map(({ row }) => row.commandId),
    entries.map(({ from }) => from),
    entries.map(({ row }) => row.status),
    entries.map(({ row }) => row.sessionEpoch),
    entries.map(({ row }) => row.attempt),
    entries.map(({ code }) => code),
    entries.map(({ detail }) => (detail === null ? null : JSON.stringify(detail))),
    entries.map(({ actor }) => actor),
  ]);
};
