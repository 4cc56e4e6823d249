// Guide to fleets.
import type { Guide } from "./guide.ts";
import { AT, device, IDS, shownWithActors } from "./records.ts";

const fleetId = "flt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const { deviceId } = IDS;
const fleet = {
  fleetId,
  tenantId: IDS.tenantId,
  name: "Lisbon",
  membership: "static",
  selector: null,
  deviceCount: 1,
  updatePolicyId: null,
  activeRollouts: 0,
  createdBy: `user:${IDS.userId}`,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const selector = { tags: ["site:lisbon"], platform: "linux", agentVersion: null, status: null };
const dynamic = { ...fleet, membership: "dynamic", selector };

export const fleets: Guide<"fleets"> = {
  list: {
    description:
      "Lists the tenant's fleets, newest first. A caller who is limited to some devices sees the fleets that have one of them, and counts no others.",
    input: { page: 1, pageSize: 20 },
    output: { items: [shownWithActors(fleet)], total: 1 },
  },
  get: { description: "Returns the fleet and the number of its devices.", input: { fleetId }, output: shownWithActors(fleet) },
  create: {
    description:
      "With `selector` the fleet is dynamic: a device belongs to it as long as it matches. Otherwise the fleet is static, with the devices that you name now and add later. Its kind never changes.",
    input: { name: "Lisbon", selector: { tags: ["site:lisbon"], platform: "linux" } },
    output: dynamic,
  },
  update: {
    description:
      "Changes only the fields that you send. Members and keys that are limited to the fleet see its new devices within seconds. While somebody is limited to the fleet, its selector cannot follow the status of devices (409 `FLEET_IN_USE`).",
    input: { fleetId, selector: { tags: ["site:lisbon"], platform: "linux" } },
    output: dynamic,
  },
  remove: {
    description:
      "Deletes the fleet; its devices stay. Answers 409 `FLEET_IN_USE` while a member, an API key that works or a pending invite is limited to it, and names them in `references`.",
    input: { fleetId },
  },
  listDevices: {
    description: "Takes the filters and orders of `GET /devices`.",
    input: { fleetId, status: "online" },
    output: { items: [device], total: 1 },
  },
  addDevice: { description: "Does nothing if the device belongs to the fleet already.", input: { fleetId, deviceId }, output: fleet },
  removeDevice: { description: "Does nothing if the device does not belong to the fleet.", input: { fleetId, deviceId } },
  summary: {
    description: "Counts the devices of the fleet that the caller sees.",
    input: { fleetId },
    output: {
      fleetId,
      deviceCount: 1,
      status: { online: 1, offline: 0, provisioning: 0 },
      agentVersions: [{ agentVersion: "1.4.0", count: 1 }],
      compliance: null,
    },
  },
};
