// Operations of an agent on its own device. Every call is signed.
import { z } from "zod";
import { AgentId, AppId, DeploymentId, DeviceId, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { MAX_CHUNK_BYTES } from "../records/apps/app-log.ts";
import { DesiredApp, ReportedApp } from "../records/apps/app-spec.ts";
import { AgentEvent, MAX_AGENT_EVENTS } from "../records/devices/agent-event.ts";
import { PlatformName, ReleaseChannel, SignedRelease, SignedText } from "../records/devices/agent-release.ts";
import { DeviceHardware } from "../records/devices/device.ts";
import { AdvertisedNetworks, DesiredMeshRoute, RefusedNetwork } from "../records/mesh-route.ts";
import { DesiredTunnel, ReportedTunnel } from "../records/tunnel.ts";

const Timestamp = z.iso.datetime();
const common = { auth: ["agent"], permission: "self", limit: "agent" } as const;

const DesiredState = z.object({
  version: z.int().describe("Rises with every change. 0 before the first."),
  hash: z.string().describe("Of `apps`, `tunnels` and `mesh`: equal for equal content."),
  apps: z.array(DesiredApp),
  tunnels: z.array(DesiredTunnel).describe("Services that visitors reach over the carrier. An agent that has any keeps one open."),
  carrier: z.object({ url: z.string() }).describe("Where the agent opens its carrier."),
  mesh: z
    .object({ url: z.string().describe("Where a consumer opens its carrier."), routes: z.array(DesiredMeshRoute) })
    .describe("Approved routes in which the device is a consumer or a router. A router keeps the carrier of tunnels open."),
});
const ReportResult = z.object({
  desiredVersion: z.int().describe("The present version. If it is higher than the reported one, get the desired state."),
  ignored: z.array(z.string()).describe("The ids of apps that the device should not have."),
  unusable: z.array(z.object({ appId: AppId, message: z.string() })).describe("The reported apps that do not fit, so that nothing of them counts, and why."),
  refused: z.array(RefusedNetwork).describe("Of the advertised networks, those that become no mesh routes."),
});
const LatestRelease = z.object({ release: SignedRelease.nullable(), signed: SignedText });
const LogReceipt = z.object({ watched: z.boolean().describe("`false`: nobody watches (any more). Stop to send this `followId`.") });
const AgentEventReceipt = z.object({ accepted: z.int() });

export const agent = group({
  tag: "Agent",
  records: { DesiredState, ReportResult, LatestRelease, LogReceipt, AgentEventReceipt },
  operations: {
    me: query({
      ...common,
      summary: "Get the agent's own ids and the server time",
      rest: ["GET /agent/me"],
      input: z.strictObject({}),
      output: z.object({
        agentId: AgentId,
        deviceId: DeviceId,
        tenantId: TenantId,
        deploymentId: DeploymentId,
        serverTime: Timestamp,
        limits: z.object({ requestsPerMinute: z.int(), heartbeatsPerMinute: z.int(), maxOutputBytes: z.int() }),
      }),
    }),
    config: query({
      ...common,
      summary: "Get the agent's settings: intervals, socket address, features",
      rest: ["GET /agent/config"],
      input: z.strictObject({}),
      output: z.object({
        heartbeatSeconds: z.int(),
        pollSeconds: z.int(),
        socketUrl: z.string(),
        subprotocol: z.string(),
        features: z.array(z.string()),
        maintenance: z.object({ enabled: z.boolean(), until: Timestamp.nullable() }),
        logLevel: z.enum(["debug", "info", "warn", "error"]),
        version: z.string().describe("Changes whenever another field of this record changes."),
      }),
    }),
    desiredState: query({
      ...common,
      summary: "Get what the device should run",
      rest: ["GET /agent/desired-state"],
      input: z.strictObject({}),
      output: DesiredState,
    }),
    reportState: mutation({
      ...common,
      summary: "Report what the device runs",
      rest: ["PUT /agent/reported-state"],
      idempotency: "none",
      replay: "repeatable",
      input: z.object({
        version: z.int().min(0).max(2_147_483_647).describe("Of the desired state that the agent has applied."),
        apps: z
          .array(z.union([ReportedApp, z.looseObject({ appId: AppId })]))
          .max(500)
          .describe("Each is taken by itself: one that does not fit is left out and named in `unusable`."),
        tunnels: z.array(ReportedTunnel).max(200).optional().describe("Absent: nothing new is known of them."),
        advertises: AdvertisedNetworks.optional().describe(
          "Networks in CIDR form that other devices may reach by way of this one. Each becomes a mesh route for all devices, which waits for approval, unless the device has offered it before.",
        ),
      }),
      output: ReportResult,
    }),
    latestUpdate: query({
      ...common,
      summary: "Get the newest version of the agent",
      rest: ["GET /agent/updates/latest"],
      input: z.strictObject({
        platform: PlatformName.describe("The agent's, as `process.platform` of Node."),
        arch: PlatformName.describe("The agent's, as `process.arch` of Node."),
        channel: ReleaseChannel.describe("Releases of this channel only."),
      }),
      output: LatestRelease,
    }),
    updatePackage: query({
      ...common,
      summary: "Get a package of the agent",
      rest: ["GET /agent/updates/packages/{file}"],
      plain: { type: "application/octet-stream" },
      input: z.strictObject({
        file: z
          .string()
          .regex(/^\w[\w.-]{0,120}\.package\.json$/)
          .describe("The last part of the release's `url`."),
      }),
      output: z.string(),
      errors: ["AGENT_PACKAGE_NOT_FOUND"],
    }),
    reportInventory: mutation({
      ...common,
      summary: "Report the machine's inventory",
      rest: ["PUT /agent/inventory"],
      limit: "inventory",
      idempotency: "none",
      replay: "repeatable",
      maxBodyBytes: 65_536,
      input: z.looseObject({
        hostname: z.string().max(253).optional(),
        platform: z.string().max(64).optional(),
        arch: z.string().max(64).optional(),
        osVersion: z.string().max(128).optional(),
        agentVersion: z.string().max(64).optional(),
        dockerVersion: z.string().max(64).optional(),
        resticVersion: z.string().max(64).nullable().optional().describe("`null`: the machine has no restic, so the gateway orders no backups from it."),
        model: z.string().max(128).optional().describe("Of the machine, as its maker names it."),
        hardware: DeviceHardware.optional(),
        runtimes: z
          .array(z.string().min(1).max(32))
          .max(8)
          .optional()
          .describe("The kinds of applications that the agent runs: `process`, and `compose` if the machine has Docker with Compose."),
        ipAddresses: z
          .array(z.string().max(64))
          .max(64)
          .optional()
          .describe("Of the machine's network interfaces. The gateway keeps the first 16 that others can reach."),
      }),
      output: z.object({ deviceId: DeviceId, updatedAt: Timestamp }),
    }),
    sendLogs: mutation({
      ...common,
      summary: "Send lines of an app's log",
      rest: ["POST /agent/logs"],
      limit: "logs",
      idempotency: "none",
      rawBody: "chunk",
      rawType: "application/x-ndjson",
      maxBodyBytes: MAX_CHUNK_BYTES,
      input: z.strictObject({
        chunk: z
          .string()
          .min(1)
          .max(MAX_CHUNK_BYTES)
          .describe("NDJSON: first a line with `followId`, `n` and perhaps `skipped`, `done` and `truncated`, then a line `{at, stream, text}` for each line."),
      }),
      output: LogReceipt,
    }),
    reportEvents: mutation({
      ...common,
      summary: "Report what happened on the device",
      rest: ["POST /agent/events"],
      limit: "events",
      input: z.strictObject({ events: z.array(AgentEvent).min(1).max(MAX_AGENT_EVENTS) }),
      output: AgentEventReceipt,
    }),
  },
});
