// The devices that a member or an API key is limited to.
import { z } from "zod";
import { ref } from "./ids.ts";

export const Tag = z.string().regex(/^[a-z0-9_.:-]{1,64}$/);

export const DeviceSelector = z
  .strictObject({
    deviceIds: z.array(ref("dev")).max(100).default([]),
    tags: z.array(Tag).max(50).default([]),
  })
  .refine(({ deviceIds, tags }) => deviceIds.length + tags.length > 0, "must name at least one device or tag")
  .describe("Selects the devices with one of these ids and the devices with one of these tags. Fleets do not exist yet, so `fleetIds` is refused.");
export type DeviceSelector = z.infer<typeof DeviceSelector>;
