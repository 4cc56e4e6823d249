// Volumes: the data of apps on devices, as their agents find it. Only what belongs to no app can be removed.
import { z } from "zod";
import { command } from "../kit/command-type.ts";
import { event } from "../kit/event.ts";
import { AppId, DeploymentId, DeviceId, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { Bytes } from "../records/backups/backup.ts";

const Timestamp = z.iso.datetime();
const VolumeName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^/\0]*$/, "must contain neither a slash nor NUL")
  .describe("`<appId>.<volume>` for programs, the engine's own name for containers.");
const SizeState = z
  .enum(["exact", "incomplete", "unknown"])
  .describe("`incomplete`: the scan ran out of time. `unknown`: the agent could not look. Then there is no `size`.");
export const MAX_VOLUMES = 1_000;

/** A volume as the agent found it. */
export const FoundVolume = z.object({
  name: VolumeName,
  driver: z.string().min(1).max(64).default("local").describe("`local` for folders, else the engine's."),
  mountpoint: z.string().min(1).max(4_096).describe("The folder on the device."),
  size: Bytes.optional(),
  sizeState: SizeState.default("unknown"),
  files: z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  labels: z
    .record(z.string().max(255), z.string().max(1_024))
    .refine((labels) => Object.keys(labels).length <= 50, "must have at most 50 names")
    .default({}),
  appId: AppId.nullable().default(null).describe("The app whose data it is. `null`: of none, or of one that is gone."),
  inUse: z.boolean().default(false).describe("Whether a program or container uses it now."),
});
export type FoundVolume = z.output<typeof FoundVolume>;

const VolumeStatus = z.enum(["present", "removing"]);
export const VolumeInfo = z.object({
  name: z.string(),
  driver: z.string(),
  mountpoint: z.string(),
  size: Bytes.optional().describe("In bytes. Absent rather than wrong."),
  labels: z.record(z.string(), z.string()),
  deviceId: DeviceId,
  appId: AppId.nullable(),
  inUse: z.boolean(),
  orphaned: z.boolean().describe("It belongs to no app that the device has."),
  files: z.int().nullable(),
  sizeState: SizeState,
  status: VolumeStatus,
  firstSeenAt: Timestamp,
  lastSeenAt: Timestamp,
});
export type VolumeInfo = z.output<typeof VolumeInfo>;

export const VolumeDiscoveryResult = z.object({
  deviceId: DeviceId,
  tenantId: TenantId,
  deploymentId: DeploymentId,
  volumes: z.array(VolumeInfo),
  totalVolumes: z.int(),
  totalSize: z.number().describe("Bytes of the volumes that have a size."),
  discoveredAt: Timestamp.nullable().describe("When the agent last reported. `null`: not yet."),
});
export type VolumeDiscoveryResult = z.output<typeof VolumeDiscoveryResult>;

export const VolumeRefreshResponse = z.object({ success: z.literal(true), message: z.string(), deviceId: DeviceId });

const VolumeReport = z.object({ deviceId: DeviceId, totalVolumes: z.int(), discoveredAt: Timestamp });
const VolumeEvent = z.object({ deviceId: DeviceId, name: z.string(), appId: AppId.nullable(), size: z.int().nullable() });

const onDevice = z.strictObject({ deviceId: ref("dev") });
const one = onDevice.extend({ name: z.string().min(1).max(255).describe("The name of the volume, as lists show it.") });
const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "volume:read" } as const;

export const volumes = group({
  tag: "Volumes",
  records: { VolumeInfo, VolumeDiscoveryResult, VolumeRefreshResponse, VolumeReport },
  operations: {
    listOfDevice: query({
      ...read,
      summary: "List a device's volumes",
      rest: ["GET /devices/{deviceId}/volumes", "GET /hosts/{deviceId}/volumes"],
      input: onDevice,
      output: VolumeDiscoveryResult,
      errors: ["DEVICE_NOT_FOUND"],
    }),
    refresh: mutation({
      ...people,
      permission: "volume:scan",
      summary: "Let a device look for its volumes",
      rest: ["POST /devices/{deviceId}/volumes/refresh", "POST /hosts/{deviceId}/volumes/refresh"],
      flat: true,
      limit: "volumes.refresh",
      input: onDevice,
      output: VolumeRefreshResponse,
      errors: ["DEVICE_NOT_FOUND", "DEVICE_OFFLINE", "VOLUME_SCAN_RUNNING", "COMMAND_QUEUE_FULL"],
    }),
    report: mutation({
      auth: ["agent"],
      permission: "self",
      limit: "inventory",
      idempotency: "none",
      replay: "repeatable",
      summary: "Report the device's volumes",
      rest: ["PUT /devices/{deviceId}/volumes"],
      input: z.object({ deviceId: ref("dev"), volumes: z.array(FoundVolume).max(MAX_VOLUMES) }),
      output: VolumeReport,
    }),
    list: query({
      ...read,
      summary: "List volumes",
      rest: ["GET /volumes"],
      list: "page",
      input: listQuery({
        sort: ["name", "size", "firstSeenAt"],
        by: "name",
        filters: {
          deviceId: ref("dev").optional().describe("Only volumes of this device."),
          orphaned: z.boolean().optional().describe("Only volumes that belong to no app, or only the others."),
          q: z.string().min(1).max(100).optional().describe("Only volumes whose name contains this text."),
        },
      }),
      output: paged(VolumeInfo),
    }),
    get: query({
      ...read,
      summary: "Get a volume",
      rest: ["GET /devices/{deviceId}/volumes/{name}"],
      input: one,
      output: VolumeInfo,
      errors: ["DEVICE_NOT_FOUND", "VOLUME_NOT_FOUND"],
    }),
    remove: mutation({
      ...people,
      permission: "volume:delete",
      summary: "Remove a volume that belongs to no app",
      rest: ["DELETE /devices/{deviceId}/volumes/{name}"],
      status: 204,
      query: ["confirm"],
      input: one.extend({ confirm: z.string().max(255).describe("The volume's name.") }),
      output: z.null(),
      errors: ["DEVICE_NOT_FOUND", "VOLUME_NOT_FOUND", "VOLUME_IN_USE", "VOLUME_NOT_CONFIRMED", "COMMAND_QUEUE_FULL"],
    }),
  },
  commands: {
    scan: command("volume.scan", {
      risk: "none",
      ttlSeconds: 3_600,
      executionTimeoutSeconds: 600,
      summary: "Look for volumes and measure them",
      payload: z.object({ budgetSeconds: z.int().min(1).max(300).describe("Stop to measure then; what is not measured has the size state `incomplete`.") }),
      output: z.object({ volumes: z.array(FoundVolume).max(MAX_VOLUMES), seconds: z.number().min(0).max(1e9) }),
    }),
    remove: command("volume.remove", {
      risk: "danger",
      summary: "Remove a volume",
      payload: z.object({ name: VolumeName }),
      output: z.object({ removed: z.boolean().describe("`false`: there was no such volume any more."), freedBytes: Bytes.nullable() }),
    }),
  },
  events: {
    discovered: event("volume.discovered", VolumeEvent, "A device has a volume that it did not have before"),
    removing: event("volume.removing", VolumeEvent, "A volume is to be removed"),
    removalFailed: event("volume.removal_failed", VolumeEvent.extend({ reason: z.string() }), "A volume could not be removed"),
    removed: event("volume.removed", VolumeEvent, "A volume is gone from its device"),
  },
});
