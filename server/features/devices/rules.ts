// Pure functions about devices.

import type { Heartbeat } from "../../../protocol/index.ts";
import type { SealedContext } from "../../platform/keys/sealed.ts";

/** Binds a sealed secret to its row, so a copy in another device's or tenant's row does not open. */
export const secretContext = (tenantId: string, deviceId: string): SealedContext => `device-secret|${tenantId}|${deviceId}`;

/** Merges the metrics of both heartbeat forms; null when there are none. */
export const toMetrics = ({ metrics, cpu, memory, disk }: Pick<Heartbeat, "metrics" | "cpu" | "memory" | "disk">): Readonly<Record<string, unknown>> | null => {
  const named = Object.entries({ cpu, memory, disk }).filter(([, value]) => value !== undefined);
  return metrics === undefined && named.length === 0 ? null : { ...metrics, ...Object.fromEntries(named) };
};
