// Tunnels: an address under which visitors reach a service of a device, without an open port on the device. The edge carries their bytes.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { command } from "../kit/command-type.ts";
import { event } from "../kit/event.ts";
import { DeviceId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import {
  TUNNEL_MODES,
  TUNNEL_PROTOCOLS,
  Tunnel,
  TunnelConnection,
  TunnelCredentials,
  TunnelHealth,
  TunnelId,
  TunnelLimits,
  TunnelStatus,
} from "../records/tunnel.ts";

const one = z.strictObject({ tunnelId: ref("tun") });
const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "tunnel:read" } as const;
const Name = z.string().trim().min(1).max(60);
const Hostname = z
  .string()
  .min(1)
  .max(253)
  .describe("One label, to which the tenant's name is added, as `shop` for `shop--acme.<domain>`; or the whole name. Default: a random one.");
const Service = z
  .string()
  .min(1)
  .max(2_048)
  .describe(
    "URL of the service as the device sees it, `http://127.0.0.1:3000` or `tcp://127.0.0.1:5432`: an address of its own, or a private one that its agent allows. `unix:sockets/shop.sock` is a unix socket that speaks HTTP, in `sockets` or `apps` of the agent's folder.",
  );
const Access = z.strictObject({
  mode: z.enum(TUNNEL_MODES).default("private"),
  allow: z.array(z.string().min(2).max(64)).max(50).default([]).describe("Addresses and networks that may come. Default: all."),
});
const settings = {
  name: Name.optional(),
  hostname: Hostname.optional(),
  access: Access.optional(),
  hostHeader: z.enum(["preserve", "service"]).optional(),
  limits: TunnelLimits.optional().describe("Replaces all limits of the tunnel: one that is left out is `null`."),
  expiresAt: Moment.nullable().optional().describe("From then on nobody reaches it. `null`: never."),
};
const TunnelEvent = z.object({ tunnelId: TunnelId, hostname: z.string(), deviceId: DeviceId.optional() });
const list = listQuery({
  sort: ["createdAt", "name", "status"],
  by: "-createdAt",
  filters: {
    status: TunnelStatus.optional().describe("Only tunnels with this status."),
    q: z.string().min(1).max(100).optional().describe("Only tunnels whose name or host name contains this text."),
  },
});
const CREATE = ["TUNNEL_HOSTNAME_TAKEN", "TUNNEL_SERVICE_INVALID", "PLAN_LIMIT_EXCEEDED"] as const;

