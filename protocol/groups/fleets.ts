// Fleets: groups of devices. A static fleet names its devices; a dynamic one has those that match its selector at the moment.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { Tag } from "../kit/device-selector.ts";
import { event } from "../kit/event.ts";
import { FleetId, id, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import { DeviceStatus } from "../records/devices/device-events.ts";
import { DeviceList } from "../records/devices/device-list.ts";
import { Device } from "./devices.ts";

const Timestamp = z.iso.datetime();
const Name = z.string().trim().min(1).max(100);
const Text = z.string().min(1).max(100).nullable().default(null);

export const FleetSelector = z
  .strictObject({
    tags: z.array(Tag).max(50).default([]).describe("Devices with all of these tags."),
    platform: Text.describe("Devices with this platform."),
    agentVersion: Text.describe("Devices whose agent has this version."),
    status: DeviceStatus.nullable().default(null).describe("Devices with this status."),
  })
  .refine(
    ({ tags, platform, agentVersion, status }) => tags.length > 0 || (platform ?? agentVersion ?? status) !== null,
    "must name a tag, a platform, an agent version or a status",
  )
  .describe("Selects the devices that match everything it names, as the filters of `GET /devices` do.");
export type FleetSelector = z.infer<typeof FleetSelector>;

const Membership = z.enum(["static", "dynamic"]);

export const Fleet = z.object({
  fleetId: FleetId,
  tenantId: TenantId,
  name: z.string(),
  membership: Membership.describe("`static`: devices are added and removed one by one. `dynamic`: the devices that `selector` selects. It never changes."),
  selector: FleetSelector.nullable().describe("`null`: the fleet is static."),
  deviceCount: z.int().describe("The devices of the fleet that the caller sees."),
  updatePolicyId: id("upl").nullable().describe("How the fleet is updated. `null`: by rollouts with settings of their own."),
  activeRollouts: z.int().describe("The rollouts of the fleet that have started and not ended. With limited access: those that have one of your devices."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Fleet = z.infer<typeof Fleet>;

export const FleetSummary = z.object({
  fleetId: FleetId,
  deviceCount: z.int(),
  status: z.object({ online: z.int(), offline: z.int(), provisioning: z.int() }),
  agentVersions: z
    .array(z.object({ agentVersion: z.string().nullable(), count: z.int() }))
    .describe("The 100 most frequent. `null`: devices whose agent has not said its version."),
  compliance: z
    .object({
      updatePolicyId: id("upl"),
      target: z.string().describe("The version that the policy leads to now."),
      devices: z.int().describe("Those that it concerns."),
      have: z.int().describe("Those that run it, with the policy's configuration."),
      percent: z.number().nullable().describe("`null`: it concerns none."),
    })
    .nullable()
    .describe("How far the fleet is as its update policy wants it. `null`: it has no policy, or nobody knows the version that this leads to."),
});
export type FleetSummary = z.infer<typeof FleetSummary>;

const FleetEvent = z.object({ fleetId: FleetId, name: z.string() });
const one = z.strictObject({ fleetId: ref("flt") });
const device = one.extend({ deviceId: ref("dev") });

const read = { auth: ["user", "apiKey"], permission: "fleet:read" } as const;
const write = { auth: ["user", "apiKey"], permission: "fleet:write" } as const;

export const fleets = group({
  tag: "Fleet Management",
  records: { Fleet, FleetSummary },
  operations: {
    list: query({
      ...read,
      summary: "List fleets",
      rest: ["GET /fleets"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name"],
        by: "-createdAt",
        filters: {
          membership: Membership.optional().describe("Only static fleets, or only dynamic ones."),
          q: z.string().min(1).max(100).optional().describe("Only fleets whose name contains this text."),
        },
      }),
      output: paged(named(Fleet)),
    }),
    get: query({ ...read, summary: "Get a fleet", rest: ["GET /fleets/{fleetId}"], input: one, output: named(Fleet), errors: ["FLEET_NOT_FOUND"] }),
    create: mutation({
      ...write,
      summary: "Create a fleet",
      rest: ["POST /fleets"],
      status: 201,
      location: "/fleets/{fleetId}",
      input: z
        .strictObject({
          name: Name,
          deviceIds: z.array(ref("dev")).max(100).optional().describe("The first devices of a static fleet."),
          selector: FleetSelector.optional().describe("Makes the fleet dynamic."),
        })
        .refine(({ deviceIds, selector }) => deviceIds === undefined || selector === undefined, "give either deviceIds or selector"),
      output: Fleet,
      errors: ["DEVICE_NOT_FOUND", "PLAN_LIMIT_EXCEEDED"],
    }),
    update: mutation({
      ...write,
      summary: "Change a fleet",
      rest: ["PATCH /fleets/{fleetId}"],
      input: one.extend({
        name: Name.optional(),
        selector: FleetSelector.optional().describe("Replaces the selector of a dynamic fleet."),
        updatePolicyId: ref("upl").nullable().optional().describe("`null` takes it off."),
        version: Version.optional(),
      }),
      output: Fleet,
      errors: ["FLEET_NOT_FOUND", "FLEET_IN_USE", "UPDATE_POLICY_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      ...write,
      summary: "Delete a fleet",
      rest: ["DELETE /fleets/{fleetId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["FLEET_NOT_FOUND", "FLEET_IN_USE"],
    }),
    listDevices: query({
      ...read,
      summary: "List the devices of a fleet",
      rest: ["GET /fleets/{fleetId}/devices"],
      list: "page",
      input: DeviceList.safeExtend({ fleetId: ref("flt") }),
      output: paged(Device),
      errors: ["FLEET_NOT_FOUND"],
    }),
    addDevice: mutation({
      ...write,
      summary: "Add a device to a static fleet",
      rest: ["PUT /fleets/{fleetId}/devices/{deviceId}"],
      input: device,
      output: Fleet,
      errors: ["FLEET_NOT_FOUND", "DEVICE_NOT_FOUND"],
    }),
    removeDevice: mutation({
      ...write,
      summary: "Take a device out of a static fleet",
      rest: ["DELETE /fleets/{fleetId}/devices/{deviceId}"],
      status: 204,
      input: device,
      output: z.null(),
      errors: ["FLEET_NOT_FOUND", "DEVICE_NOT_FOUND"],
    }),
    summary: query({
      ...read,
      summary: "Count the devices of a fleet by status and agent version",
      rest: ["GET /fleets/{fleetId}/summary"],
      input: one,
      output: FleetSummary,
      errors: ["FLEET_NOT_FOUND"],
    }),
  },
  events: {
    created: event("fleet.created", FleetEvent, "A fleet was created"),
    updated: event(
      "fleet.updated",
      FleetEvent.extend({ changed: z.array(z.enum(["name", "selector", "devices", "updatePolicyId"])) }),
      "A fleet got another name, selector or update policy, or somebody added or removed a device",
    ),
    deleted: event("fleet.deleted", FleetEvent, "A fleet was deleted"),
  },
});
