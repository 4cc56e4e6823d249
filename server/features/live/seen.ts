// Tells viewers when the devices that they name are heard. It reads their presence now and then, so a heartbeat costs nothing more, whoever watches
// and on whichever node it arrives.
import { contract, type DeviceId, type TenantId } from "../../../protocol/index.ts";
import { type Happened, happened } from "../../core/events.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";
import { chunk } from "../../core/rows/chunk.ts";

type SeenEvent = typeof contract.devices.events.seen;
type Seen = Parameters<typeof happened<SeenEvent>>[3] & { readonly deviceId: DeviceId };

/** The present state of these devices, in any order; without those that the tenant does not have. */
export type ReadSeen = (devices: readonly DeviceRef[]) => Promise<readonly { readonly tenantId: TenantId; readonly seen: Seen }[]>;

export interface SeenWatch {
  readonly tenantId: TenantId;
  readonly deviceIds: readonly string[];
  readonly show: (event: Happened<SeenEvent>) => void;
}

/** Devices per read. */
const CHUNK = 1_000;
const keyOf = (tenantId: string, deviceId: string): string => `${tenantId} ${deviceId}`;

export const createSeenTicks = (read: ReadSeen) => {
  /** With what each has shown, by device. */
  const watches = new Map<SeenWatch, Map<string, string>>();

  return {
    /** Returns the function that ends it. */
    watch: (watch: SeenWatch): (() => void) => {
      if (watch.deviceIds.length > 0) watches.set(watch, new Map());
      return () => void watches.delete(watch);
    },
    tick: async (): Promise<void> => {
      const asked = new Map<string, DeviceRef>();
      for (const { tenantId, deviceIds } of watches.keys()) for (const deviceId of deviceIds) asked.set(keyOf(tenantId, deviceId), { tenantId, deviceId });
      const found = new Map<string, Seen>();
      for (const devices of chunk([...asked.values()], CHUNK))
        for (const { tenantId, seen } of await read(devices)) found.set(keyOf(tenantId, seen.deviceId), seen);
      for (const [{ tenantId, deviceIds, show }, shown] of watches)
        for (const deviceId of deviceIds) {
          const seen = found.get(keyOf(tenantId, deviceId));
          const state = `${seen?.lastSeen} ${seen?.status} ${seen?.connectivity}`;
          if (seen === undefined || shown.get(deviceId) === state) continue;
          shown.set(deviceId, state);
          show(happened({ tenantId }, contract.devices.events.seen, deviceId, seen));
        }
    },
  };
};
