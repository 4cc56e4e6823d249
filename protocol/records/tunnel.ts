// Tunnels: a way from outside to a service of a device, or to one that a connector serves.
import { z } from "zod";
import { AppId, DeviceId, id, TenantId } from "../kit/ids.ts";

const Timestamp = z.iso.datetime();
export const TunnelId = id("tun");

export const TUNNEL_STATUSES = ["pending", "active", "stopped", "error"] as const;
export const TunnelStatus = z.enum(TUNNEL_STATUSES);
export const TUNNEL_MODES = ["private", "token", "public"] as const;
export const TUNNEL_PROTOCOLS = ["http", "https", "tcp"] as const;
export const TUNNEL_STATES = ["healthy", "degraded", "down", "inactive"] as const;

export const TunnelAccess = z.object({
  mode: z
    .enum(TUNNEL_MODES)
    .describe(
      "`private`: members with `tunnel:use`, signed in or with an API key. `token`: whoever has the tunnel's token. `public`: everybody. TCP carries no credential: `private` there means the addresses of `allow`, and `token` is refused.",
    ),
  allow: z.array(z.string()).describe("Addresses and networks that may come; empty: all."),
  tokenHint: z.string().describe("The last characters of the token."),
});

export const TunnelLimits = z.strictObject({
  requestsPerMinute: z.int().min(1).max(1_000_000).nullable().default(null).describe("Of all visitors together. `null`: no limit."),
  connections: z
    .int()
    .min(1)
    .max(10_000)
    .nullable()
    .default(null)
    .describe("Open requests, WebSockets and TCP connections of all visitors together. `null`: no limit."),
  idleSeconds: z
    .int()
    .min(1)
    .max(86_400)
    .nullable()
    .default(null)
    .describe("An answer, a WebSocket or a TCP connection that carries no byte for so long is ended. `null`: 100 s for answers, an hour for the others."),
});
export type TunnelLimits = z.infer<typeof TunnelLimits>;

export const Tunnel = z.object({
  tunnelId: TunnelId,
  id: TunnelId.describe("The same as `tunnelId`."),
  tenantId: TenantId,
  deviceId: DeviceId.optional().describe("Missing for a global tunnel, which connectors serve."),
  appId: AppId.nullable(),
  name: z.string(),
  hostname: z.string(),
  url: z.string().describe("Where visitors come: `https://…`, or `tcp://host:port`."),
  status: TunnelStatus,
  protocol: z.enum(TUNNEL_PROTOCOLS),
  port: z.int().nullable().describe("Of a tunnel with the protocol `tcp`: the port of the edge at which its visitors come, one of `TUNNEL_TCP_PORTS`."),
  service: z.string().describe("What visitors reach, as the device sees it."),
  targetPort: z.int().nullable(),
  access: TunnelAccess,
  hostHeader: z.enum(["preserve", "service"]).describe("The Host that the service gets: the visitor's, or its own."),
  limits: TunnelLimits.describe("Of each node that visitors come to."),
  expiresAt: Timestamp.nullable(),
  health: z.enum(TUNNEL_STATES),
  failure: z.object({ reason: z.string(), message: z.string() }).nullable().describe("Why the device cannot reach the service."),
  usage: z
    .object({
      requests: z.int(),
      bytesIn: z.int().describe("From visitors to the service."),
      bytesOut: z.int().describe("From the service to visitors."),
      lastUsedAt: Timestamp.nullable(),
    })
    .describe("Since the tunnel was created, some seconds late."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Tunnel = z.infer<typeof Tunnel>;

export const TunnelCredentials = z.object({
  tunnelId: TunnelId,
  token: z.string().describe("Opens the tunnel for visitors in mode `token`, and lets a connector serve it."),
  accountTag: TenantId,
});
export const TunnelHealth = z.object({
  tunnelId: TunnelId,
  healthy: z.boolean(),
  state: z.enum(TUNNEL_STATES),
  service: z.enum(["reachable", "refused", "timeout", "unknown"]),
  lastSeen: Timestamp.nullable(),
  connections: z.int(),
});
export const TunnelConnection = z.object({
  id: z.string(),
  nodeId: z.string(),
  openedAt: Timestamp,
  clientVersion: z.string().nullable(),
  kind: z.enum(["raw", "websocket"]),
});

/** A service that is a unix socket: `unix:` and its path below the agent's folder, in `apps` or `sockets`. No part of it is `.` or `..`. */
export const UNIX_SERVICE: RegExp = /^unix:(apps|sockets)((?:\/(?!\.{1,2}(?:\/|$))[\w.-]{1,100}){1,8})$/;

/** A tunnel as its device's agent reads it. */
export const DesiredTunnel = z.object({
  tunnelId: TunnelId,
  service: z.string().describe("The URL to which the agent connects, such as `http://127.0.0.1:3000`, `tcp://127.0.0.1:5432` or `unix:sockets/shop.sock`."),
});
export type DesiredTunnel = z.infer<typeof DesiredTunnel>;
export const ReportedTunnel = z.object({
  tunnelId: TunnelId,
  state: z.enum(["up", "failed"]),
  reason: z.string().max(64).optional().describe("Why the service cannot be reached: `refused`, `timeout`, `unreachable` or `not_allowed`."),
});
export type ReportedTunnel = z.infer<typeof ReportedTunnel>;
