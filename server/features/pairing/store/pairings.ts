// Rows of pairings: one attempt each, found by the hash of its code. Every deadline is judged by the database's clock.
import type { AgentId, DeviceId, Role, TenantId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";

export type StoredStatus = "pending" | "activated" | "expired";

interface PairingRow {
  readonly pairing_id: string;
  readonly fingerprint: string;
  readonly device_name: string | null;
  readonly platform: string | null;
  readonly initiator_ip: string;
  readonly status: StoredStatus;
  readonly tenant_id: TenantId | null;
  readonly prepared_by: string | null;
  readonly prepared_email: string | null;
  readonly device_id: DeviceId | null;
  readonly agent_id: AgentId | null;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly activation_token_expires_at: Date | null;
  readonly replaces_device_id: DeviceId | null;
  readonly activated_recently: boolean;
}

const toPairing = (row: PairingRow) => ({
  pairingId: row.pairing_id,
  fingerprint: row.fingerprint,
  deviceName: row.device_name,
  platform: row.platform,
  initiatorIp: row.initiator_ip,
  status: row.status,
  tenantId: row.tenant_id,
  preparedBy: row.prepared_by,
  preparedEmail: row.prepared_email,
  deviceId: row.device_id,
  agentId: row.agent_id,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  tokenExpiresAt: row.activation_token_expires_at,
  replacesDeviceId: row.replaces_device_id,
  activatedRecently: row.activated_recently,
});
export type Pairing = Readonly<ReturnType<typeof toPairing>>;

// A code that is past its time is expired, whether or not the job has already written it.
const COLUMNS = `pairing_id, fingerprint, device_name, platform, initiator_ip, tenant_id, prepared_by, prepared_email, device_id, agent_id, created_at, expires_at,
  activation_token_expires_at, replaces_device_id, case when status = 'pending' and expires_at <= now() then 'expired' else status end as status,
  coalesce(activated_at > now() - interval '15 minutes', false) as activated_recently`;
const LIVE = "status = 'pending' and expires_at > now()";
// $2 is the tenant that asks: a code belongs to the first that claimed it.
const UNCLAIMED = "(tenant_id is null or tenant_id = $2)";

/** Until the end of the transaction nobody else begins a pairing for this machine. */
export const lockFingerprint = async (tx: SqlTx, fingerprint: string): Promise<void> => {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('pairing of ' || $1, 0))", [fingerprint]);
};

export const expireOthers = async (tx: SqlTx, fingerprint: string): Promise<void> => {
  await tx.query("update pairings set status = 'expired' where fingerprint = $1 and status = 'pending'", [fingerprint]);
};

export interface NewPairing {
  readonly pairingId: string;
  readonly codeHash: Uint8Array;
  readonly fingerprint: string;
  readonly deviceName: string | null;
  readonly platform: string | null;
  readonly initiatorIp: string;
  readonly lifeSeconds: number;
}

/** Null when the code is in use. */
export const insertPairing = async (
  tx: SqlTx,
  { pairingId, codeHash, fingerprint, deviceName, platform, initiatorIp, lifeSeconds }: NewPairing,
): Promise<Date | null> => {
  const [row] = await tx.query<{ expires_at: Date }>(
    `insert into pairings (pairing_id, code_hash, fingerprint, device_name, platform, initiator_ip, expires_at)
     values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7)) on conflict (code_hash) do nothing returning expires_at`,
    [pairingId, codeHash, fingerprint, deviceName, platform, initiatorIp, lifeSeconds],
  );
  if (row !== undefined) await tx.query("insert into enrollments (pairing_id) values ($1)", [pairingId]);
  return row?.expires_at ?? null;
};

export const findByCode = async (sql: SqlTx, codeHash: Uint8Array): Promise<Pairing | null> => {
  const [row] = await sql.query<PairingRow>(`select ${COLUMNS} from pairings where code_hash = $1`, [codeHash]);
  return row === undefined ? null : toPairing(row);
};

export const findLatest = async (sql: SqlTx, fingerprint: string): Promise<Pairing | null> => {
  const [row] = await sql.query<PairingRow>(`select ${COLUMNS} from pairings where fingerprint = $1 order by created_at desc, pairing_id desc limit 1`, [
    fingerprint,
  ]);
  return row === undefined ? null : toPairing(row);
};

export interface Preparation {
  readonly codeHash: Uint8Array;
  readonly userId: string;
  readonly email: string | null;
  readonly role: Role;
  readonly tokenHash: Uint8Array;
  readonly tokenLifeSeconds: number;
  /** The living device that the user agreed to replace. */
  readonly replacesDeviceId: DeviceId | null;
}

/** The last of a tenant to prepare holds the code; an earlier token is worth nothing then. Null when the code is not live, or another tenant's. */
export const prepare = async (sql: SqlTx, { tenantId }: SystemScope, preparation: Preparation): Promise<Pairing | null> => {
  const { codeHash, userId, email, role, tokenHash, tokenLifeSeconds, replacesDeviceId } = preparation;
  const [row] = await sql.query<PairingRow>(
    `update pairings set tenant_id = $2, prepared_by = $3, prepared_email = $4, prepared_role = $5, activation_token_hash = $6,
       activation_token_expires_at = least(now() + make_interval(secs => $7), expires_at), replaces_device_id = $8
     where code_hash = $1 and ${LIVE} and ${UNCLAIMED} returning ${COLUMNS}`,
    [codeHash, tenantId, userId, email, role, tokenHash, tokenLifeSeconds, replacesDeviceId],
  );
  return row === undefined ? null : toPairing(row);
};

