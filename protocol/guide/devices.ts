// Devices, explained.
import type { Guide } from "./guide.ts";
import { AT, connect, device, FINGERPRINT, IDS, TOMORROW } from "./records.ts";

const { agentId, deviceId, tenantId } = IDS;

export const devices: Guide<"devices"> = {
  list: {
    description: "Newest first. `status` says whether the device is heard: `online`, `offline`, or `provisioning` until its first contact.",
    input: { page: 1, pageSize: 20 },
    output: { items: [device], total: 1 },
  },
  listHosts: {
    description: "The same devices under their other name, paged by `limit` and `offset`.",
    input: { limit: 20, offset: 0 },
    output: { items: [device], total: 1 },
  },
  get: { description: "One device with its last metrics and how it is connected.", input: { deviceId }, output: device },
  update: {
    description:
      "Changes the fields that are given and leaves the others; `null` removes the name or the maintenance. With `version` (or `If-Match`) the change is made only if nobody else has changed the device since you read it; otherwise 409 `VERSION_CONFLICT`.",
    input: { deviceId, name: "attic", tags: ["site:home"] },
    output: device,
  },
  remove: {
    description: "The device stops being part of the tenant at once. To bring the machine back, pair it again.",
    input: { deviceId },
  },
  heartbeat: {
    description:
      "For agents without a socket. Any of the fields will do; `cpu`, `memory` and `disk` are percentages. The answer says when to send the next one and how many commands wait.",
    input: { deviceId, cpu: 12.5, memory: 40, disk: 70 },
    output: { deviceId, receivedAt: AT, nextHeartbeatSeconds: 30, pendingCommands: 1, cancel: [] },
  },
  secrets: {
    description: "What the software on the device needs at run time, by name. An agent reads its own; people need the permission, and every read is recorded.",
    input: { deviceId },
    output: { deviceId, secrets: { TENANT_ID: tenantId, DEVICE_TOKEN: "dt_3Kf9sL2mQ8" }, timestamp: AT },
  },
  rotateSecret: {
    input: { deviceId, revoke: false },
    output: { success: true, message: "The device fetches its new secret at its next contact." },
  },
  liftSignatureLock: { input: { deviceId } },
  openRepair: { input: { deviceId }, output: { deviceId, repairUntil: TOMORROW } },
  closeRepair: {
    description: "From now on the device's fingerprint alone takes nothing over any more. A device that is not in repair answers the same.",
    input: { deviceId },
  },
  disconnect: {
    description: "Ends the socket that the agent holds now. Its identity stays good, so it connects again within seconds.",
    input: { deviceId },
    output: { deviceId, disconnected: true },
  },
  provision: {
    description:
      "Creates devices without pairing them one by one: give their `fingerprints`, or a `count` to have fingerprints made. All are created or none. Each `shared_secret` is shown this once.",
    input: { fingerprints: [FINGERPRINT], tags: ["site:lisbon"], platform: "linux" },
    output: {
      items: [
        {
          device_id: deviceId,
          agent_id: agentId,
          tenant_id: tenantId,
          shared_secret: "c2VjcmV0LW9mLXRoaXMtZGV2aWNlLW9ubHk",
          fingerprint: FINGERPRINT,
          connect,
        },
      ],
    },
  },
};
