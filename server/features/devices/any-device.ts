// Devices of every tenant, for administrators of the installation.
import { type AdminDevice, type AgentId, CLOSE, type DeviceId, type TenantId } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { Afterwards } from "../../core/feature.ts";
import type { Evictor } from "../../core/ports/agent-sessions.ts";

export interface AnyDevice {
  withFingerprint(fingerprint: string): Promise<AdminDevice[]>;
  /** Null when there is no such device. */
  disconnect(tx: Clients, afterwards: Afterwards, deviceId: DeviceId): Promise<{ readonly deviceId: DeviceId; readonly disconnected: boolean } | null>;
  countByStatus(): Promise<Record<string, number>>;
}

const MAX_LISTED = 100;

export const createAnyDevice = ({ db, evictor }: { readonly db: Clients; readonly evictor: Evictor }): AnyDevice => ({
  withFingerprint: async (fingerprint) => {
    const rows = await db.system.device.findMany({ where: { fingerprint, deletedAt: null }, orderBy: { createdAt: "desc" }, take: MAX_LISTED });
    const presence = await db.system.devicePresence.findMany({ where: { deviceId: { in: rows.map(({ deviceId }) => deviceId) } } });
    const seen = new Map(presence.map(({ deviceId, lastSeenAt }) => [deviceId, lastSeenAt?.toISOString() ?? null]));
    return rows.map(({ deviceId, tenantId, agentId, status, name, createdAt }) => ({
      deviceId: deviceId as DeviceId,
      tenantId: tenantId as TenantId,
      agentId: agentId as AgentId,
      fingerprint,
      status,
      ...(name === null ? {} : { name }),
      createdAt: createdAt.toISOString(),
      lastSeen: seen.get(deviceId) ?? null,
    }));
  },
  disconnect: async (tx, afterwards, deviceId) => {
    if ((await tx.system.device.count({ where: { deviceId, deletedAt: null } })) === 0) return null;
    const presence = await tx.system.devicePresence.findFirst({ where: { deviceId }, select: { connectivity: true, epoch: true } });
    const isConnected = presence?.connectivity === "realtime";
    if (isConnected) afterwards(() => evictor.evict(deviceId, { close: CLOSE.tryLater, epochBelow: Number(presence.epoch) + 1 }));
    return { deviceId, disconnected: isConnected };
  },
  countByStatus: async () => {
    const counts = await db.system.device.groupBy({ by: ["status"], where: { deletedAt: null }, _count: true });
    return Object.fromEntries(counts.map(({ status, _count }) => [status, _count]));
  },
});
