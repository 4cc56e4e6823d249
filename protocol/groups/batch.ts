// Several calls in one request, one after the other.
import { z } from "zod";
import { group, mutation, type Operation } from "../kit/operation.ts";

export const MAX_BATCH_ITEMS = 20;
/** Headers that an item may have; all others are those of the request around it. */
export const BATCH_ITEM_HEADERS = ["idempotency-key", "if-match", "traceparent"] as const;

const ItemId = z.string().regex(/^[\w.-]{1,64}$/);
const Path = z
  .string()
  .max(4_096)
  .regex(
    /^(?!\/(?:api\/)?v1(?:\/|$))(?!.*(?:\/\/|\/\.\.?(?:[/?]|$)|%2f|%5c|[\s\\#]))\//i,
    "must be a path relative to /v1, without a host, such as `/devices?limit=5`",
  )
  .describe("Below `/v1`, with its query, such as `/devices?limit=5`.");

const Item = z.strictObject({
  id: ItemId.describe("Names the item in the response and in `dependsOn`."),
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  path: Path,
  headers: z.partialRecord(z.enum(BATCH_ITEM_HEADERS), z.string().max(255)).default({}).describe("Names in lower case."),
  body: z.unknown().optional().describe("What a single call would send as JSON."),
  dependsOn: z
    .array(ItemId)
    .max(MAX_BATCH_ITEMS)
    .default([])
    .describe("Earlier items. If one of them fails, this one does not run: 409 `BATCH_DEPENDENCY_FAILED`."),
});
type Item = z.infer<typeof Item>;

/** What is wrong with an item among those before it. */
const faultOf = ({ id, method, body, dependsOn }: Item, before: ReadonlySet<string>): readonly [field: string, message: string] | null => {
  if (before.has(id)) return ["id", "is the id of an earlier item"];
  if (body !== undefined && method === "GET") return ["body", "must be absent for GET"];
  if (dependsOn.some((other) => !before.has(other))) return ["dependsOn", "must name earlier items"];
  return null;
};

/**
 * Whether a batch may contain this operation: one that answers soon with an envelope, for a caller who is signed in or has a key.
 * What has a stream, a file, a wait or a caller of its own kind stays outside, and so does what changes the session of the request itself.
 */
export const isBatchable = ({ kind, auth, permission, rest, rawBody, otlp, plain, maxWaitSeconds, status }: Operation): boolean =>
  kind !== "subscription" &&
  !auth.includes("public") &&
  (auth.includes("user") || auth.includes("apiKey")) &&
  permission !== "platform" &&
  rawBody === undefined &&
  otlp !== true &&
  plain === undefined &&
  maxWaitSeconds === undefined &&
  status !== 303 &&
  !rest.some((each) => /^\w+ \/(?:auth|batch|pairing)(?:\/|$)/.test(each));

const BatchAnswer = z.object({
  id: z.string(),
  status: z.int(),
  headers: z.record(z.string(), z.string()).describe("`x-request-id`, and where the single call has them `location`, `retry-after` and `idempotent-replayed`."),
  body: z.unknown().describe("The whole answer of the single call; `null` if it has none."),
});
const BatchResult = z.object({ responses: z.array(BatchAnswer).describe("In the order of the requests.") });

export const batch = group({
  tag: "Batch",
  records: { BatchAnswer, BatchResult },
  operations: {
    run: mutation({
      summary: "Make several calls in one request",
      rest: ["POST /batch"],
      auth: ["user", "apiKey"],
      permission: "self",
      tenancy: "optional",
      whileSuspended: true,
      whileImpersonated: true,
      idempotency: "none",
      input: z.strictObject({
        requests: z
          .array(Item)
          .min(1)
          .max(MAX_BATCH_ITEMS)
          .superRefine((items, context) => {
            const before = new Set<string>();
            for (const [at, item] of items.entries()) {
              const fault = faultOf(item, before);
              if (fault !== null) context.addIssue({ code: "custom", path: [at, fault[0]], message: fault[1] });
              before.add(item.id);
            }
          }),
        stopOnError: z.boolean().default(false).describe("After an item that fails, none runs."),
      }),
      output: BatchResult,
      errors: ["BATCH_PATH_NOT_ALLOWED", "BATCH_DEPENDENCY_FAILED", "BATCH_DEADLINE"],
    }),
  },
});
