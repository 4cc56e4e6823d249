// Pairing in sets: a thousand devices take as many statements as one.
import type { AgentId, DeviceId, TenantId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import { living } from "../../../core/living.ts";
import type { SystemScope } from "../../../core/scope.ts";

export interface LivingDevice {
  readonly device_id: DeviceId;
  readonly agent_id: AgentId;
  readonly tenant_id: TenantId;
  readonly fingerprint: string;
}

/** Looks over all tenants, since a machine can live in one of them only. */
export const findLiving = (tx: SqlTx, fingerprints: readonly string[]): Promise<LivingDevice[]> =>
  tx.query<LivingDevice>("select device_id, agent_id, tenant_id, fingerprint from devices where fingerprint = any($1) and deleted_at is null", [fingerprints]);

export interface NewDevice {
  readonly deviceId: DeviceId;
  readonly agentId: AgentId;
  readonly fingerprint: string;
  readonly name: string | null;
  readonly platform: string | null;
  readonly tags: readonly string[];
  readonly deploymentId: string | null;
  readonly sealed: Uint8Array;
}

/** Adds those whose fingerprint is free and returns which. A deployment that is not the tenant's gives way to the default one. */
export const insertDevices = async (tx: SqlTx, { tenantId }: SystemScope, devices: readonly NewDevice[]): Promise<ReadonlySet<string>> => {
  const rows = await tx.query<{ device_id: string }>(
    `with added as (
       insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, name, platform, tags, secret)
       select v.device_id, $1, coalesce(given.deployment_id, standard.deployment_id), v.agent_id, v.fingerprint, v.name, v.platform, array(select jsonb_array_elements_text(v.tags::jsonb)), v.secret
       from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[]) as v(device_id, agent_id, fingerprint, name, platform, tags, deployment_id, secret)
       join deployments standard on standard.tenant_id = $1 and standard.is_default
       left join deployments given on given.tenant_id = $1 and given.deployment_id = v.deployment_id
       on conflict (fingerprint) where deleted_at is null do nothing returning device_id),
     present as (insert into device_presence (device_id, tenant_id) select device_id, $1 from added)
     select device_id from added`,
    [
      tenantId,
      devices.map(({ deviceId }) => deviceId),
      devices.map(({ agentId }) => agentId),
      devices.map(({ fingerprint }) => fingerprint),
      devices.map(({ name }) => name),
      devices.map(({ platform }) => platform),
      devices.map(({ tags }) => JSON.stringify(tags)),
      devices.map(({ deploymentId }) => deploymentId),
      devices.map(({ sealed }) => Buffer.from(sealed)),
    ],
  );
  return new Set(rows.map((row) => row.device_id));
};

export interface ReplacedSecret {
  readonly deviceId: string;
  readonly sealed: Uint8Array;
  readonly name: string | null;
  readonly platform: string | null;
}

/** A machine that was set up anew: same device, new secret, the old one dies at once, both forms of signature are good again. Returns which still lived. */
export const replaceSecrets = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  devices: readonly ReplacedSecret[],
): Promise<ReadonlyMap<string, { readonly unlocked: boolean }>> => {
  const rows = await tx.query<{ device_id: string; unlocked: boolean }>(
    `with old as (select device_id, min_sig_version from devices o where device_id = any($2) and tenant_id = $1 and ${living("o")} order by device_id for update)
     update devices d set secret = v.secret, pending_secret = null, secret_rotated_at = now(), min_sig_version = 1, name = coalesce(v.name, d.name), platform = coalesce(v.platform, d.platform),
       version = d.version + 1, updated_at = now()
     from unnest($2::text[], $3::bytea[], $4::text[], $5::text[]) as v(device_id, secret, name, platform) join old on old.device_id = v.device_id
     where d.device_id = v.device_id returning d.device_id, old.min_sig_version > 1 as unlocked`,
    [
      tenantId,
      devices.map(({ deviceId }) => deviceId),
      devices.map(({ sealed }) => Buffer.from(sealed)),
      devices.map(({ name }) => name),
      devices.map(({ platform }) => platform),
    ],
  );
  return new Map(rows.map(({ device_id, unlocked }) => [device_id, { unlocked }]));
};
