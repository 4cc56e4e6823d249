// A device, as people and keys read it.
import { z } from "zod";
import { AgentId, DeploymentId, DeviceId, TenantId } from "../../kit/ids.ts";
import { Connectivity, DeviceStatus, Maintenance } from "./device-events.ts";

const Timestamp = z.iso.datetime();

export const DeviceAddress = z.object({
  kind: z.enum(["lan", "public"]).describe("`lan`: of a private network. `public`: anybody on the internet can name it."),
  address: z.string().describe("An IPv4 or IPv6 address."),
});
export type DeviceAddress = z.infer<typeof DeviceAddress>;

const Bytes = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
export const DeviceHardware = z.object({
  cpuCores: z.int().min(1).max(65_536).optional(),
  memoryBytes: Bytes.optional(),
  diskBytes: Bytes.optional().describe("Of the file system that holds the apps."),
});
export type DeviceHardware = z.infer<typeof DeviceHardware>;

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
  model: z.string().optional().describe("Of the machine, such as `Raspberry Pi 5 Model B Rev 1.0`, as its agent reported it last."),
  hardware: DeviceHardware.optional().describe("What the machine has, as its agent reported it last."),
  runtimes: z
    .array(z.string())
    .optional()
    .describe("The kinds of applications that its agent runs, such as `process` and `compose`, as it reported them last. Absent: it has reported none."),
  tags: z.array(z.string()),
  metrics: z.record(z.string(), z.unknown()).optional(),
  addresses: z.array(DeviceAddress).describe("IP addresses of the machine, as its agent reported them last, at most 16. Empty: it has reported none."),
  apps: z
    .object({ total: z.int(), error: z.int().describe("Those in the state `error`.") })
    .optional()
    .describe("The number of the device's apps. Only reads have it, and only for callers who may read apps."),
  maintenance: Maintenance.optional(),
  repairUntil: Timestamp.optional().describe("Until this time an enrollment token may pair the machine again."),
  connection: z.object({ connectivity: Connectivity, nodeId: z.string().optional(), since: Timestamp.optional(), epoch: z.int() }),
});
export type Device = z.infer<typeof Device>;
