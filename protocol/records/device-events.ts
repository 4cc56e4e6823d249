// What is told of devices, live, to webhooks and for the record.
import { z } from "zod";
import { event } from "../kit/event.ts";
import { DeviceId } from "../kit/ids.ts";

export const DeviceStatus = z.enum(["online", "offline", "provisioning"]);
export type DeviceStatus = z.infer<typeof DeviceStatus>;
const Timestamp = z.iso.datetime();
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
  duplicateIdentity: event(
    "device.duplicate_identity",
    z.object({
      deviceId: DeviceId,
      nodeId: z.string().describe("gateway node that refused the newcomer"),
      hostname: z.string().optional().describe("as the newcomer names itself"),
      agentVersion: z.string().optional(),
    }),
    "Two living agents use one identity; the newcomer was refused. At most once an hour per device",
  ),
  pairedAgain: event(
    "device.paired_again",
    z.object({
      deviceId: DeviceId,
      fingerprint: z.string(),
      means: z.enum(["code", "enrollment_token", "provisioning"]),
      actor: z.string().describe("who allowed it: the user who approved the code, the enrollment token, or the caller of provisioning"),
      ip: z.string().optional().describe("address that the new secret was handed to"),
      lastSeen: Timestamp.optional().describe("when the device was last heard of before"),
    }),
    "A machine took over an existing device; the agent that used its identity before is locked out",
  ),
  repairChanged: event(
    "device.repair_changed",
    z.object({ deviceId: DeviceId, repairUntil: Timestamp.nullable(), actor: z.string() }),
    "Somebody put a device into repair, or ended its repair",
  ),
  secretsRead: event("device.secrets_read", z.object({ deviceId: DeviceId, actor: z.string() }), "Somebody other than its agent read a device's secret"),
  secretsRotated: event("device.secrets_rotated", z.object({ deviceId: DeviceId }), "A device uses its new secret"),
  signatureVersionChanged: event(
    "device.signature_version_changed",
    z.object({ deviceId: DeviceId, minSignatureVersion: z.union([z.literal(1), z.literal(2)]), actor: z.string().describe("who locked or unlocked it") }),
    "The least form of signature that is taken from a device was raised by its agent or lowered by a person",
  ),
};
