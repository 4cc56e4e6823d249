// How the whole tenant is doing.
import { z } from "zod";
import { group, query } from "../../kit/operation.ts";
import { Overview, OverviewActivity, OverviewChange, OverviewDay, OverviewGroup, OverviewGroups } from "../../records/overview.ts";

const GroupKey = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[^:]+$/, "must contain no colon")
  .optional()
  .describe("Groups devices by the tags that begin with it and a colon. Default: the key that most devices have.");

export const overview = group({
  tag: "Overview",
  records: { Overview, OverviewActivity, OverviewChange, OverviewDay, OverviewGroup, OverviewGroups },
  operations: {
    get: query({
      summary: "Get how the tenant is doing",
      rest: ["GET /overview"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      input: z.strictObject({ groupBy: GroupKey }),
      output: Overview,
    }),
  },
});
