// Reads of devices, and the end of a device's connection, which changes no row.
import { CLOSE, type contract, type Device, type DeviceId, type DeviceMetrics, type DeviceQuery, type Page } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import type { Evictor } from "../../core/ports/agent-sessions.ts";
import { findEventVersion } from "../../core/rows/event-version.ts";
import { partOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { type CountApps, createWithApps } from "./app-counts.ts";
import { findDevice, findDeviceSummary, getDevices } from "./store/devices.ts";
import { countGroups, listDevices } from "./store/list.ts";

export interface DeviceReadsDeps extends Pick<FeatureKit, "db" | "clock" | "until"> {
  readonly countApps: CountApps;
  readonly evictor: Evictor;
  /** What the device reported over time. */
  readonly history: (scope: SystemScope, deviceId: DeviceId, range: DeviceMetrics["range"]) => Promise<DeviceMetrics>;
}

type Names = "list" | "listHosts" | "listPartial" | "getMany" | "summary" | "get" | "wait" | "metrics" | "disconnect";

const unknown = (deviceId: string): AppError => new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });

export const createReadHandlers = (deps: DeviceReadsDeps): Pick<Handlers<typeof contract.devices>, Names> => {
  const { db, clock, evictor, history, until } = deps;
  const withApps = createWithApps(deps);
  const find = async (scope: SystemScope, deviceId: DeviceId): Promise<Device> => {
    const device = await findDevice(db, scope, deviceId, clock.now());
    if (device === undefined) throw unknown(deviceId);
    return device;
  };
  const shown = async (scope: SystemScope, device: Device): Promise<Device> => (await withApps(scope, [device]))[0] ?? device;
  const list = async (scope: SystemScope, query: DeviceQuery): Promise<Page<Device>> => {
    const { items, ...page } = await listDevices(db, scope, query, { now: clock.now() });
    return { items: await withApps(scope, items), ...page };
  };
  return {
    list: ({ scope }, query) => list(scope, query),
    listHosts: ({ scope }, query) => list(scope, query),
    listPartial: async ({ scope }, { fields, ...query }) => {
      const { items, ...page } = await list(scope, query);
      return { items: items.map((device) => partOf(device, "deviceId", fields)), ...page };
    },
    getMany: async ({ scope }, { ids }) => ({ items: await withApps(scope, await getDevices(db, scope, ids, clock.now())) }),
    summary: async ({ scope }, { groupBy }) => {
      const version = await findEventVersion(db, scope);
      return { ...(await countGroups(db, scope, groupBy)), version };
    },
    get: async ({ scope }, { deviceId }) => shown(scope, await find(scope, deviceId)),
    wait: async ({ scope, signal }, { deviceId, status, timeout: seconds }) =>
      shown(
        scope,
        await until(scope, { subjectId: deviceId, seconds, signal, read: () => find(scope, deviceId), isDone: (device) => status.includes(device.status) }),
      ),
    metrics: async ({ scope }, { deviceId, range }) => {
      if ((await findDeviceSummary(db, scope, deviceId)) === null) throw unknown(deviceId);
      return history(scope, deviceId, range);
    },
    disconnect: ({ scope, commit }, { deviceId }) =>
      commit(async (tx, afterwards) => {
        const device = await findDevice(tx, scope, deviceId, clock.now());
        if (device === undefined) throw unknown(deviceId);
        const { connectivity, epoch } = device.connection;
        if (connectivity === "realtime") afterwards(() => evictor.evict(deviceId, { close: CLOSE.tryLater, epochBelow: epoch + 1 }));
        return { deviceId, disconnected: connectivity === "realtime" };
      }),
  };
};
