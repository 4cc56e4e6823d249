// The devices of fleets: which and how many they are, and how a static fleet gets and loses them.
import type { Device, FleetSelector } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { ruleCondition } from "../../../core/people/fleet-rules.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { countDevicesByStatus, living } from "./devices.ts";

export interface FleetRef {
  readonly fleetId: string;
  /** Null: the fleet is static. */
  readonly selector: FleetSelector | null;
}

export const inFleet = ({ fleetId, selector }: FleetRef) => (selector === null ? { fleetIds: { has: fleetId } } : ruleCondition(selector));

const COUNT_BY_FLEET = statement<{ readonly fleet_id: string; readonly count: number }>(
  "devices.countByFleet",
  `with seen as materialized (select d.tags, d.fleet_ids, d.platform, d.agent_version, d.status from devices d
      where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$3")})
   select f.fleet_id, count(*) from jsonb_to_recordset($2::jsonb) as f(fleet_id text, tags text[], platform text, agent_version text, status text)
     join seen d on case when f.tags is null then f.fleet_id = any(d.fleet_ids)
       else d.tags @> f.tags and (f.platform is null or d.platform = f.platform) and (f.agent_version is null or d.agent_version = f.agent_version)
         and (f.status is null or d.status = f.status) end
    group by f.fleet_id`,
);

/** How many devices of each fleet the caller sees. Raw SQL, to read the tenant's devices once for all fleets. */
export const countByFleet = async (sql: SqlTx, scope: SystemScope, fleets: readonly FleetRef[]): Promise<ReadonlyMap<string, number>> => {
  if (fleets.length === 0) return new Map();
  const asked = fleets.map(({ fleetId, selector }) => ({
    fleet_id: fleetId,
    ...(selector === null ? {} : { tags: selector.tags, platform: selector.platform, agent_version: selector.agentVersion, status: selector.status }),
  }));
  const rows = await sql.query(COUNT_BY_FLEET, [scope.tenantId, JSON.stringify(asked), limitsValue(scope)]);
  return new Map(rows.map(({ fleet_id, count }) => [fleet_id, count]));
};

const MAX_VERSIONS = 100;

export interface FleetCounts {
  readonly status: Record<Device["status"], number>;
  readonly agentVersions: { agentVersion: string | null; count: number }[];
}

export const summarizeFleet = async (db: Clients, scope: SystemScope, fleet: FleetRef): Promise<FleetCounts> => {
  const condition = inFleet(fleet);
  const versions = db.for(scope).device.groupBy({
    by: ["agentVersion"],
    where: { ...living, AND: condition },
    _count: { deviceId: true },
    orderBy: [{ _count: { deviceId: "desc" } }, { agentVersion: "asc" }],
    take: MAX_VERSIONS,
  });
  const [status, groups] = await Promise.all([countDevicesByStatus(db, scope, condition), versions]);
  return { status, agentVersions: groups.map(({ agentVersion, _count }) => ({ agentVersion, count: _count.deviceId })) };
};

// Locks the devices in the order of their ids, as other statements on many devices do.
const ADD = statement<{ readonly device_id: string }>(
  "devices.addToFleet",
  `with added as (select d.device_id from devices d
      where d.tenant_id = $1 and d.device_id = any($3::text[]) and d.deleted_at is null and not $2 = any(d.fleet_ids) order by d.device_id for no key update)
   update devices d set fleet_ids = array_append(d.fleet_ids, $2::text) from added where d.device_id = added.device_id returning d.device_id`,
);

/** The ids of those that did not belong to it before. */
export const addToFleet = async (sql: SqlTx, { tenantId }: SystemScope, fleetId: string, deviceIds: readonly string[]): Promise<readonly string[]> =>
  deviceIds.length === 0 ? [] : (await sql.query(ADD, [tenantId, fleetId, deviceIds])).map(({ device_id }) => device_id);

const REMOVE = statement<{ readonly device_id: string }>(
  "devices.removeFromFleet",
  `with removed as (select d.device_id from devices d
      where d.tenant_id = $1 and d.fleet_ids @> array[$2::text] and ($3::text is null or d.device_id = $3) order by d.device_id for no key update)
   update devices d set fleet_ids = array_remove(d.fleet_ids, $2::text) from removed where d.device_id = removed.device_id returning d.device_id`,
);

/** One device, or all of them. The ids of those that belonged to it. */
export const removeFromFleet = async (sql: SqlTx, { tenantId }: SystemScope, fleetId: string, deviceId: string | null): Promise<readonly string[]> =>
  (await sql.query(REMOVE, [tenantId, fleetId, deviceId])).map(({ device_id }) => device_id);
