// Devices as the targets of a bulk operation: which they are, what they are called, and their tags.
import type { DeviceId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { living } from "./devices.ts";
import { type FleetRef, inFleet } from "./fleets.ts";

/** The devices of a fleet that the caller sees, by id, behind `after`. A selector is a fleet without a name. */
export const findTargetsAfter = async (
  db: Clients,
  scope: SystemScope,
  fleet: FleetRef,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly string[]> => {
  const where = { ...living, deviceId: { gt: after }, AND: inFleet(fleet) };
  const rows = await db.for(scope).device.findMany({ where, select: { deviceId: true }, orderBy: { deviceId: "asc" }, take: limit });
  return rows.map(({ deviceId }) => deviceId);
};

export const countTargets = (db: Clients, scope: SystemScope, fleet: FleetRef): Promise<number> =>
  db.for(scope).device.count({ where: { ...living, AND: inFleet(fleet) } });

/** The devices among these that the caller sees, with their names. */
export const findNamedDevices = async (db: Clients, scope: SystemScope, deviceIds: readonly string[]): Promise<ReadonlyMap<string, string | null>> => {
  const where = { deviceId: { in: [...deviceIds] }, ...living };
  const rows = await db.for(scope).device.findMany({ where, select: { deviceId: true, name: true, hostname: true } });
  return new Map(rows.map(({ deviceId, name, hostname }) => [deviceId, name ?? hostname]));
};

export interface Tagged {
  readonly deviceId: DeviceId;
  readonly name: string | null;
  readonly deploymentId: string;
  readonly maintenance: unknown;
  readonly tags: readonly string[];
  readonly outcome: "changed" | "unchanged" | "too_many";
}

interface TaggedRow {
  readonly device_id: DeviceId;
  readonly name: string | null;
  readonly deployment_id: string;
  readonly maintenance: unknown;
  readonly tags: string[];
  readonly next: string[];
}

const LOCK_TAGGED = statement<TaggedRow>(
  "devices.lockTagged",
  `select d.device_id, d.name, d.deployment_id, d.maintenance, d.tags,
          array(select t from unnest(d.tags) with ordinality o(t, at) where t <> all($4::text[]) order by at)
            || array(select distinct a from unnest($3::text[]) a where a <> all(d.tags) or a = any($4::text[])) as next
     from devices d where d.tenant_id = $1 and d.device_id = any($2::text[]) and d.deleted_at is null order by d.device_id for no key update`,
);

const WRITE_TAGS = statement(
  "devices.writeTags",
  `update devices d set tags = array(select jsonb_array_elements_text(v.tags)), version = d.version + 1, updated_at = now()
     from unnest($2::text[], $3::jsonb[]) as v(device_id, tags) where d.tenant_id = $1 and d.device_id = v.device_id`,
);

const same = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((each, at) => each === b[at]);

/** Adds and removes tags of many devices; a device that is gone is missing in the answer. A tag that is added and removed stays. */
export const changeTags = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  deviceIds: readonly string[],
  { add, remove, max }: { readonly add: readonly string[]; readonly remove: readonly string[]; readonly max: number },
): Promise<readonly Tagged[]> => {
  const rows = await tx.query(LOCK_TAGGED, [tenantId, deviceIds, add, remove]);
  const tagged = rows.map(({ device_id, deployment_id, name, maintenance, tags, next }): Tagged => {
    const outcome = next.length > max ? "too_many" : same(tags, next) ? "unchanged" : "changed";
    return { deviceId: device_id, deploymentId: deployment_id, name, maintenance, tags: outcome === "changed" ? next : tags, outcome };
  });
  const changed = tagged.filter(({ outcome }) => outcome === "changed");
  const texts = changed.map(({ tags }) => JSON.stringify(tags));
  if (changed.length > 0) await tx.query(WRITE_TAGS, [tenantId, changed.map(({ deviceId }) => deviceId), texts]);
  return tagged;
};
