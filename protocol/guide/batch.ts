// Guide to batches.
import type { Guide } from "./guide.ts";
import { AT, IDS } from "./records.ts";

const meta = (n: number) => ({ timestamp: AT, requestId: `req_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R-${n}` });

export const batch: Guide<"batch"> = {
  run: {
    description:
      "Makes up to 20 calls, one after the other, and answers 200 with the answer of each. Each item is a call of its own: with its own permission, rate limit, `Idempotency-Key`, audit record and request id. A batch is not atomic: what an item has changed stays if a later one fails.\n\nIf one path cannot be part of a batch, such as a stream, a download, a wait or `/auth`, the whole batch is refused with `BATCH_PATH_NOT_ALLOWED` before anything runs. Items for which 18 seconds or 4 MiB of answers leave no room get 503 `BATCH_DEADLINE`. Send an `Idempotency-Key` with each item that changes something, not with the batch.",
    input: {
      requests: [
        {
          id: "fleet",
          method: "POST",
          path: "/fleets",
          headers: { "idempotency-key": "fleet-lisbon-1" },
          body: { name: "Lisbon", selector: { tags: ["site:lisbon"] } },
        },
        { id: "devices", method: "GET", path: "/devices?tag=site:lisbon&limit=50", dependsOn: ["fleet"] },
      ],
      stopOnError: false,
    },
    output: {
      responses: [
        {
          id: "fleet",
          status: 201,
          headers: { "x-request-id": meta(1).requestId, location: "/v1/fleets/flt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R" },
          body: { success: true, data: { fleetId: "flt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", tenantId: IDS.tenantId, name: "Lisbon" }, meta: meta(1) },
        },
        {
          id: "devices",
          status: 200,
          headers: { "x-request-id": meta(2).requestId },
          body: { success: true, data: [], pagination: { page: 1, limit: 50, total: 0, totalPages: 0 }, meta: meta(2) },
        },
      ],
    },
  },
};
