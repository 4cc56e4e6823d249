// Guide to devices.
import type { Guide } from "./guide.ts";
import { AT, connect, device, FINGERPRINT, IDS, TOMORROW } from "./records.ts";

const { agentId, deviceId, tenantId } = IDS;

export const devices: Guide<"devices"> = {
  list: {
    description:
      "Lists devices, newest first. `status` is `provisioning` until the device first connects, then `online` or `offline`. `sort=status` begins with those that are offline. `sort=lastSeen` begins with those that have been silent for longest and ends with those that were never seen; a device that reports moves to its new place while you page.",
    input: { page: 1, pageSize: 20 },
    output: { items: [device], total: 1 },
  },
  listHosts: {
    description: "Lists the same devices as `GET /devices`, paged by `limit` and `offset`.",
    input: { limit: 20, offset: 0 },
    output: { items: [device], total: 1 },
  },
  listPartial: {
    description: "Lists the same devices as `GET /devices`, with the same filters, orders and cursors, and leaves out the fields that you do not name.",
    input: { fields: ["name", "status", "lastSeen"], pageSize: 100 },
    output: { items: [{ deviceId, name: device.name, status: device.status, lastSeen: device.lastSeen }], total: 1 },
  },
  getMany: { input: { ids: [deviceId] }, output: { items: [device] } },
  summary: {
    description: "Counts the tenant's devices in one read, for overviews and filters.",
    input: { groupBy: "status" },
    output: {
      groupBy: "status",
      total: 3,
      groups: [
        { value: "online", count: 2 },
        { value: "offline", count: 1 },
      ],
      version: 4_711,
    },
  },
  wait: {
    description:
      "Answers as soon as the device has one of these states, and otherwise at the end of `timeout` with the device as it is. A call that waits counts as a live stream of its caller.",
    input: { deviceId, status: ["online"], timeout: 30 },
    output: device,
  },
  get: { description: "Returns the device with its latest metrics and its connection.", input: { deviceId }, output: device },
  update: {
    description:
      "Changes only the fields that you send; `null` removes the name or the maintenance. If you send `version` (or `If-Match`) and somebody changed the device since you read it, the response is 409 `VERSION_CONFLICT` and nothing changes.",
    input: { deviceId, name: "attic", tags: ["site:home"] },
    output: device,
  },
  remove: {
    description:
      "Removes the device at once: its secret becomes invalid, its socket closes, and its open commands are canceled. To bring the machine back, pair it again.",
    input: { deviceId },
  },
  heartbeat: {
    description:
      "For agents without a socket. Send at least one of `status`, `metrics`, `cpu`, `memory` and `disk`; the last three are percentages. The response says when to send the next heartbeat and how many commands are waiting.",
    input: { deviceId, cpu: 12.5, memory: 40, disk: 70 },
    output: { deviceId, receivedAt: AT, nextHeartbeatSeconds: 30, pendingCommands: 1, cancel: [] },
  },
  secrets: {
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
    description:
      "Enrollment tokens can no longer pair this device again, except those created with `allowRepair`. Closing a window that is not open succeeds too.",
    input: { deviceId },
  },
  disconnect: {
    description: "Closes the agent's current socket. Its identity stays valid, so it reconnects within seconds.",
    input: { deviceId },
    output: { deviceId, disconnected: true },
  },
  provision: {
    description:
      "Creates devices without pairing each of them. Send their `fingerprints`, or a `count` to have the gateway generate fingerprints. Either all devices are created or none. The response is the only one that contains each `shared_secret`.",
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
  metrics: {
    description:
      "Returns CPU, memory and disk in percent over time, from one sample of its heartbeats a minute. A bucket without samples has `count` 0 and no figures.",
    input: { deviceId, range: "1h" },
    output: {
      deviceId,
      range: "1h",
      bucketSeconds: 60,
      buckets: [{ timestamp: AT, count: 1, cpu: { avg: 12.5, max: 12.5 }, memory: { avg: 40, max: 40 }, disk: { avg: 70, max: 70 } }],
    },
  },
};
