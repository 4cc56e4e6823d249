// The lock of a device that has shown that it signs by the second form: from then on the first form alone is not taken from it, or whoever
// strips a header could choose. It stands in the device's row, so that no restart and no loss of Redis lifts it; a person can.
import { type AgentId, contract, type DeviceId, type TenantId } from "../../../protocol/index.ts";
import type { DeviceRef } from "../../core/delivery.ts";
import { type Emit, happened, type SqlTx } from "../../core/events.ts";
import type { Agents } from "./agent-registry.ts";
import { setSignatureVersion } from "./store/agents.ts";

export interface LockedDevice {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly agent_id: AgentId;
}

export interface SignatureLock {
  /** In the transaction of the hellos that locked them, their upgrades being signed by the second form. */
  locked(tx: SqlTx, devices: readonly LockedDevice[]): Promise<void>;
  /** Both forms are taken again. False: no such device. Lifting what is not locked changes nothing. */
  lift(tx: SqlTx, device: DeviceRef, actor: string): Promise<boolean>;
}

/** What stands in the record of events about who locked or unlocked. */
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
