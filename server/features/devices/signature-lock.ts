// The signature lock: once a device has signed with v2, the gateway refuses v1 signatures from it, so nobody can downgrade it by stripping a header.
// The device's row stores the lock, so it survives restarts and the loss of Redis. A person can lift it.
import { type AgentId, contract, type DeviceId, type TenantId } from "../../../protocol/index.ts";
import { type Emit, happened, type SqlTx } from "../../core/events.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";
import type { Agents } from "./agent-registry.ts";
import { setSignatureVersion } from "./store/agents.ts";

export interface LockedDevice {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly agent_id: AgentId;
}

export interface SignatureLock {
  /** Call it in the transaction of the hellos that locked these devices by a v2 signature on their upgrades. */
  locked(tx: SqlTx, devices: readonly LockedDevice[]): Promise<void>;
  /** Accepts v1 signatures from this device again; does nothing when it is not locked. False: no such device. */
  lift(tx: SqlTx, device: DeviceRef, actor: string): Promise<boolean>;
}

/** The event about a lock or its lifting. */
export const signatureVersionChanged = (change: {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly version: 1 | 2;
  readonly actor: string;
}) =>
  happened({ tenantId: change.tenant_id }, contract.devices.events.signatureVersionChanged, change.device_id, {
    deviceId: change.device_id,
    minSignatureVersion: change.version,
    actor: change.actor,
  });

export interface SignatureLockDeps {
  readonly emit: Emit;
  readonly agents: Pick<Agents, "announce">;
}

export const createSignatureLock = ({ emit, agents }: SignatureLockDeps): SignatureLock => {
  const emitChanges = async (tx: SqlTx, devices: readonly LockedDevice[], to: { readonly version: 1 | 2; readonly actor: string | null }): Promise<void> => {
    if (devices.length === 0) return;
    await emit(
      tx,
      devices.map((device) => signatureVersionChanged({ ...device, version: to.version, actor: to.actor ?? device.agent_id })),
    );
    agents.announce(devices.map(({ agent_id }) => agent_id));
  };
  return {
    locked: (tx, devices) => emitChanges(tx, devices, { version: 2, actor: null }),
    lift: async (tx, device, actor) => {
      const row = await setSignatureVersion(tx, device, 1);
      if (row?.changed === true) await emitChanges(tx, [row], { version: 1, actor });
      return row !== undefined;
    },
  };
};
