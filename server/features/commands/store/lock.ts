// Locks commands for a change: open ones in the queue, ended ones in their own table. Whoever changes a command locks it first, in the order of ids; only the
// end of a command that this node has in hand does without (store/finish.ts).

import type { SqlTx } from "../../../core/events.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import { type Statement, statement } from "../../../core/statements.ts";
import type { Instant } from "../state.ts";
import { ENDED_COLUMNS, IN_FLIGHT, OPEN_COLUMNS, WITH_COMMAND } from "./columns.ts";
import { type CommandRow, type DbRow, toInstant, toRow } from "./rows.ts";

export interface Locked {
  readonly rows: readonly CommandRow[];
  /** The transaction's time; null when no row was found. */
  readonly now: Instant | null;
}

interface LockedRow extends DbRow {
  readonly live_epoch: number | null;
  readonly db_now: Date;
}

const WITH_PRESENCE = "left join lateral (select d.epoch, d.connectivity from device_presence d where d.device_id = q.device_id offset 0) p on true";
const openText = (where: string, tail = "order by q.command_id for update of q"): string =>
  `select ${OPEN_COLUMNS}, case when p.connectivity = 'realtime' then p.epoch end as live_epoch, now() as db_now
     from command_queue q ${WITH_COMMAND} ${WITH_PRESENCE} where ${where} ${tail}`;

// `is not distinct from` says = to everybody but the planner, who shall not take the index by device and read everything that the device ever had.
/** Each command of `refs`, which has tenant, command and device, in the order of its rows. */
const openOf = (refs: string): string =>
  `select ${OPEN_COLUMNS}, case when p.connectivity = 'realtime' then p.epoch end as live_epoch, now() as db_now
     from (${refs}) r cross join lateral (select * from commands f where f.tenant_id = r.tenant_id and f.command_id = r.command_id and f.device_id is not distinct from r.device_id offset 0) c
     cross join lateral (select * from command_queue o where o.tenant_id = c.tenant_id and o.device_id = c.device_id and o.seq = c.seq for update offset 0) q ${WITH_PRESENCE}`;

const endedOf = (refs: string): string =>
  `select ${ENDED_COLUMNS}, null::bigint as live_epoch, now() as db_now
     from (${refs}) r cross join lateral (select * from commands f where f.tenant_id = r.tenant_id and f.command_id = r.command_id and f.device_id is not distinct from r.device_id
       and f.finished_at is not null for update offset 0) c`;

const toLocked = (rows: readonly LockedRow[]): Locked => ({ rows: rows.map(toRow), now: rows[0] === undefined ? null : toInstant(rows[0].db_now) });

const lock = async (tx: SqlTx, text: Statement<LockedRow>, values: readonly unknown[]): Promise<Locked> => toLocked(await tx.query(text, values));

interface Pair {
  readonly open: Statement<LockedRow>;
  readonly ended: Statement<LockedRow>;
}

/** A command that ends while the first statement waits for it is found by the second, which is asked only if something was not open. */
const lockBoth = async (tx: SqlTx, { open, ended }: Pair, values: readonly unknown[], asked: number): Promise<Locked> => {
  const first = await lock(tx, open, values);
  if (first.rows.length >= asked) return first;
  const second = await lock(tx, ended, values);
  return { rows: [...first.rows, ...second.rows], now: first.now ?? second.now };
};

export interface CommandRef extends DeviceRef {
  readonly commandId: string;
}

const REFS = "select * from unnest($1::text[], $2::text[], $3::text[]) as r(tenant_id, command_id, device_id)";
const LOCK_OPEN_COMMANDS = statement<LockedRow>("commands.lockOpenCommands", openOf(REFS));
const LOCK_ENDED_COMMANDS = statement<LockedRow>("commands.lockEndedCommands", endedOf(REFS));

const refValues = (refs: readonly CommandRef[]): readonly unknown[] => {
  const sorted = [...refs].sort((a, b) => (a.commandId < b.commandId ? -1 : 1));
  return [sorted.map(({ tenantId }) => tenantId), sorted.map(({ commandId }) => commandId), sorted.map(({ deviceId }) => deviceId)];
};

/** Finds a command only under its own device and tenant. Takes each once. */
export const lockCommands = (tx: SqlTx, refs: readonly CommandRef[]): Promise<Locked> =>
  lockBoth(tx, { open: LOCK_OPEN_COMMANDS, ended: LOCK_ENDED_COMMANDS }, refValues(refs), refs.length);

