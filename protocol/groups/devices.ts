// Devices, also addressed as hosts: list, read, change and remove them, their heartbeats and their secrets.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { Tag } from "../kit/device-selector.ts";
import { CommandId, DeviceId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { paged } from "../kit/page.ts";
import { partialOf } from "../kit/partial.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { Device, DeviceAddress, DeviceHardware } from "../records/devices/device.ts";
import { Connectivity, DeviceStatus, deviceEvents } from "../records/devices/device-events.ts";
import { DeviceCounts, DeviceList, type DeviceQuery } from "../records/devices/device-list.ts";
import { Heartbeat } from "../records/devices/heartbeat.ts";
import { ProvisionedDevice } from "../records/devices/provisioned-device.ts";
import { DeviceMetrics, MetricRange } from "../records/metrics.ts";

export { Connectivity, Device, DeviceAddress, DeviceCounts, DeviceHardware, type DeviceQuery, DeviceStatus, Heartbeat };

const Timestamp = z.iso.datetime();
export const DeviceSecrets = z.object({ deviceId: DeviceId, secrets: z.record(z.string(), z.string()), timestamp: Timestamp });

const own = { deviceId: ref("dev") };
const part = partialOf(Device, "deviceId");

export const devices = group({
  tag: "Devices",
  operations: {
    list: query({
      summary: "List devices",
      rest: ["GET /devices"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      list: "page",
      output: paged(Device),
      input: DeviceList,
    }),
    listHosts: query({
      summary: "List devices as hosts, paged by offset",
      rest: ["GET /hosts"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      list: "offset",
      output: paged(Device),
      input: DeviceList,
    }),
    listPartial: query({
      summary: "List devices with only some of their fields",
      rest: ["GET /devices/partial"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      list: "page",
      output: paged(part.record),
      input: DeviceList.safeExtend({ fields: part.fields }),
    }),
    getMany: query({
      summary: "Get up to 200 devices",
      description: "In any order. Ids that are unknown or of another tenant are missing in the answer.",
      rest: ["GET /devices/batch"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      list: "plain",
      input: z.strictObject({ ids: z.array(ref("dev")).min(1).max(200).describe("Ids, separated by commas. Unknown ones are left out.") }),
      output: z.object({ items: z.array(Device) }),
    }),
    summary: query({
      summary: "Count devices by status, agent version, platform or tag",
      rest: ["GET /devices/summary"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      input: z.strictObject({ groupBy: z.enum(["status", "version", "platform", "tag"]).default("status").describe("What the devices are counted by.") }),
      output: DeviceCounts,
    }),
    wait: query({
      summary: "Wait until a device has one of several states",
      rest: ["GET /devices/{deviceId}/wait"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: z.strictObject({ ...own, ...awaitedFields(DeviceStatus) }),
      output: Device,
      errors: ["DEVICE_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    get: query({
      summary: "Get a device",
      rest: ["GET /devices/{deviceId}", "GET /hosts/{deviceId}"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      input: z.strictObject(own),
      output: Device,
      errors: ["DEVICE_NOT_FOUND"],
    }),
    update: mutation({
      summary: "Update a device",
      rest: ["PATCH /devices/{deviceId}", "PATCH /hosts/{deviceId}"],
      auth: ["user", "apiKey"],
      permission: "device:update",
      input: z.strictObject({
        ...own,
        name: z.string().min(1).max(100).nullish().describe("`null` removes it."),
        tags: z.array(Tag).max(50).optional(),
        deploymentId: ref("dep").optional(),
        maintenance: z
          .strictObject({ enabled: z.boolean(), until: Moment.nullable().default(null) })
          .nullish()
          .describe("`null` removes it."),
        version: Version.optional().describe("The version that you read; you can send it as `If-Match` instead."),
      }),
      output: Device,
      errors: ["DEVICE_NOT_FOUND", "DEPLOYMENT_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      summary: "Remove a device",
      rest: ["DELETE /devices/{deviceId}", "DELETE /hosts/{deviceId}"],
      auth: ["user", "apiKey"],
      permission: "device:delete",
      status: 204,
      input: z.strictObject(own),
      output: z.null(),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    heartbeat: mutation({
      summary: "Send a heartbeat",
      rest: ["POST /devices/{deviceId}/heartbeat", "POST /hosts/{deviceId}/heartbeat"],
      auth: ["agent"],
      permission: "self",
      limit: "heartbeat",
      idempotency: "none",
      replay: "repeatable",
      maxBodyBytes: 16_384,
      input: Heartbeat.safeExtend(own),
      output: z.object({
        deviceId: DeviceId,
        receivedAt: Timestamp,
        nextHeartbeatSeconds: z.int(),
        pendingCommands: z.int(),
        cancel: z.array(CommandId).describe("Commands to stop."),
      }),
    }),
    metrics: query({
      summary: "Get a device's metrics in buckets",
      rest: ["GET /devices/{deviceId}/metrics", "GET /hosts/{deviceId}/metrics"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      input: z.strictObject({ ...own, range: MetricRange }),
      output: DeviceMetrics,
      errors: ["DEVICE_NOT_FOUND"],
    }),
    secrets: query({
      summary: "Get a device's secrets",
      rest: ["GET /devices/{deviceId}/secrets"],
      auth: ["user", "agent"],
      permission: "device:secrets:read",
      replay: "once",
      description:
        "Returns the values that the software on the device needs at run time, by name. An agent reads its own device's secrets, with a signature that it has not used for any other request. A person needs the permission, and every such read emits `device.secrets_read`.",
      input: z.strictObject(own),
      output: DeviceSecrets,
      errors: ["DEVICE_NOT_FOUND"],
    }),
    // Only the agent itself receives the new secret here; after another caller's rotation the agent fetches it.
    rotateSecret: mutation({
      summary: "Rotate a device's secret",
      rest: ["POST /devices/{deviceId}/secrets/rotate"],
      auth: ["user", "apiKey", "agent"],
      permission: "device:secrets:rotate",
      flat: true,
      errors: ["DEVICE_NOT_FOUND", "ROTATION_IN_PROGRESS"],
      description:
        "Queues a command that makes the agent fetch its new secret. The old secret stays valid until the agent first uses the new one. Use `revoke` for a leaked secret: the old secret becomes invalid at once and the socket closes, and the device stays locked out until somebody installs the new secret on it.",
      input: z.strictObject({ ...own, revoke: z.boolean().default(false) }),
      output: z.object({ success: z.literal(true), message: z.string(), sharedSecret: z.string().optional() }),
    }),
    liftSignatureLock: mutation({
      summary: "Accept v1 signatures from this device again",
      rest: ["DELETE /devices/{deviceId}/signature-lock"],
      auth: ["user", "apiKey"],
      permission: "device:secrets:rotate",
      status: 204,
      description:
        "Once an agent has announced `signature.v2` and connected with a v2 signature, the gateway refuses its v1 signatures. Lift that lock when you roll the agent back to a version that only signs v1. The lock returns when the agent connects with v2 again. Pairing the device again or revoking its secret lifts it too.",
      input: z.strictObject(own),
      output: z.null(),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    openRepair: mutation({
      summary: "Allow an enrollment token to pair this device again, for 24 hours",
      rest: ["POST /devices/{deviceId}/repair"],
      auth: ["user", "apiKey"],
      permission: "device:secrets:rotate",
      description:
        "For a machine that was reinstalled and lost its secret. The next auto-activation with its fingerprint and any valid enrollment token of the tenant takes over the device: the machine gets a new secret, the old one becomes invalid, and open commands are canceled. That also ends the repair window.",
      input: z.strictObject(own),
      output: z.object({ deviceId: DeviceId, repairUntil: Timestamp }),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    closeRepair: mutation({
      summary: "Close a device's repair window",
      rest: ["DELETE /devices/{deviceId}/repair"],
      auth: ["user", "apiKey"],
      permission: "device:secrets:rotate",
      status: 204,
      input: z.strictObject(own),
      output: z.null(),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    disconnect: mutation({
      summary: "Disconnect a device",
      rest: ["POST /devices/{deviceId}/disconnect"],
      auth: ["user", "apiKey"],
      permission: "device:disconnect",
      input: z.strictObject(own),
      output: z.object({ deviceId: DeviceId, disconnected: z.boolean() }),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    provision: mutation({
      summary: "Provision up to 1,000 devices",
      rest: ["POST /devices/provision"],
      auth: ["user", "apiKey"],
      permission: "device:provision",
      status: 201,
      list: "plain",
      input: z
        .strictObject({
          fingerprints: z.array(z.string().min(8).max(256)).min(1).max(1_000).optional(),
          count: z.int().min(1).max(1_000).optional(),
          tags: z.array(Tag).max(50).default([]),
          platform: z.string().min(1).max(64).optional(),
          replaceExisting: z
            .boolean()
            .default(false)
            .describe(
              "Issue a new secret to every fingerprint whose device already exists, which locks out the agent that uses the old one. Without it such a fingerprint is refused.",
            ),
        })
        .refine(({ fingerprints, count }) => (fingerprints === undefined) !== (count === undefined), "give either fingerprints or count"),
      output: z.object({ items: z.array(ProvisionedDevice) }),
      errors: ["PLAN_LIMIT_EXCEEDED", "DEVICE_ALREADY_PAIRED"],
    }),
  },
  events: deviceEvents,
  records: { DeviceMetrics, PartialDevice: part.record },
});
