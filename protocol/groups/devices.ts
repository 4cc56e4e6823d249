// Devices, also addressed as hosts: what is paired, whether it lives, and its secret.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { AgentId, CommandId, DeploymentId, DeviceId, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { ConnectPlan } from "../records/connect-plan.ts";
import { DeviceStatus, deviceEvents } from "../records/device-events.ts";

export { DeviceStatus };
export const Connectivity = z.enum(["realtime", "polling", "none"]);
const Timestamp = z.iso.datetime();
export const Tag = z.string().regex(/^[a-z0-9_.:-]{1,64}$/);
const Maintenance = z.object({ enabled: z.boolean(), until: Timestamp.nullable() });

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
  repairUntil: Timestamp.optional().describe("until then an enrollment token may pair the machine again"),
  connection: z.object({ connectivity: Connectivity, nodeId: z.string().optional(), since: Timestamp.optional(), epoch: z.int() }),
});
export type Device = z.infer<typeof Device>;

const percent = z.number().min(0).max(100);
/** Both forms of the interface, also mixed: {status, metrics} and {cpu, memory, disk, timestamp}. cpu, memory and disk are percentages. */
export const Heartbeat = z
  .object({
    status: DeviceStatus.optional(),
    metrics: z.record(z.string().max(64), z.unknown()).optional(),
    cpu: percent.optional(),
    memory: percent.optional(),
    disk: percent.optional(),
    timestamp: z.iso.datetime({ offset: true }).optional(),
  })
  .refine(
    (beat) => [beat.status, beat.metrics, beat.cpu, beat.memory, beat.disk].some((part) => part !== undefined),
    "one of status, metrics, cpu, memory or disk is needed",
  )
  .refine((beat) => Object.keys(beat.metrics ?? {}).length <= 64, { path: ["metrics"], message: "at most 64 metrics" });
export type Heartbeat = z.infer<typeof Heartbeat>;

export const DeviceSecrets = z.object({ deviceId: DeviceId, secrets: z.record(z.string(), z.string()), timestamp: Timestamp });

