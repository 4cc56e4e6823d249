// A device, as people and keys read it.
import { z } from "zod";
import { AgentId, DeploymentId, DeviceId, TenantId } from "../../kit/ids.ts";
import { Connectivity, DeviceStatus, Maintenance } from "./device-events.ts";

const Timestamp = z.iso.datetime();

export const Device = z.object({
  deviceId: DeviceId,
  tenantId: TenantId,
  deploymentId: DeploymentId,
  agentId: AgentId,
  fingerprint: z.string(),
  status: DeviceStatus,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  lastSeen: Timestamp.optional(),
  lastHeartbeatAt: Timestamp.optional(),
  offlineReason: z.string().optional(),
  name: z.string().optional(),
  hostname: z.string().optional(),
  platform: z.string().optional(),
  arch: z.string().optional(),
  osVersion: z.string().optional(),
  agentVersion: z.string().optional(),
  tags: z.array(z.string()),
  metrics: z.record(z.string(), z.unknown()).optional(),
  maintenance: Maintenance.optional(),
  repairUntil: Timestamp.optional().describe("Until this time an enrollment token may pair the machine again."),
  connection: z.object({ connectivity: Connectivity, nodeId: z.string().optional(), since: Timestamp.optional(), epoch: z.int() }),
});
export type Device = z.infer<typeof Device>;
