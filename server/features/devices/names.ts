// The names of devices for live events: read in batches and remembered for a short time.

import type { SqlTx } from "../../core/events.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";
import type { CreateBatch } from "../../platform/database/batch.ts";
import { findNames } from "./store/devices.ts";

const MAX_KNOWN = 20_000;
const KNOWN_MS = 10_000;
const BATCH = { work: "jobs", maxSize: 500, maxConcurrent: 2, maxWaiting: MAX_KNOWN } as const;

/** Null for a device without a name, and while the database does not answer. */
export type DeviceNames = (device: DeviceRef) => Promise<string | null>;

export const createDeviceNames = (db: SqlTx, createBatch: CreateBatch): DeviceNames => {
  const known = createBoundedCache<Promise<string | null>>(MAX_KNOWN, { ttl: KNOWN_MS });
  const read = createBatch((devices: readonly DeviceRef[]) => findNames(db, devices), BATCH);
  return (device) => {
    const key = `${device.tenantId} ${device.deviceId}`;
    const name =
      known.get(key) ??
      read(device).catch(() => {
        known.delete(key);
        return null;
      });
    if (!known.has(key)) known.set(key, name);
    return name;
  };
};