const SHARE_PRESENCE = statement<{ readonly one: number }>(
  "commands.sharePresence",
  "select 1 as one from device_presence p where p.device_id = (select c.device_id from commands c where c.command_id = $1 and c.tenant_id = $2) for share",
);
const ONE_REF = "select f.tenant_id, f.command_id, f.device_id from commands f where f.command_id = $1 and f.tenant_id = $2";
const LOCK_OPEN_COMMAND = statement<LockedRow>("commands.lockOpenCommand", openOf(ONE_REF));
const LOCK_ENDED_COMMAND = statement<LockedRow>("commands.lockEndedCommand", endedOf(ONE_REF));
const WAIT_FOR_COMMAND = statement<{ readonly one: number }>("commands.waitForCommand", `select 1 as one from (${openOf(ONE_REF)}) locked`);

// Locks the presence first, as a hello does: a cancel that waited for a hello must see the session that the hello opened. One statement that waits for
// the command would join it with the presence of before the wait. A device's first hello has no presence row yet; the second statement then waits for
// the command, and the third reads both.
export const lockCommand = async (tx: SqlTx, { tenantId }: { readonly tenantId: string }, commandId: string): Promise<Locked> => {
  const values = [commandId, tenantId];
  const [, , locked] = await Promise.all([
    tx.query(SHARE_PRESENCE, values),
    tx.query(WAIT_FOR_COMMAND, values),
    lockBoth(tx, { open: LOCK_OPEN_COMMAND, ended: LOCK_ENDED_COMMAND }, values, 1),
  ]);
  return locked;
};

/** For a session or a poll, which is authenticated as this device. */
export const lockOfDevice = (tx: SqlTx, { tenantId, deviceId }: DeviceRef, commandIds: readonly string[]): Promise<Locked> =>
  lockCommands(
    tx,
    commandIds.map((commandId) => ({ tenantId, deviceId, commandId })),
  );

const LOCK_FOR_SETTLING = statement<LockedRow>(
  "commands.lockForSettling",
  openOf(`select * from (
       select s.tenant_id, held.command_id, s.device_id from unnest($1::text[], $2::text[]) as s(tenant_id, device_id) cross join lateral (
         select o.command_id from command_queue o where o.tenant_id = s.tenant_id and o.device_id = s.device_id and o.status in ${IN_FLIGHT} offset 0) held
       union select * from unnest($3::text[], $4::text[], $5::text[])) as u(tenant_id, command_id, device_id) order by command_id`),
);

/** Open commands that these devices hold according to their rows, and those that they list, in any state. */
export const lockForSettling = async (tx: SqlTx, devices: readonly DeviceRef[], listed: readonly CommandRef[]): Promise<Locked> => {
  const open = await lock(tx, LOCK_FOR_SETTLING, [devices.map(({ tenantId }) => tenantId), devices.map(({ deviceId }) => deviceId), ...refValues(listed)]);
  const found = new Set<string>(open.rows.map(({ commandId }) => commandId));
  const missing = listed.filter(({ commandId }) => !found.has(commandId));
  if (missing.length === 0) return open;
  const ended = await lock(tx, LOCK_ENDED_COMMANDS, refValues(missing));
  return { rows: [...open.rows, ...ended.rows], now: open.now ?? ended.now };
};

const LOCK_OPEN = statement<LockedRow>("commands.lockOpen", openText("q.tenant_id = $1 and q.device_id = $2"));

export const lockOpen = (tx: SqlTx, { tenantId, deviceId }: DeviceRef): Promise<Locked> => lock(tx, LOCK_OPEN, [tenantId, deviceId]);

const LOCK_QUEUED = statement<LockedRow>("commands.lockQueued", openText("q.tenant_id = $1 and q.device_id = $2 and q.status = 'queued'"));

export const lockQueued = (tx: SqlTx, { tenantId, deviceId }: DeviceRef): Promise<Locked> => lock(tx, LOCK_QUEUED, [tenantId, deviceId]);

const LOCK_OVERDUE = statement<LockedRow>(
  "commands.lockOverdue",
  openText(
    "q.deadline_at <= now() and (q.status <> 'queued' or q.deadline_at <= now() - $2 * interval '1 millisecond')",
    "order by q.deadline_at limit $1 for update of q skip locked",
  ),
);

/** For the reaper, of all tenants. Skips rows that another node has locked, and for that long those that may have been sent and not been written yet. */
export const lockOverdue = (tx: SqlTx, limit: number, graceMs: number): Promise<Locked> => lock(tx, LOCK_OVERDUE, [limit, graceMs]);
