// How a tenant is doing at one look.
import { z } from "zod";
import { BulkStatus } from "./bulk.ts";
import { RolloutStatus } from "./rollout.ts";

const Timestamp = z.iso.datetime();
const count = z.int().min(0);

/** Points of a day's line, and the seconds between two. */
export const DAY_POINTS = 48;
export const POINT_SECONDS = 86_400 / DAY_POINTS;

const line = (what: string) => z.array(z.number().nullable()).length(DAY_POINTS).describe(`${what}, the oldest first. \`null\`: nobody counted then.`);
export const OverviewDay = z.object({
  until: Timestamp.describe("Of the newest point."),
  stepSeconds: z.int().describe("From one point to the next."),
  online: line("Devices online"),
  offline: line("Devices offline"),
  appsInError: line("Apps in error"),
  commands: line("Commands queued since the point before"),
  freshBackups: line("Apps whose last good backup was at most 26 hours old"),
  lateBackups: line("Apps that are backed up, but not within the last 26 hours"),
});
export type OverviewDay = z.infer<typeof OverviewDay>;

export const OverviewGroup = z.object({
  tag: z.string().describe("The tag that its devices share."),
  devices: count,
  online: count,
  offline: count,
  provisioning: count.describe("Devices that never connected."),
  offlineSince: z
    .object({ first: Timestamp, last: Timestamp })
    .nullable()
    .describe("When the first and the last of those that are offline were seen. `null`: none is, or none was."),
});
export type OverviewGroup = z.infer<typeof OverviewGroup>;

export const OverviewGroups = z.object({
  key: z.string().nullable().describe("What the tags of the groups begin with, as in `site:porto`. `null`: no tag has such a form."),
  keys: z.array(z.string()).describe("All keys, the most used first, at most 20."),
  items: z.array(OverviewGroup).describe("Those with most devices offline first, at most 6."),
  total: count.describe("Groups of the key."),
});
export type OverviewGroups = z.infer<typeof OverviewGroups>;

export const OverviewChange = z.object({
  kind: z.enum(["rollout", "bulkOperation"]),
  id: z.string(),
  name: z.string().describe("Of a bulk operation without a name: what it does."),
  status: z.union([RolloutStatus, BulkStatus]),
  phase: count.nullable().describe("Of a rollout, from 1; 0 before its start."),
  phases: count.nullable(),
  done: count.describe("Devices, or other targets, that have ended, failed ones among them."),
  failed: count,
  total: count,
});
export type OverviewChange = z.infer<typeof OverviewChange>;

export const OverviewActivity = z.object({
  type: z.string().describe("Of the events."),
  count: z.int().min(1).describe("Events of the type within five minutes of each other are one line."),
  at: Timestamp.describe("Of the newest."),
  subject: z
    .object({ kind: z.enum(["device", "other"]), id: z.string(), name: z.string().nullable() })
    .nullable()
    .describe("Of a line that stands for one event."),
  tag: z.string().nullable().describe("What the devices of a line have in common."),
  data: z.record(z.string(), z.unknown()).describe("Of the newest event."),
});
export type OverviewActivity = z.infer<typeof OverviewActivity>;

export const SETUP_STEPS = ["certificate", "device", "app", "channel", "backup"] as const;

export const Overview = z.object({
  devices: z.object({ total: count, online: count, offline: count, provisioning: count }),
  apps: z.object({ total: count, error: count }).nullable().describe("`null`: the caller may not read apps."),
  commands: z
    .object({ open: count, overdue: count.describe("Open ones past their deadline.") })
    .nullable()
    .describe("`null`: the caller may not read commands."),
  day: OverviewDay.nullable().describe("The last 24 hours. `null`: the caller is limited to some devices, and these lines count all."),
  groups: OverviewGroups.describe("Devices by a part of their tags."),
  changes: z.array(OverviewChange).describe("Rollouts and bulk operations under way, the newest first, at most 5."),
  activity: z.array(OverviewActivity).describe("What happened last, newest first, at most 12 lines. Commands that succeeded are left out."),
  setup: z.object({
    done: z.array(z.enum(SETUP_STEPS)).describe("`channel`: somebody is told of alerts. `backup`: a policy saves apps."),
    hidden: z.boolean().describe("As in the tenant's settings."),
  }),
});
export type Overview = z.infer<typeof Overview>;
