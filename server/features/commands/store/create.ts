// Creates many commands at once, all or none. Locks the device's row first, so its sequence numbers, queue depth and idempotency keys are
// decided by one transaction at a time, and equal requests at the same moment make one row.
import type { SqlTx } from "../../../core/events.ts";
import { notDeleted } from "../../../core/rows/not-deleted.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/database/db.ts";
import { type Admission, admit, type DeviceFacts, type NewCommand, type QueueLimits } from "../admission.ts";
import type { QueueQuota } from "../queue-quota.ts";
import { ALL_COLUMNS } from "./columns.ts";
import { type CommandRow, type DbRow, sqlTime, toInstant, toRow } from "./rows.ts";

export interface CreateFacts {
  readonly limits: QueueLimits;
  readonly quota: QueueQuota;
  readonly nodeId: string;
}

/** In the order of the items. */
export const createCommandRows = (db: Db, items: readonly NewCommand[], facts: CreateFacts): Promise<readonly Admission[]> =>
  db.sqlTx(async (tx) => {
    const admissions = await admitCommands(tx, items, facts);
    tx.defer(insertCommands(tx, admissions));
    return admissions;
  });

/** Decides about new commands under the locks of their devices and writes nothing yet. */
export const admitCommands = async (tx: SqlTx, items: readonly NewCommand[], { limits, quota, nodeId }: CreateFacts): Promise<readonly Admission[]> => {
  const tenantIds = items.map(({ scope }) => scope.tenantId);
  const near = quota.near(tenantIds);
  // Sent together, in this order: each sees what others committed while the first waited for its locks.
  const [{ devices, now }, existing, openOfTenant] = await Promise.all([
    lockDevices(tx, items),
    findByKeys(tx, items),
    countOpenOfTenants(tx, near, limits.maxOpenPerTenant),
  ]);
  quota.counted(openOfTenant, tenantIds);
  return admit(items, { devices, existing, openOfTenant, limits, nodeId, now });
};

const LOCK_DEVICES = statement<{ readonly device_id: string; readonly tenant_id: string; readonly status: string; readonly next_command_seq: number }>(
  "commands.lockDevices",
  `select d.device_id, d.tenant_id, d.status, d.next_command_seq from unnest($1::text[]) as w(device_id)
     cross join lateral (select * from devices o where o.device_id = w.device_id and ${notDeleted("o")} for no key update offset 0) d`,
);

interface DeviceCount {
  readonly now: Date;
  readonly device_id: string | null;
  readonly node_id: string | null;
  readonly live_epoch: number | null;
  readonly open: number;
}

const COUNT_OPEN_OF_DEVICES = statement<DeviceCount>(
  "commands.countOpenOfDevices",
  `select now(), d.device_id, p.node_id, case when p.connectivity = 'realtime' then p.epoch end as live_epoch,
          (select count(*) from command_queue q where q.tenant_id = d.tenant_id and q.device_id = d.device_id) as open
     from (select now()) n left join unnest($1::text[], $2::text[]) as d(tenant_id, device_id) on true
     left join lateral (select o.node_id, o.connectivity, o.epoch from device_presence o where o.device_id = d.device_id offset 0) p on true`,
);

const lockDevices = async (tx: SqlTx, items: readonly NewCommand[]) => {
  const tenantOf = new Map(items.map(({ scope, deviceId }): [string, string] => [deviceId, scope.tenantId]).sort());
  const ids = [...tenantOf.keys()];
  const locked = tx.query(LOCK_DEVICES, [ids]);
  // A second statement, because it sees what others committed while the first one waited for the lock.
  const counting = tx.query(COUNT_OPEN_OF_DEVICES, [[...tenantOf.values()], ids]);
  const [rows, counted] = await Promise.all([locked, counting]);
  const facts = new Map(counted.map((row) => [row.device_id, row]));
  const devices = new Map<string, DeviceFacts>(
    rows.map((row) => [
      row.device_id,
      {
        tenantId: row.tenant_id,
        isOnline: row.status === "online",
        nextSeq: row.next_command_seq,
        heldBy: facts.get(row.device_id)?.node_id ?? null,
        liveEpoch: facts.get(row.device_id)?.live_epoch ?? null,
        open: facts.get(row.device_id)?.open ?? 0,
      },
    ]),
  );
  return { devices, now: counted[0] === undefined ? 0 : toInstant(counted[0].now) };
};

interface KeyedRow extends DbRow {
  readonly idempotency_key: string;
  readonly request_hash: Buffer;
}

const FIND_BY_KEYS = statement<KeyedRow>(
  "commands.findByKeys",
  `select ${ALL_COLUMNS}, k.idempotency_key, k.request_hash
     from (select distinct * from unnest($1::text[], $2::text[], $3::text[])) as w(tenant_id, device_id, idempotency_key)
     cross join lateral (select * from commands o where o.tenant_id = w.tenant_id and o.device_id = w.device_id and o.idempotency_key = w.idempotency_key offset 0) k
     cross join lateral (select * from commands_now o where o.tenant_id = k.tenant_id and o.command_id = k.command_id offset 0) c`,
);