export const tunnels = group({
  tag: "Tunnels",
  records: { Tunnel, TunnelCredentials, TunnelHealth, TunnelConnection },
  operations: {
    listOfDevice: query({
      ...read,
      summary: "List a device's tunnels",
      rest: ["GET /devices/{deviceId}/tunnels", "GET /hosts/{deviceId}/tunnels"],
      list: "page",
      input: list.extend({ deviceId: ref("dev") }),
      output: paged(named(Tunnel)),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    create: mutation({
      ...people,
      permission: "tunnel:create",
      summary: "Create a tunnel to a service of a device",
      rest: ["POST /devices/{deviceId}/tunnels", "POST /hosts/{deviceId}/tunnels"],
      status: 201,
      location: "/tunnels/{tunnelId}",
      input: z.strictObject({
        deviceId: ref("dev"),
        service: Service.optional(),
        targetPort: z.int().min(1).max(65_535).optional().describe("Stands for the service at this port of the device itself."),
        protocol: z.enum(TUNNEL_PROTOCOLS).default("http").describe("What the service at `targetPort` speaks. `tcp`: visitors get a port of the edge."),
        appId: ref("app").optional().describe("Stands for the app's first port, or for the one that `targetPort` names."),
        ...settings,
      }),
      output: Tunnel,
      errors: ["DEVICE_NOT_FOUND", "APP_NOT_FOUND", "TUNNEL_TARGET_REQUIRED", "COMMAND_QUEUE_FULL", ...CREATE],
    }),
    list: query({
      ...read,
      summary: "List tunnels",
      rest: ["GET /tunnels"],
      list: "page",
      input: list.extend({
        deviceId: ref("dev").optional().describe("Only tunnels of this device."),
        appId: ref("app").optional().describe("Only tunnels of this app."),
      }),
      output: paged(named(Tunnel)),
    }),
    createGlobal: mutation({
      ...people,
      permission: "tunnel:publish",
      summary: "Create a tunnel that connectors serve",
      rest: ["POST /tunnels"],
      status: 201,
      location: "/tunnels/{tunnelId}",
      input: z.strictObject({
        name: Name,
        config: z
          .strictObject({
            hostname: Hostname.optional(),
            service: Service.optional(),
            access: Access.optional(),
            hostHeader: settings.hostHeader,
            limits: settings.limits,
          })
          .default({})
          .describe("`service` is a note for people: each connector says itself what it serves."),
      }),
      output: Tunnel,
      errors: CREATE,
    }),
    get: query({ ...read, summary: "Get a tunnel", rest: ["GET /tunnels/{tunnelId}"], input: one, output: named(Tunnel), errors: ["TUNNEL_NOT_FOUND"] }),
    update: mutation({
      ...people,
      permission: "tunnel:update",
      summary: "Change, stop or start a tunnel",
      rest: ["PATCH /tunnels/{tunnelId}"],
      input: one.extend({
        service: Service.optional(),
        status: z.enum(["active", "stopped"]).optional().describe("`active` starts a tunnel that was stopped."),
        ...settings,
        version: Version.optional(),
      }),
      output: Tunnel,
      errors: [
        "TUNNEL_NOT_FOUND",
        "INVALID_STATE_TRANSITION",
        "VERSION_CONFLICT",
        "COMMAND_QUEUE_FULL",
        "TUNNEL_HOSTNAME_TAKEN",
        "TUNNEL_SERVICE_INVALID",
      ] as const,
    }),
    remove: mutation({
      ...people,
      permission: "tunnel:delete",
      summary: "Delete a tunnel",
      rest: ["DELETE /tunnels/{tunnelId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["TUNNEL_NOT_FOUND", "COMMAND_QUEUE_FULL"],
    }),
    health: query({
      ...read,
      summary: "Get a tunnel's health",
      rest: ["GET /tunnels/{tunnelId}/health"],
      input: one,
      output: TunnelHealth,
      errors: ["TUNNEL_NOT_FOUND"],
    }),
    credentials: query({
      ...people,
      permission: "tunnel:credentials",
      replay: "once",
      summary: "Get a tunnel's token",
      rest: ["GET /tunnels/{tunnelId}/credentials"],
      input: one,
      output: TunnelCredentials,
      errors: ["TUNNEL_NOT_FOUND"],
    }),
    rotateCredentials: mutation({
      ...people,
      permission: "tunnel:credentials",
      summary: "Give a tunnel a new token",
      rest: ["POST /tunnels/{tunnelId}/credentials/rotate"],
      input: one,
      output: TunnelCredentials,
      errors: ["TUNNEL_NOT_FOUND"],
    }),
    connections: query({
      ...read,
      summary: "List the carriers that serve a tunnel",
      rest: ["GET /tunnels/{tunnelId}/connections"],
      list: "plain",
      input: one,
      output: z.object({ items: z.array(TunnelConnection) }),
      errors: ["TUNNEL_NOT_FOUND"],
    }),
    enter: query({
      ...people,
      permission: "tunnel:use",
      summary: "Enter a private tunnel",
      rest: ["GET /tunnels/{tunnelId}/enter"],
      status: 303,
      responseHeaders: { Location: "The tunnel, with a code that lets this visitor in." },
      input: one.extend({ path: z.string().startsWith("/").max(4_096).default("/").describe("Where the visit begins.") }),
      output: z.object({ location: z.string() }),
      errors: ["TUNNEL_NOT_FOUND"],
    }),
  },
  commands: {
    sync: command("tunnel.sync", { summary: "Read the device's tunnels again", payload: z.object({}), output: z.object({ tunnels: z.int() }) }),
  },
  events: {
    created: event("tunnel.created", TunnelEvent, "A tunnel was created"),
    active: event("tunnel.active", TunnelEvent, "A tunnel's device is connected and reaches the service"),
    degraded: event("tunnel.degraded", TunnelEvent.extend({ reason: z.string() }), "A tunnel's device cannot reach the service"),
    down: event("tunnel.down", TunnelEvent, "Nothing has been connected to an active tunnel for 15 seconds"),
    recovered: event("tunnel.recovered", TunnelEvent, "A tunnel that was down or degraded serves again"),
    stopped: event("tunnel.stopped", TunnelEvent, "A tunnel was stopped"),
    published: event("tunnel.published", TunnelEvent, "A tunnel was opened to everybody"),
    rotated: event("tunnel.credentials_rotated", TunnelEvent, "A tunnel got a new token"),
    deleted: event("tunnel.deleted", TunnelEvent, "A tunnel was deleted"),
  },
});
