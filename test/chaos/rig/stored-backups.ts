// Simulated devices without the limits of a plan, and what their repositories hold: a scenario compares it with what the gateway says.
import { type PairedDevice, systemTime, type Time } from "../../../agent-sim/agent/index.ts";
import { type BackupMemory, openBackupMemory } from "../../../agent-sim/host/backups/simulated-engine.ts";
import { hurried } from "../scenario.ts";
import type { Rig } from "./rig.ts";
import { ask } from "./sql.ts";

const MANY = 1_000;
const LIFT_LIMITS = `update tenants set limit_overrides = coalesce(limit_overrides, '{}') || '{"hosts": null, "storageGB": null}' where tenant_id = $1`;

export interface StoredBackups {
  readonly members: readonly PairedDevice[];
  /** For the agents. */
  readonly clock: Time;
  /** By device. */
  readonly memories: ReadonlyMap<string, BackupMemory>;
  /** Of the member at this place. */
  memoryAt(index: number): BackupMemory;
}

export const provisionWithBackups = async (rig: Rig, { agents, haste }: { readonly agents: number; readonly haste: number }): Promise<StoredBackups> => {
  await ask(rig.postgres, LIFT_LIMITS, [rig.credentials.tenantId]);
  const members = await rig.provision(agents);
  const memories = new Map(members.map(({ deviceId }) => [deviceId as string, openBackupMemory(null)]));
  return {
    members,
    // Heartbeats of many agents in a hurry would be all that this machine does.
    clock: members.length > MANY ? systemTime : hurried(haste),
    memories,
    memoryAt: (index) => memories.get(members[index]?.deviceId ?? "") ?? openBackupMemory(null),
  };
};
