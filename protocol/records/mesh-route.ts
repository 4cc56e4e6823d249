// Mesh routes: networks, names and hosts that some devices reach by way of others.
import { z } from "zod";
import { Tag } from "../kit/device-selector.ts";
import { DeviceId, MeshRouteId, ref, TenantId } from "../kit/ids.ts";

const Timestamp = z.iso.datetime();
const Port = z.int().min(1).max(65_535);

export const MESH_ROUTE_KINDS = ["subnet", "domain", "host"] as const;
export const MeshRouteKind = z.enum(MESH_ROUTE_KINDS);
export const MeshRouteStatus = z
  .enum(["active", "degraded", "down", "disabled"])
  .describe("`degraded`: a router does not answer, and another one does. `down`: no router answers, or the route is not approved.");
export type MeshRouteStatus = z.infer<typeof MeshRouteStatus>;
export const MeshRouteApproval = z.enum(["pending", "approved", "rejected"]);

const Consumers = z.strictObject({
  deviceIds: z.array(ref("dev")).max(100).default([]),
  tags: z.array(Tag).max(50).default([]),
  fleetIds: z.array(ref("flt")).max(50).default([]),
  all: z.boolean().default(false).describe("All devices of the tenant."),
});
export const MeshConsumers = Consumers.refine(
  ({ deviceIds, tags, fleetIds, all }) => all || deviceIds.length + tags.length + fleetIds.length > 0,
  "must name at least one device, tag or fleet, or all",
).describe("The devices with one of these ids, those with one of these tags, and those of these fleets. A router of the route is never one.");
export type MeshConsumers = z.infer<typeof MeshConsumers>;

const RouterInput = z.strictObject({
  deviceId: ref("dev"),
  metric: z.int().min(1).max(9_999).default(100).describe("Of the routers that answer, the one with the lowest metric is taken."),
});
const Probe = z.strictObject({ host: z.string().min(1).max(253), port: Port });

/** What people decide about a route. */
export const MESH_ROUTE_INPUT = {
  name: z.string().trim().min(1).max(100),
  kind: MeshRouteKind,
  network: z.string().min(1).max(64).optional().describe("Of kind `subnet`: in CIDR form, such as `192.168.10.0/24`."),
  domains: z
    .array(z.string().min(1).max(253))
    .min(1)
    .max(32)
    .optional()
    .describe("Of kind `domain`: names, or `*.name` for all names below it. The router resolves them."),
  host: z.string().min(1).max(253).optional().describe("Of kind `host`: an address, or a name that the router resolves. `127.0.0.1` is the router itself."),
  port: Port.optional().describe("Of kind `host`."),
  routers: z.array(RouterInput).max(10),
  consumers: MeshConsumers,
  listenPort: Port.nullable().optional().describe("Of kind `host`: consumers listen here on 127.0.0.1, and what connects there reaches the host."),
  probe: Probe.nullable()
    .optional()
    .describe(
      "Of kinds `subnet` and `domain`: what routers connect to every ten seconds to show that they reach the network, an address or a name in it. Without it only the way to the router is tried. Of kind `host` that is the host.",
    ),
  enabled: z.boolean().optional().describe("Default: true."),
  allowPublic: z.boolean().optional().describe("Allows addresses that are not private. Needs `mesh:approve`."),
  masquerade: z.literal(true).optional().describe("The target always sees the router's address."),
} as const;

const Usage = z.object({
  connections: z.int().describe("Since the route was created."),
  bytesIn: z.int().describe("From consumers to the network."),
  bytesOut: z.int().describe("From the network to consumers."),
  lastUsedAt: Timestamp.nullable(),
});

export const MeshRoute = z.object({
  routeId: MeshRouteId,
  tenantId: TenantId,
  name: z.string(),
  kind: MeshRouteKind,
  network: z.string().nullable(),
  domains: z.array(z.string()),
  host: z.string().nullable(),
  port: z.int().nullable(),
  routers: z.array(
    z.object({
      deviceId: DeviceId,
      metric: z.int(),
      state: z.enum(["unknown", "up", "down"]).describe("What the last probes through it have shown; `unknown` before the first."),
      reason: z.string().nullable().describe("Why the last probe failed: `offline`, `unknown`, `not_allowed`, `refused`, `timeout`, `unreachable` or `full`."),
      checkedAt: Timestamp.nullable(),
    }),
  ),
  consumers: Consumers,
  transport: z.literal("userspace").describe("Connections go through the gateway, which sees their bytes. No device needs root, and no routing table changes."),
  masquerade: z.literal(true).describe("The target sees the router's address."),
  listenPort: z.int().nullable(),
  probe: Probe.nullable(),
  enabled: z.boolean(),
  allowPublic: z.boolean(),
  approval: MeshRouteApproval,
  decidedBy: z.string().nullable().describe("Who approved or rejected it."),
  status: MeshRouteStatus,
  activeRouter: DeviceId.nullable(),
  since: Timestamp.describe("Since when it has had this status and this router."),
  overlaps: z.array(MeshRouteId).describe("Routes to a part of the same network, or to all of it. The longest prefix wins."),
  usage: Usage,
  createdBy: z.string(),
  advertisedBy: DeviceId.nullable().describe("The device that offered to lead there. `null`: none did, somebody created the route."),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type MeshRoute = z.infer<typeof MeshRoute>;

export const MeshPeer = z.object({
  deviceId: DeviceId,
  routes: z.array(MeshRouteId).describe("The routes in which it is a router."),
  connected: z.boolean().describe("Its agent keeps a carrier open."),
});
export type MeshPeer = z.infer<typeof MeshPeer>;

export const EffectiveRoute = z.object({
  routeId: MeshRouteId,
  name: z.string(),
  kind: MeshRouteKind,
  target: z.string().describe("The network, the names, or host and port."),
  role: z.enum(["consumer", "router"]),
  listenPort: z.int().nullable(),
  router: DeviceId.nullable().describe("The router through which connections go now."),
  usable: z.boolean(),
  reason: z.enum(["pending", "rejected", "disabled", "no_router", "not_active_router"]).nullable().describe("Why not; null if it is usable."),
});
export type EffectiveRoute = z.infer<typeof EffectiveRoute>;

/** Networks that the device of an agent offers to lead to. */
export const AdvertisedNetworks = z.array(z.string().min(1).max(64)).max(10);
/** One of them that does not become a route. */
export const RefusedNetwork = z.object({
  network: z.string(),
  reason: z
    .string()
    .describe("As in MESH_NETWORK_NOT_ALLOWED, or `conflict`: there is a route to it already, or `plan_limit`: the plan allows no more routes."),
});
export type RefusedNetwork = z.infer<typeof RefusedNetwork>;

/** A route as the agents of its routers and consumers read it. */
export const DesiredMeshRoute = z.object({
  routeId: MeshRouteId,
  role: z.enum(["consumer", "router"]),
  kind: MeshRouteKind,
  network: z.string().nullable(),
  domains: z.array(z.string()),
  host: z.string().nullable(),
  port: z.int().nullable(),
  allowPublic: z.boolean(),
  listenPort: z.int().nullable().describe("A consumer listens here."),
});
export type DesiredMeshRoute = z.infer<typeof DesiredMeshRoute>;
