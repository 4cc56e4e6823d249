// The portal's live feed: device and command status as they change, over a tRPC subscription.
import { z } from "zod";
import { group, subscription } from "../kit/operation.ts";

/** `id` resumes the stream where it broke; hints (durable false) carry none. A gap is always healed by reading again. */
export const LiveEvent = z.object({
  id: z.string().nullable(),
  type: z.string(),
  subjectId: z.string(),
  at: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
});
export type LiveEvent = z.infer<typeof LiveEvent>;

export const live = group({
  tag: "General",
  operations: {
    watch: subscription({
      summary: "Watch the tenant's events",
      auth: ["user", "apiKey"],
      permission: "event:read",
      input: z.strictObject({
        types: z
          .array(z.string().regex(/^[a-z_]+\.(\*|[a-z_]+)$/))
          .max(50)
          .optional()
          .describe("device.*, command.completed …"),
        deviceId: z.string().max(128).optional(),
        lastEventId: z.string().max(128).nullish(),
      }),
      output: LiveEvent,
    }),
  },
});