const ProvisionedDevice = z.object({
  device_id: DeviceId,
  agent_id: AgentId,
  tenant_id: TenantId,
  shared_secret: z.string(),
  fingerprint: z.string(),
  connect: ConnectPlan.optional(),
});
const own = { deviceId: ref("dev") };
const filters = {
  status: DeviceStatus.optional().describe("only devices in this state"),
  tag: Tag.optional().describe("only devices with this tag"),
  deploymentId: ref("dep").optional(),
  q: z.string().min(1).max(100).optional().describe("start of name or hostname"),
};
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
      input: listQuery(filters),
    }),
    // decided: the same devices; its documented style of paging is offset.
    listHosts: query({
      summary: "List hosts (the devices, in offset style)",
      rest: ["GET /hosts"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      list: "offset",
      output: paged(Device),
      input: listQuery(filters),
    }),
    get: query({
      summary: "Get one device",
      rest: ["GET /devices/{deviceId}", "GET /hosts/{deviceId}"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      input: z.strictObject(own),
      output: Device,
      errors: ["DEVICE_NOT_FOUND"],
    }),
    update: mutation({
      summary: "Change name, tags, deployment or maintenance",
      rest: ["PATCH /devices/{deviceId}", "PATCH /hosts/{deviceId}"],
      auth: ["user", "apiKey"],
      permission: "device:update",
      input: z.strictObject({
        ...own,
        name: z.string().min(1).max(100).nullish().describe("null removes it"),
        tags: z.array(Tag).max(50).optional(),
        deploymentId: ref("dep").optional(),
        maintenance: z
          .strictObject({ enabled: z.boolean(), until: Moment.nullable().default(null) })
          .nullish()
          .describe("null removes it"),
        version: Version.optional().describe("the version that was read; also as If-Match"),
      }),
      output: Device,
      errors: ["DEVICE_NOT_FOUND", "DEPLOYMENT_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      summary: "Remove a device: its secret dies, its socket closes, its open commands are cancelled",
      rest: ["DELETE /devices/{deviceId}", "DELETE /hosts/{deviceId}"],
      auth: ["user", "apiKey"],
      permission: "device:delete",
      status: 204,
      input: z.strictObject(own),
      output: z.null(),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    heartbeat: mutation({
      summary: "Report liveness and metrics",
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
        cancel: z.array(CommandId).describe("commands to stop"),
      }),
    }),
    secrets: query({
      summary: "The secrets the device runs with",
      rest: ["GET /devices/{deviceId}/secrets"],
      auth: ["user", "agent"],
      permission: "device:secrets:read",
      replay: "once",
      description: "An agent signs every call anew: a signature that was used for any request is refused here.",
      input: z.strictObject(own),
      output: DeviceSecrets,
      errors: ["DEVICE_NOT_FOUND"],
    }),
    // decided: only the agent itself is handed the new secret; for others the agent fetches it at its next contact.
    rotateSecret: mutation({
      summary: "Start a secret rotation; the old secret stays valid until the new one is used",
      rest: ["POST /devices/{deviceId}/secrets/rotate"],
      auth: ["user", "apiKey", "agent"],
      permission: "device:secrets:rotate",
      flat: true,
      errors: ["DEVICE_NOT_FOUND", "ROTATION_IN_PROGRESS"],
      description:
        "A command tells the agent to fetch it. With revoke the old secret dies at once and the socket closes: for a secret that others know. The device then stays outside until the new secret is brought to it.",
      input: z.strictObject({ ...own, revoke: z.boolean().default(false) }),
      output: z.object({ success: z.literal(true), message: z.string(), sharedSecret: z.string().optional() }),
    }),
    liftSignatureLock: mutation({
      summary: "Take the first form of signature from a device again",
      rest: ["DELETE /devices/{deviceId}/signature-lock"],
      auth: ["user", "apiKey"],
      permission: "device:secrets:rotate",
      status: 204,
      description:
        "An agent that has once connected with the second form and said that it always will is held to it. This is for one that was rolled back to an older version. It is locked again when it connects with the second form again. Pairing anew and revoking the secret lift the lock as well.",
      input: z.strictObject(own),
      output: z.null(),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    openRepair: mutation({
      summary: "Let the machine be paired again by enrollment token, for 24 hours",
      rest: ["POST /devices/{deviceId}/repair"],
      auth: ["user", "apiKey"],
      permission: "device:secrets:rotate",
      description:
        "For a machine that was set up anew and lost its secret. The next auto-activate with its fingerprint, by any valid enrollment token of the tenant, takes over the device: it gets a new secret, the old one dies, open commands are canceled. That ends the repair.",
      input: z.strictObject(own),
      output: z.object({ deviceId: DeviceId, repairUntil: Timestamp }),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    closeRepair: mutation({
      summary: "End a device's repair",
      rest: ["DELETE /devices/{deviceId}/repair"],
      auth: ["user", "apiKey"],
      permission: "device:secrets:rotate",
      status: 204,
      input: z.strictObject(own),
      output: z.null(),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    disconnect: mutation({
      summary: "Close the device's socket; it may come back",
      rest: ["POST /devices/{deviceId}/disconnect"],
      auth: ["user", "apiKey"],
      permission: "device:disconnect",
      input: z.strictObject(own),
      output: z.object({ deviceId: DeviceId, disconnected: z.boolean() }),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    provision: mutation({
      summary: "Pair up to 1,000 devices at once, each with its own secret",
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
              "fingerprints whose device exists already get a new secret, and the agents that use the old one are locked out; without it they are refused",
            ),
        })
        .refine(({ fingerprints, count }) => (fingerprints === undefined) !== (count === undefined), "give either fingerprints or count"),
      output: z.object({ items: z.array(ProvisionedDevice) }),
      errors: ["PLAN_LIMIT_EXCEEDED", "DEVICE_ALREADY_PAIRED"],
    }),
  },
  events: deviceEvents,
});
