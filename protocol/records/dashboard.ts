// What a tenant's start page shows, in the two forms of the interface.
import { z } from "zod";

const count = z.int().min(0);
export const ResourceCounts = z.object({ devices: count, apps: count, deployments: count, backups: count });
export type ResourceCounts = z.infer<typeof ResourceCounts>;

const Activity = z.object({ eventId: z.string(), type: z.string(), subjectId: z.string(), at: z.iso.datetime(), data: z.record(z.string(), z.unknown()) });

export const Dashboard = z.object({
  deployments: z.object({ total: count, active: count, failed: count }),
  apps: z.object({ total: count, running: count, stopped: count }),
  devices: z.object({ total: count, online: count, offline: count, provisioning: count }),
  recentActivity: z.array(Activity).describe("The newest events, newest first, at most 20."),
  counts: ResourceCounts,
});
export type Dashboard = z.infer<typeof Dashboard>;
