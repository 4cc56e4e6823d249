// What the feature of fleets needs of devices: to list and count those of a fleet, and to put them into static fleets.
import type { Device, DeviceQuery, Page } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import { type CountApps, createWithApps } from "./app-counts.ts";
import { findKnown } from "./store/devices.ts";
import { addToFleet, countByFleet, type FleetCounts, type FleetRef, inFleet, removeFromFleet, summarizeFleet } from "./store/fleets.ts";
import { listDevices } from "./store/list.ts";
import type { Visibility } from "./visibility.ts";

interface Moved {
  readonly any: boolean;
  /** Call it after the commit: who sees the devices has changed. */
  readonly forget: () => void;
}

export interface FleetDevices {
  list(scope: SystemScope, query: DeviceQuery, fleet: FleetRef): Promise<Page<Device>>;
  /** Counts the devices that the caller sees; a fleet without any is missing. */
  count(db: Tx, scope: SystemScope, fleets: readonly FleetRef[]): Promise<ReadonlyMap<string, number>>;
  summarize(scope: SystemScope, fleet: FleetRef): Promise<FleetCounts>;
  /** Throws DEVICE_NOT_FOUND. */
  add(tx: Tx, scope: SystemScope, fleetId: string, deviceIds: readonly string[]): Promise<Moved>;
  /** Throws DEVICE_NOT_FOUND. */
  remove(tx: Tx, scope: SystemScope, fleetId: string, deviceId: string): Promise<Moved>;
  removeAll(tx: Tx, scope: SystemScope, fleetId: string): Promise<void>;
}

interface FleetDevicesDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly countApps: CountApps;
}

export const createFleetDevices = (deps: FleetDevicesDeps, forget: Visibility["forget"]): FleetDevices => {
  const { db, clock } = deps;
  const withApps = createWithApps(deps);
  const moved = ({ tenantId }: SystemScope, deviceIds: readonly string[]): Moved => ({
    any: deviceIds.length > 0,
    forget: () => {
      for (const deviceId of deviceIds) forget(tenantId, deviceId);
    },
  });
  const requireKnown = async (tx: Tx, scope: SystemScope, deviceIds: readonly string[]): Promise<void> => {
    const known = deviceIds.length === 0 ? new Set() : await findKnown(tx, scope, deviceIds);
    const deviceId = deviceIds.find((each) => !known.has(each));
    if (deviceId !== undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
  };
  return {
    list: async (scope, query, fleet) => {
      const { items, ...page } = await listDevices(db, scope, query, { now: clock.now(), among: inFleet(fleet) });
      return { items: await withApps(scope, items), ...page };
    },
    count: countByFleet,
    summarize: (scope, fleet) => summarizeFleet(db, scope, fleet),
    add: async (tx, scope, fleetId, deviceIds) => {
      await requireKnown(tx, scope, deviceIds);
      return moved(scope, await addToFleet(tx, scope, fleetId, deviceIds));
    },
    remove: async (tx, scope, fleetId, deviceId) => {
      await requireKnown(tx, scope, [deviceId]);
      return moved(scope, await removeFromFleet(tx, scope, fleetId, deviceId));
    },
    removeAll: async (tx, scope, fleetId) => {
      await removeFromFleet(tx, scope, fleetId, null);
    },
  };
};
