// Reads of devices, and the end of a device's connection, which changes no row.
import { CLOSE, type contract, type Device, type DeviceId, type DeviceMetrics } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import type { Evictor } from "../../core/ports/agent-sessions.ts";
import { findEventVersion } from "../../core/rows/event-version.ts";
import { partOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { findDevice, findDeviceSummary, getDevices } from "./store/devices.ts";
import { countGroups, listDevices } from "./store/list.ts";

export interface DeviceReadsDeps extends Pick<FeatureKit, "db" | "clock" | "until"> {
  readonly evictor: Evictor;
  /** What the device reported over time. */
  readonly history: (scope: SystemScope, deviceId: DeviceId, range: DeviceMetrics["range"]) => Promise<DeviceMetrics>;
}

type Names = "list" | "listHosts" | "listPartial" | "getMany" | "summary" | "get" | "wait" | "metrics" | "disconnect";

const unknown = (deviceId: string): AppError => new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });

export const createReadHandlers = ({ db, clock, evictor, history, until }: DeviceReadsDeps): Pick<Handlers<typeof contract.devices>, Names> => {
  const find = async (scope: SystemScope, deviceId: DeviceId): Promise<Device> => {
    const device = await findDevice(db, scope, deviceId, clock.now());
    if (device === undefined) throw unknown(deviceId);
    return device;
  };
  return {
    list: ({ scope }, query) => listDevices(db, scope, query, { now: clock.now() }),
    listHosts: ({ scope }, query) => listDevices(db, scope, query, { now: clock.now() }),
    listPartial: async ({ scope }, { fields, ...query }) => {
      const { items, ...page } = await listDevices(db, scope, query, { now: clock.now() });
      return { items: items.map((device) => partOf(device, "deviceId", fields)), ...page };
    },
    getMany: async ({ scope }, { ids }) => ({ items: await getDevices(db, scope, ids, clock.now()) }),
    summary: async ({ scope }, { groupBy }) => {
      const version = await findEventVersion(db, scope);
      return { ...(await countGroups(db, scope, groupBy)), version };
    },
    get: ({ scope }, { deviceId }) => find(scope, deviceId),
    wait: ({ scope, signal }, { deviceId, status, timeout: seconds }) =>
      until(scope, { subjectId: deviceId, seconds, signal, read: () => find(scope, deviceId), isDone: (device) => status.includes(device.status) }),
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
