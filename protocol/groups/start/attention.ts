// What needs somebody now, over all features.
import { z } from "zod";
import { group, query } from "../../kit/operation.ts";
import { AttentionLine, AttentionList } from "../../records/attention.ts";

export const attention = group({
  tag: "Overview",
  records: { AttentionLine },
  operations: {
    list: query({
      summary: "List what needs attention, the worst first",
      rest: ["GET /attention"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      list: "plain",
      input: z.strictObject({}),
      output: AttentionList,
    }),
  },
});
