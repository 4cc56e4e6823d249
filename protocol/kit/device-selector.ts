// The devices that a member, an API key or an invite is limited to.
import { z } from "zod";
import { ref } from "./ids.ts";

export const Tag = z.string().regex(/^[a-z0-9_.:-]{1,64}$/);

export const DeviceSelector = z
  .strictObject({
    deviceIds: z.array(ref("dev")).max(100).default([]),
    tags: z.array(Tag).max(50).default([]),
    fleetIds: z.array(ref("flt")).max(50).default([]),
  })
  .refine(({ deviceIds, tags, fleetIds }) => deviceIds.length + tags.length + fleetIds.length > 0, "must name at least one device, tag or fleet")
  .describe("Selects the devices with one of these ids, the devices with one of these tags, and the devices of these fleets.");
export type DeviceSelector = z.infer<typeof DeviceSelector>;
