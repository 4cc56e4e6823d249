// How devices are listed and counted: filters, orders and groups.
import { z } from "zod";
import { Moment } from "../../kit/bounds.ts";
import { Tag } from "../../kit/device-selector.ts";
import { EventVersion } from "../../kit/event.ts";
import { ref } from "../../kit/ids.ts";
import { listQuery } from "../../kit/page.ts";
import { Connectivity, DeviceStatus } from "./device-events.ts";

const Tags = z.array(Tag).min(1).max(20).optional();
const Text = z.string().min(1).max(100).optional();
export const DeviceList = listQuery({
  sort: ["createdAt", "name", "status", "agentVersion", "platform", "lastSeen"],
  // It stands in a table of its own, which one raw statement sorts.
  alone: ["lastSeen"],
  by: "-createdAt",
  filters: {
    status: DeviceStatus.optional().describe("Only devices with this status."),
    tag: Tags.describe("Only devices with all of these tags, separated by commas."),
    notTag: Tags.describe("Only devices with none of these tags, separated by commas."),
    deploymentId: ref("dep").optional(),
    q: Text.describe("Only devices whose name or hostname contains this text."),
    platform: Text.describe("Only devices with this platform."),
    agentVersion: Text.describe("Only devices whose agent has this version."),
    connectivity: Connectivity.optional().describe("Only devices that are connected in this way."),
    seenBefore: Moment.optional().describe("Only devices that were last seen before this time."),
    createdAfter: Moment.optional().describe("Only devices that were paired at this time or later."),
    createdBefore: Moment.optional().describe("Only devices that were paired before this time."),
  },
});
export type DeviceQuery = z.output<typeof DeviceList>;

export const DeviceCounts = z.object({
  groupBy: z.enum(["status", "version", "platform", "tag"]),
  total: z.int().describe("All devices. A device with several tags counts in the group of each."),
  groups: z.array(z.object({ value: z.string().nullable(), count: z.int() })).describe("The 200 largest groups. `null`: devices without this value."),
  version: EventVersion,
});
export type DeviceCounts = z.infer<typeof DeviceCounts>;
