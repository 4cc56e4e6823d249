// Mesh routes: devices reach networks and hosts by way of other devices, through the gateway, once somebody has approved it.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { command } from "../kit/command-type.ts";
import { event } from "../kit/event.ts";
import { DeviceId, MeshRouteId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import { EffectiveRoute, MESH_ROUTE_INPUT, MeshPeer, MeshRoute, MeshRouteApproval, MeshRouteStatus } from "../records/mesh-route.ts";

const one = z.strictObject({ routeId: ref("mrt") });
const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "mesh:read" } as const;
const RouteEvent = z.object({ routeId: MeshRouteId, name: z.string() });
const JUDGED = ["DEVICE_NOT_FOUND", "FLEET_NOT_FOUND", "MESH_NETWORK_NOT_ALLOWED", "MESH_ROUTER_REQUIRED", "MESH_ROUTE_CONFLICT"] as const;

export const meshRoutes = group({
  tag: "Mesh Routes",
  records: { MeshRoute, MeshPeer, EffectiveRoute },
  operations: {
    list: query({
      ...read,
      summary: "List mesh routes",
      rest: ["GET /mesh-routes"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name"],
        by: "-createdAt",
        filters: {
          approval: MeshRouteApproval.optional().describe("Only routes with this approval."),
          status: MeshRouteStatus.optional().describe("Only routes with this status."),
          q: z.string().min(1).max(100).optional().describe("Only routes whose name, network or host contains this text."),
        },
      }),
      output: paged(named(MeshRoute)),
    }),
    create: mutation({
      ...people,
      permission: "mesh:create",
      summary: "Create a mesh route",
      rest: ["POST /mesh-routes"],
      status: 201,
      location: "/mesh-routes/{routeId}",
      input: z.strictObject(MESH_ROUTE_INPUT),
      output: MeshRoute,
      errors: [...JUDGED, "PLAN_LIMIT_EXCEEDED"],
    }),
    get: query({
      ...read,
      summary: "Get a mesh route",
      rest: ["GET /mesh-routes/{routeId}"],
      input: one,
      output: named(MeshRoute),
      errors: ["MESH_ROUTE_NOT_FOUND"],
    }),
    update: mutation({
      ...people,
      permission: "mesh:update",
      summary: "Change a mesh route",
      rest: ["PATCH /mesh-routes/{routeId}"],
      input: z
        .strictObject(MESH_ROUTE_INPUT)
        .omit({ kind: true })
        .partial()
        .extend({ ...one.shape, version: Version.optional() }),
      output: MeshRoute,
      errors: ["MESH_ROUTE_NOT_FOUND", "VERSION_CONFLICT", ...JUDGED],
    }),
    remove: mutation({
      ...people,
      permission: "mesh:delete",
      summary: "Delete a mesh route",
      rest: ["DELETE /mesh-routes/{routeId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["MESH_ROUTE_NOT_FOUND"],
    }),
    approve: mutation({
      ...people,
      permission: "mesh:approve",
      summary: "Approve a mesh route",
      rest: ["POST /mesh-routes/{routeId}/approve"],
      input: one.extend({ version: Version.optional().describe("The version that was looked at.") }),
      output: MeshRoute,
      errors: ["MESH_ROUTE_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    reject: mutation({
      ...people,
      permission: "mesh:approve",
      summary: "Reject a mesh route",
      rest: ["POST /mesh-routes/{routeId}/reject"],
      input: one,
      output: MeshRoute,
      errors: ["MESH_ROUTE_NOT_FOUND"],
    }),
    peers: query({
      ...read,
      summary: "List the routers of mesh routes",
      rest: ["GET /mesh/peers"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(MeshPeer) }),
    }),
    effective: query({
      ...read,
      summary: "Get the mesh routes of a device",
      rest: ["GET /mesh/effective"],
      list: "plain",
      input: z.strictObject({ deviceId: ref("dev").describe("Routes of which this device is a consumer or a router.") }),
      output: z.object({ items: z.array(EffectiveRoute) }),
      errors: ["DEVICE_NOT_FOUND"],
    }),
  },
  commands: {
    sync: command("mesh.sync", { summary: "Read the device's mesh routes again", payload: z.object({}), output: z.object({ routes: z.int() }) }),
  },
  events: {
    created: event("mesh_route.created", RouteEvent, "A mesh route was created and waits for approval"),
    updated: event("mesh_route.updated", RouteEvent.extend({ approval: MeshRouteApproval }), "A mesh route was changed"),
    approved: event("mesh_route.approved", RouteEvent, "A mesh route was approved"),
    rejected: event("mesh_route.rejected", RouteEvent, "A mesh route was rejected"),
    degraded: event("mesh_route.degraded", RouteEvent, "A router of a mesh route does not answer, and another one does"),
    down: event("mesh_route.down", RouteEvent, "No router of a mesh route answers"),
    recovered: event("mesh_route.recovered", RouteEvent, "All routers of a mesh route answer again"),
    failedOver: event("mesh_route.failed_over", RouteEvent.extend({ from: DeviceId, to: DeviceId }), "Connections of a mesh route go through another router"),
    deleted: event("mesh_route.deleted", RouteEvent, "A mesh route was deleted"),
  },
});
