// Statements of pairing, each for many devices: a thousand take as many statements as one.
import type { AgentId, Device, DeviceId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { notDeleted } from "../../../core/rows/not-deleted.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export interface ExistingDevice {
  readonly device_id: DeviceId;
  readonly agent_id: AgentId;
  readonly fingerprint: string;
  readonly last_seen_at: Date | null;
}

const FIND_BY_FINGERPRINTS = statement<ExistingDevice>(
  "devices.findByFingerprints",
  `select d.device_id, d.agent_id, d.fingerprint, p.last_seen_at from devices d left join device_presence p on p.device_id = d.device_id
   where d.tenant_id = $1 and d.fingerprint = any($2) and d.deleted_at is null`,
);

/** Searches this tenant only: anybody can copy a fingerprint and must not learn which other tenant has it. */
export const findByFingerprints = (tx: SqlTx, { tenantId }: SystemScope, fingerprints: readonly string[]): Promise<ExistingDevice[]> =>
  tx.query(FIND_BY_FINGERPRINTS, [tenantId, fingerprints]);

export interface KnownMachine {
  readonly deviceId: DeviceId;
  readonly fingerprint: string;
  readonly status: Device["status"];
  /** Null: it has never connected. */
  readonly lastSeen: string | null;
  /** A person lets the next machine with this fingerprint take it over. */
  readonly inRepair: boolean;
}

export const findKnownMachines = async (db: Clients, scope: SystemScope, fingerprints: readonly string[], now: Date): Promise<readonly KnownMachine[]> => {
  const { device, devicePresence } = db.for(scope);
  const rows = await device.findMany({
    where: { fingerprint: { in: [...fingerprints] }, deletedAt: null },
    select: { deviceId: true, fingerprint: true, status: true, repairUntil: true },
  });
  const seen = await devicePresence.findMany({
    where: { deviceId: { in: rows.map(({ deviceId }) => deviceId) } },
    select: { deviceId: true, lastSeenAt: true },
  });
  const lastSeen = new Map(seen.map(({ deviceId, lastSeenAt }) => [deviceId, lastSeenAt?.toISOString() ?? null]));
  return rows.map(({ deviceId, fingerprint, status, repairUntil }) => ({
    deviceId: deviceId as DeviceId,
    fingerprint,
    status: status as Device["status"],
    lastSeen: lastSeen.get(deviceId) ?? null,
    inRepair: repairUntil !== null && repairUntil > now,
  }));
};

const FIND_UNUSED = statement<{ readonly agent_id: AgentId; readonly fingerprint: string; readonly secret: Uint8Array }>(
  "devices.findUnused",
  `select d.agent_id, d.fingerprint, d.secret from devices d join device_presence p on p.device_id = d.device_id
   where d.device_id = $1 and d.tenant_id = $2 and d.deleted_at is null and d.pending_secret is null
     and (p.last_seen_at is null or p.last_seen_at < d.secret_rotated_at)`,
);

/** The identity of a device whose current secret nobody has used yet. */
export const findUnused = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  deviceId: string,
): Promise<{ readonly agent_id: AgentId; readonly fingerprint: string; readonly secret: Uint8Array } | undefined> => {
  const [row] = await tx.query(FIND_UNUSED, [deviceId, tenantId]);
  return row;
};

export interface NewDevice {
  readonly deviceId: DeviceId;
  readonly agentId: AgentId;
  readonly fingerprint: string;
  readonly name: string | null;
  readonly platform: string | null;
  readonly tags: readonly string[];
  readonly deploymentId: string;
  readonly sealed: Uint8Array;
}

const INSERT_DEVICES = statement<{ readonly device_id: string }>(
  "devices.insert",
  `with added as (
     insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, name, platform, tags, secret)
     select v.device_id, $1, v.deployment_id, v.agent_id, v.fingerprint, v.name, v.platform, array(select jsonb_array_elements_text(v.tags::jsonb)), v.secret
     from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[]) as v(device_id, agent_id, fingerprint, name, platform, tags, deployment_id, secret)
     on conflict (tenant_id, fingerprint) where deleted_at is null do nothing returning device_id),
   present as (insert into device_presence (device_id, tenant_id) select device_id, $1 from added)
   select device_id from added`,
);

/** Inserts the devices whose fingerprint is free and returns their ids. */
export const insertDevices = async (tx: SqlTx, { tenantId }: SystemScope, devices: readonly NewDevice[]): Promise<ReadonlySet<string>> => {
  const rows = await tx.query(INSERT_DEVICES, [
    tenantId,
    devices.map(({ deviceId }) => deviceId),
    devices.map(({ agentId }) => agentId),
    devices.map(({ fingerprint }) => fingerprint),
    devices.map(({ name }) => name),
    devices.map(({ platform }) => platform),
    devices.map(({ tags }) => JSON.stringify(tags)),
    devices.map(({ deploymentId }) => deploymentId),
    devices.map(({ sealed }) => Buffer.from(sealed)),
  ]);
  return new Set(rows.map((row) => row.device_id));
};

export interface ReplacedSecret {
  readonly deviceId: string;
  readonly sealed: Uint8Array;
  readonly name: string | null;
  readonly platform: string | null;
}

const REPLACE_SECRETS = statement<{ readonly device_id: string; readonly unlocked: boolean }>(
  "devices.replaceSecrets",
  `with old as (select device_id, min_sig_version from devices o where device_id = any($2) and tenant_id = $1 and ${notDeleted("o")}
       and ($6 = 'any' or $6 = o.device_id or $6 = 'in_repair' and o.repair_until > now()) order by device_id for update)
   update devices d set secret = v.secret, pending_secret = null, secret_rotated_at = now(), min_sig_version = 1, repair_until = null, name = coalesce(v.name, d.name), platform = coalesce(v.platform, d.platform),
     version = d.version + 1, updated_at = now()
   from unnest($2::text[], $3::bytea[], $4::text[], $5::text[]) as v(device_id, secret, name, platform) join old on old.device_id = v.device_id
   where d.device_id = v.device_id returning d.device_id, old.min_sig_version > 1 as unlocked`,
);

/**
 * Pairs machines again that were set up anew: each keeps its device and gets a new secret. Revokes the old secret, accepts v1 signatures again and
 * closes the repair. `allowed` is a device's id, "any" or "in_repair". Returns the devices that still existed and were allowed.
 */
export const replaceSecrets = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { devices, allowed }: { readonly devices: readonly ReplacedSecret[]; readonly allowed: string },
): Promise<ReadonlyMap<string, { readonly unlocked: boolean }>> => {
  const rows = await tx.query(REPLACE_SECRETS, [
    tenantId,
    devices.map(({ deviceId }) => deviceId),
    devices.map(({ sealed }) => Buffer.from(sealed)),
    devices.map(({ name }) => name),
    devices.map(({ platform }) => platform),
    allowed,
  ]);
  return new Map(rows.map(({ device_id, unlocked }) => [device_id, { unlocked }]));
};