/** The live pairing that this token was made for. Code, tenant and user are bound to the token: preparing again makes another. */
export const findPrepared = async (sql: SqlTx, codeHash: Uint8Array, tokenHash: Uint8Array): Promise<Pairing | null> => {
  const [row] = await sql.query<PairingRow>(
    `select ${COLUMNS} from pairings where code_hash = $1 and ${LIVE} and activation_token_hash = $2 and activation_token_expires_at > now()`,
    [codeHash, tokenHash],
  );
  return row === undefined ? null : toPairing(row);
};

/** The verdict of a race: the one statement that turns pending into activated. Null for everyone else. */
export const activateByToken = async (tx: SqlTx, codeHash: Uint8Array, tokenHash: Uint8Array): Promise<Pairing | null> => {
  const [row] = await tx.query<PairingRow>(
    `update pairings set status = 'activated', activated_at = now(), activation_token_hash = null
     where code_hash = $1 and ${LIVE} and activation_token_hash = $2 and activation_token_expires_at > now() returning ${COLUMNS}`,
    [codeHash, tokenHash],
  );
  return row === undefined ? null : toPairing(row);
};

/** The same for an enrollment token, which stands in for the user. */
export const activateForTenant = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { codeHash, preparedBy }: { readonly codeHash: Uint8Array; readonly preparedBy: string },
): Promise<Pairing | null> => {
  const [row] = await tx.query<PairingRow>(
    `update pairings set status = 'activated', activated_at = now(), activation_token_hash = null, tenant_id = $2, prepared_by = $3
     where code_hash = $1 and ${LIVE} and ${UNCLAIMED} returning ${COLUMNS}`,
    [codeHash, tenantId, preparedBy],
  );
  return row === undefined ? null : toPairing(row);
};

/** The device that this very token paired with this very code, while the code would still be good: its caller may not have heard the answer. */
export const findPairedBy = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { codeHash, preparedBy }: { readonly codeHash: Uint8Array; readonly preparedBy: string },
): Promise<DeviceId | null> => {
  const [row] = await tx.query<{ device_id: DeviceId | null }>(
    "select device_id from pairings where code_hash = $1 and tenant_id = $2 and prepared_by = $3 and status = 'activated' and expires_at > now()",
    [codeHash, tenantId, preparedBy],
  );
  return row?.device_id ?? null;
};

/** Attempts left, or null when the code is not live and the attempt therefore none. The last one ends the code. */
export const countWrongToken = async (sql: SqlTx, codeHash: Uint8Array, allowed: number): Promise<number | null> => {
  const [row] = await sql.query<{ attempts: number }>(
    `update pairings set attempts = attempts + 1, status = case when attempts + 1 >= $2 then 'expired' else status end where code_hash = $1 and ${LIVE} returning attempts`,
    [codeHash, allowed],
  );
  return row === undefined ? null : Math.max(0, allowed - row.attempts);
};

export interface Paired {
  readonly pairingId: string;
  readonly deviceId: DeviceId;
  readonly agentId: AgentId;
  readonly userEmail: string;
}

/** Writes who the device became; its enrollment is followed by device from now on, an older one of the same device no longer. */
export const recordDevice = async (tx: SqlTx, { tenantId }: SystemScope, { pairingId, deviceId, agentId, userEmail }: Paired): Promise<void> => {
  await tx.query("update pairings set device_id = $3, agent_id = $4, prepared_email = $5 where pairing_id = $1 and tenant_id = $2", [
    pairingId,
    tenantId,
    deviceId,
    agentId,
    userEmail,
  ]);
  await tx.query("update enrollments set device_id = null where tenant_id = $1 and device_id = $2", [tenantId, deviceId]);
  await tx.query("update enrollments set tenant_id = $2, device_id = $3 where pairing_id = $1", [pairingId, tenantId, deviceId]);
};

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const expireDue = async (sql: SqlTx): Promise<boolean> => {
  const rows = await sql.query(
    `update pairings set status = 'expired' where pairing_id in (select pairing_id from pairings where status = 'pending' and expires_at <= now() limit ${SWEEP_ROWS}) returning 1`,
  );
  return rows.length === SWEEP_ROWS;
};

/** Old attempts go; the progress of a device that was paired stays with the device. */
export const deleteOldPairings = async (sql: SqlTx, keptDays: number): Promise<boolean> => {
  const rows = await sql.query(
    `with old as (delete from pairings where pairing_id in (
         select pairing_id from pairings where status <> 'pending' and expires_at < now() - make_interval(days => $1) limit ${SWEEP_ROWS}) returning pairing_id),
       followed as (delete from enrollments where device_id is null and pairing_id in (select pairing_id from old))
     select pairing_id from old`,
    [keptDays],
  );
  return rows.length === SWEEP_ROWS;
};
