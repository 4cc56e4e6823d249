// The portal's live feed: device and command status as they change, over a tRPC subscription.
import { z } from "zod";
import { event } from "../kit/event.ts";
import { group, subscription } from "../kit/operation.ts";

export const LiveEvent = z.object({
  id: z
    .string()
    .nullable()
    .describe("Where the stream stands after this event. Pass it as `lastEventId` to resume there. Null for hints, which are never replayed."),
  type: z.string(),
  subjectId: z.string().describe("Id of the device, command or other thing that the event is about."),
  at: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
});
export type LiveEvent = z.infer<typeof LiveEvent>;

/**
 * Why events are missing. `unknown_position`: the tenant has no event of that id, or no longer; `too_many`: more were missed than a stream
 * replays; `expired`: some of what was missed is older than the installation keeps.
 */
export const GAP_REASONS = ["unknown_position", "too_many", "expired"] as const;
export const StreamGap = z.object({
  reason: z.enum(GAP_REASONS),
  missed: z.int().nullable().describe("How many events are missing; null when nobody can tell."),
});
export type StreamGap = z.infer<typeof StreamGap>;

export const live = group({
  tag: "General",
  operations: {
    watch: subscription({
      summary: "Watch the tenant's events",
      description:
        "The stream begins with `stream.position`, or with `stream.gap` when it cannot resume where it was asked to: then read the lists again. Both come whatever `types` says. Close a stream that nobody watches: a node serves only so many per tenant and per credential, and answers 429 `STREAM_LIMIT_REACHED` beyond.",
      auth: ["user", "apiKey"],
      permission: "event:read",
      input: z.strictObject({
        types: z
          .array(z.string().regex(/^[a-z_]+\.(\*|[a-z_]+)$/))
          .max(50)
          .optional()
          .describe("Event types to show, such as `command.completed` or `device.*`; default all."),
        deviceId: z.string().max(128).optional().describe("Show only what concerns this device."),
        lastEventId: z.string().max(128).nullish().describe("Resume after this event."),
      }),
      output: LiveEvent,
      errors: ["STREAM_LIMIT_REACHED"],
    }),
  },
  events: {
    position: event("stream.position", z.object({}), "Where the stream stands; nothing is missing before it", { durable: false }),
    gap: event("stream.gap", StreamGap, "Events are missing here; read the lists again", { durable: false }),
  },
});
