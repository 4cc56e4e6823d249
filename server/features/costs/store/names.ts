// What the rows of an allocation are called, and by what devices count: their tags and fleets as they are now.
import { FleetSelector } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { type DeviceTraits, matchesRule } from "../../../core/people/fleet-rules.ts";
import type { SystemScope } from "../../../core/scope.ts";

export interface CostDevice extends DeviceTraits {
  readonly name: string | null;
}

/** The devices that the caller sees, removed ones too: what they cost, they have cost. */
export const findCostDevices = async (db: Clients, scope: SystemScope): Promise<readonly CostDevice[]> => {
  const select = { deviceId: true, name: true, hostname: true, tags: true, fleetIds: true, platform: true, agentVersion: true, status: true };
  return (await db.for(scope).device.findMany({ select, orderBy: { deviceId: "asc" } })).map(({ hostname, name, ...device }) => ({
    ...device,
    name: name ?? hostname,
  }));
};

export interface CostFleet {
  readonly fleetId: string;
  readonly name: string;
  readonly has: (device: DeviceTraits) => boolean;
}
/** The oldest first. */
export const findCostFleets = async (db: Clients, scope: SystemScope): Promise<readonly CostFleet[]> => {
  const rows = await db.for(scope).fleet.findMany({ select: { fleetId: true, name: true, selector: true }, orderBy: { fleetId: "asc" } });
  return rows.map(({ fleetId, name, selector }) => {
    const rule = selector === null ? null : FleetSelector.parse(selector);
    return { fleetId, name, has: (device) => (rule === null ? device.fleetIds.includes(fleetId) : matchesRule(rule, device)) };
  });
};

type Names = ReadonlyMap<string, string>;
export const appNames = async (db: Clients, scope: SystemScope, appIds: readonly string[]): Promise<Names> =>
  new Map(
    (await db.for(scope).app.findMany({ where: { appId: { in: [...appIds] } }, select: { appId: true, name: true } })).map(({ appId, name }) => [appId, name]),
  );
export const deploymentNames = async (db: Clients, scope: SystemScope, deploymentIds: readonly string[]): Promise<Names> =>
  new Map(
    (await db.for(scope).deployment.findMany({ where: { deploymentId: { in: [...deploymentIds] } }, select: { deploymentId: true, name: true } })).map(
      ({ deploymentId, name }) => [deploymentId, name],
    ),
  );
