// The live feed of a tenant's events, as a tRPC subscription.
import { z } from "zod";
import { hint } from "../kit/event.ts";
import { group, subscription } from "../kit/operation.ts";

export const LiveEvent = z.object({
  id: z
    .string()
    .nullable()
    .describe("Position of the stream after this event. Pass it as `lastEventId` to resume there. `null` for events that are never replayed."),
  version: z
    .int()
    .nullable()
    .describe("Grows by one with each durable event of the tenant. Compare it with the `version` of a summary. `null` for events that are never replayed."),
  type: z.string(),
  subjectId: z.string().describe("Id of the device, command or other resource that the event concerns."),
  at: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
});
export type LiveEvent = z.infer<typeof LiveEvent>;

const Subject = z.string().min(1).max(128);

/**
 * Why events are missing. `unknown_position`: the gateway has no such event, or no longer has it; `too_many`: the viewer missed more events
 * than a stream replays; `expired`: some missed events are older than the retention period.
 */
export const GAP_REASONS = ["unknown_position", "too_many", "expired"] as const;
export const StreamGap = z.object({
  reason: z.enum(GAP_REASONS),
  missed: z.int().nullable().describe("Number of missing events; `null` if it is unknown."),
});
export type StreamGap = z.infer<typeof StreamGap>;

export const Badges = z.object({
  alerts: z.int().nullable().describe("Open alerts that nobody has acknowledged, among those that the caller sees. `null`: the caller may not see alerts."),
});
export type Badges = z.infer<typeof Badges>;

export const live = group({
  tag: "General",
  operations: {
    watch: subscription({
      summary: "Watch the tenant's events",
      description:
        "The stream begins with `stream.position`, or with `stream.gap` if it cannot resume at `lastEventId`: then read the lists again. Both arrive regardless of `types`. The `data` of an event about a device or a command also contains `deviceName`, that of an event about a command the fields of its row in lists. `command.queued` and `command.changed` are never replayed: each replaces what you know of the command, unless it has ended. Close streams that you no longer show: a node limits the streams of a tenant and of a credential, and answers 429 `STREAM_LIMIT_REACHED` beyond that.",
      auth: ["user", "apiKey"],
      permission: "event:read",
      input: z.strictObject({
        types: z
          .array(z.string().regex(/^[a-z_]+\.(\*|[a-z_]+)$/))
          .max(50)
          .optional()
          .describe("Event types to send, such as `command.completed` or `device.*`. Default: all."),
        deviceId: Subject.optional().describe("Only events of this device; the same as one id in `deviceIds`."),
        deviceIds: z.array(Subject).min(1).max(100).optional().describe("Only events of these devices, and of `commandIds`."),
        commandIds: z.array(Subject).min(1).max(100).optional().describe("Only events of these commands, and of `deviceIds`."),
        sample: z.enum(["all", "terminal"]).default("all").describe("`terminal`: of commands only their ends, not every step."),
        seen: z
          .array(Subject)
          .min(1)
          .max(100)
          .optional()
          .describe(
            "Devices whose last contact, connection and metrics the stream also tells as `device.seen`, whatever the other filters: first their present state, then each when it changes, at most every 5 seconds.",
          ),
        badges: z
          .boolean()
          .default(false)
          .describe(
            "`true`: the stream also tells, whatever the other filters, what waits for the caller as `stream.badges`: first the present counts, then each change.",
          ),
        lastEventId: z.string().max(128).nullish().describe("Resume after this event."),
      }),
      output: LiveEvent,
      errors: ["STREAM_LIMIT_REACHED"],
    }),
  },
  events: {
    position: hint("stream.position", z.object({}), "The stream's current position; no event before it is missing"),
    badges: hint("stream.badges", Badges, "The number of things that wait for the viewer; only for viewers who ask with `badges`"),
    gap: hint("stream.gap", StreamGap, "Events are missing here; read the lists again"),
  },
});
