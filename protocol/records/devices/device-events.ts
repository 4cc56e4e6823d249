// The events of devices.
import { z } from "zod";
import { event, hint } from "../../kit/event.ts";
import { DeploymentId, DeviceId } from "../../kit/ids.ts";
import { AgentEventSeverity } from "./agent-event.ts";

export const DeviceStatus = z.enum(["online", "offline", "provisioning"]);
export type DeviceStatus = z.infer<typeof DeviceStatus>;
export const Connectivity = z.enum(["realtime", "polling", "none"]);
const Timestamp = z.iso.datetime();
export const Maintenance = z.object({ enabled: z.boolean(), until: Timestamp.nullable() });
const statusEvent = z.object({
  deviceId: DeviceId,
  status: DeviceStatus,
  previous: DeviceStatus.nullable(),
  hostname: z.string().optional(),
  reason: z.string().optional(),
  lastSeen: Timestamp.optional(),
});

export const deviceEvents = {
  created: event("device.created", statusEvent, "A device was paired"),
  online: event("device.online", statusEvent, "A device came online"),
  offline: event("device.offline", statusEvent, "A device went offline"),
  deleted: event("device.deleted", statusEvent, "A device was removed"),
  changed: event(
    "device.changed",
    z.object({
      deviceId: DeviceId,
      name: z.string().nullable(),
      tags: z.array(z.string()),
      deploymentId: DeploymentId,
      maintenance: Maintenance.nullable(),
      changed: z.array(z.string()).describe("The fields that the caller sent, such as `name` and `tags`."),
    }),
    "Somebody changed a device's name, tags, deployment or maintenance",
  ),
  seen: hint(
    "device.seen",
    z.object({
      deviceId: DeviceId,
      status: DeviceStatus,
      connectivity: Connectivity,
      lastSeen: Timestamp.nullable(),
      lastHeartbeatAt: Timestamp.nullable(),
      metrics: z.object({ cpu: z.number().nullable(), memory: z.number().nullable(), disk: z.number().nullable() }).describe("In percent."),
    }),
    "The gateway heard a device that the viewer names in `seen`, or its connection changed; at most one event per device in 5 seconds",
  ),
  duplicateIdentity: event(
    "device.duplicate_identity",
    z.object({
      deviceId: DeviceId,
      nodeId: z.string().describe("Node that refused the second agent."),
      hostname: z.string().optional().describe("Hostname that the second agent reports."),
      agentVersion: z.string().optional(),
    }),
    "A second agent connected with the identity of a live one and was refused; at most one event an hour per device",
  ),
  pairedAgain: event(
    "device.paired_again",
    z.object({
      deviceId: DeviceId,
      fingerprint: z.string(),
      means: z.enum(["code", "enrollment_token", "provisioning"]),
      actor: z.string().describe("Who allowed it: the user who approved the code, the enrollment token, or the caller of provisioning."),
      ip: z.string().optional().describe("Address that received the new secret."),
      lastSeen: Timestamp.optional().describe("When the device was last seen before."),
    }),
    "A machine took over an existing device, which locks out the agent that used its identity",
  ),
  repairChanged: event(
    "device.repair_changed",
    z.object({ deviceId: DeviceId, repairUntil: Timestamp.nullable(), actor: z.string() }),
    "A device's repair window was opened or closed",
  ),
  secretsRead: event("device.secrets_read", z.object({ deviceId: DeviceId, actor: z.string() }), "Somebody other than its agent read a device's secrets"),
  secretsRotated: event("device.secrets_rotated", z.object({ deviceId: DeviceId }), "A device began to use its new secret"),
  reported: event(
    "device.reported",
    z.object({
      deviceId: DeviceId,
      type: z.string().describe("The agent's own word."),
      severity: AgentEventSeverity,
      timestamp: Timestamp.describe("By the device's clock."),
      details: z.record(z.string(), z.unknown()),
    }),
    "A device's agent reported something that happened there",
  ),
  signatureVersionChanged: event(
    "device.signature_version_changed",
    z.object({
      deviceId: DeviceId,
      minSignatureVersion: z.union([z.literal(1), z.literal(2)]),
      actor: z.string().describe("The agent that raised it or the user who lowered it."),
    }),
    "The minimum signature version of a device changed",
  ),
};