const findByKeys = async (
  tx: SqlTx,
  items: readonly NewCommand[],
): Promise<ReadonlyMap<string, { readonly row: CommandRow; readonly requestHash: Buffer }>> => {
  const keyed = items.filter(({ idempotency }) => idempotency !== null);
  if (keyed.length === 0) return new Map();
  const rows = await tx.query(FIND_BY_KEYS, [
    keyed.map(({ scope }) => scope.tenantId),
    keyed.map(({ deviceId }) => deviceId),
    keyed.map(({ idempotency }) => idempotency?.key),
  ]);
  return new Map(rows.map((row) => [`${row.device_id} ${row.idempotency_key}`, { row: toRow(row), requestHash: row.request_hash }]));
};

// Counting stops at the limit, so a tenant far above it costs no more.
const COUNT_OPEN_OF_TENANTS = statement<{ readonly tenant_id: string; readonly open: number }>(
  "commands.countOpenOfTenants",
  `select t.tenant_id, (select count(*) from (select from command_queue q where q.tenant_id = t.tenant_id limit $2) o) as open
     from unnest($1::text[]) as t(tenant_id)`,
);

const countOpenOfTenants = async (tx: SqlTx, tenantIds: readonly string[], max: number | null): Promise<ReadonlyMap<string, number>> => {
  if (tenantIds.length === 0) return new Map();
  const rows = await tx.query(COUNT_OPEN_OF_TENANTS, [tenantIds, max]);
  return new Map(rows.map(({ tenant_id, open }) => [tenant_id, open]));
};

const INSERT_COMMANDS = statement(
  "commands.insert",
  `with n as materialized (
     select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::int[], $7::text[], $8::jsonb[], $9::boolean[], $10::timestamptz[],
       $11::timestamptz[], $12::timestamptz[], $13::int[], $14::boolean[], $15::int[], $16::text[], $17::bytea[], $18::text[], $19::text[], $20::timestamptz[], $21::json[])
       as n(command_id, tenant_id, device_id, seq, lane, priority, type, payload, requires_ack, available_at, expires_at, deadline_at, max_attempts, redeliver_safe,
         exec_timeout_s, idempotency_key, request_hash, traceparent, created_by, issued_at, history)),
   facts as (
     insert into commands (command_id, tenant_id, device_id, seq, lane, priority, type, payload, requires_ack, available_at, expires_at, max_attempts, redeliver_safe,
       exec_timeout_s, idempotency_key, request_hash, traceparent, created_by, issued_at)
     select command_id, tenant_id, device_id, seq, lane, priority, type, payload, requires_ack, available_at, expires_at, max_attempts, redeliver_safe,
       exec_timeout_s, idempotency_key, request_hash, traceparent, created_by, issued_at from n),
   queue as (
     insert into command_queue (tenant_id, device_id, seq, command_id, lane, priority, status, deadline_at, available_at, expires_at, requires_ack, redeliver_safe,
       max_attempts, history)
     select tenant_id, device_id, seq, command_id, lane, priority, 'queued', deadline_at, available_at, expires_at, requires_ack, redeliver_safe, max_attempts, history from n)
   update devices d set next_command_seq = f.next from (select device_id, max(seq) + 1 as next from n group by device_id) f
    where d.device_id = f.device_id and d.ctid = any(array(
      select t.place from (select distinct device_id from n) w cross join lateral (select o.ctid as place from devices o where o.device_id = w.device_id offset 0) t))`,
);

/** Writes the admitted commands, in the transaction that admitted them. */
export const insertCommands = async (tx: SqlTx, admissions: readonly Admission[]): Promise<void> => {
  const created = admissions.flatMap((admission) => (admission.kind === "created" ? [admission] : []));
  if (created.length === 0) return;
  const rows = created.map(({ row }) => row);
  await tx.query(INSERT_COMMANDS, [
    rows.map((row) => row.commandId),
    rows.map((row) => row.tenantId),
    rows.map((row) => row.deviceId),
    rows.map((row) => row.seq),
    rows.map((row) => row.lane),
    rows.map((row) => row.priority),
    rows.map((row) => row.type),
    rows.map((row) => JSON.stringify(row.payload)),
    rows.map((row) => row.requiresAck),
    rows.map((row) => sqlTime(row.availableAt)),
    rows.map((row) => sqlTime(row.expiresAt)),
    rows.map((row) => sqlTime(row.deadlineAt)),
    rows.map((row) => row.maxAttempts),
    rows.map((row) => row.redeliverSafe),
    rows.map((row) => row.execTimeoutSeconds),
    created.map(({ item }) => item.idempotency?.key ?? null),
    created.map(({ item }) => item.idempotency?.requestHash ?? null),
    rows.map((row) => row.traceparent),
    rows.map((row) => row.createdBy),
    rows.map((row) => sqlTime(row.issuedAt)),
    rows.map((row) => JSON.stringify(row.history)),
  ]);
};
