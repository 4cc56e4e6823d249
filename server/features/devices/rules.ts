// Decisions about devices that need no database.
import type { Heartbeat } from "../../../protocol/index.ts";

/** Binds a sealed secret to its row: copied to another device or tenant it does not open. */
export const secretContext = (tenantId: string, deviceId: string): string => `device-secret|${tenantId}|${deviceId}`;

/** Both forms of a heartbeat as one set of figures; null when it carries none. */
export const toMetrics = ({ metrics, cpu, memory, disk }: Pick<Heartbeat, "metrics" | "cpu" | "memory" | "disk">): Readonly<Record<string, unknown>> | null => {
  const named = Object.entries({ cpu, memory, disk }).filter(([, value]) => value !== undefined);
  return metrics === undefined && named.length === 0 ? null : { ...metrics, ...Object.fromEntries(named) };
};

/** For a LIKE pattern that takes what was typed literally: Prisma escapes nothing. */
export const likeLiteral = (text: string): string => text.replace(/[\\%_]/g, (sign) => `\\${sign}`);
