// Bulk operations: a person or a key orders one change of many devices, apps, backups or others, and follows it item by item.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { id, ref } from "../kit/ids.ts";
import { group, mutation, Pieces, query } from "../kit/operation.ts";
import { cursorQuery, listQuery, paged } from "../kit/page.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { named } from "../records/actor.ts";
import {
  BULK_PARAMS,
  BULK_TARGETS,
  BulkCounts,
  BulkItem,
  BulkItemStatus,
  BulkName,
  BulkOperation,
  BulkPreview,
  BulkRate,
  BulkStatus,
  BulkThreshold,
  targetOf,
} from "../records/bulk.ts";
import { FleetSelector } from "./fleets.ts";

/** One request's ids; more come by upload. */
const MAX_IDS = 10_000;
export const MAX_PART_BYTES = 4_194_304;
const MAX_PARTS = 100_000;
const ids = <const P extends string>(prefix: P) => z.array(ref(prefix)).min(1).max(MAX_IDS).optional().describe("An id that occurs again counts once.");
const Reason = z.string().trim().min(1).max(500);

const Target = z
  .strictObject({
    deviceIds: ids("dev"),
    appIds: ids("app"),
    deploymentIds: ids("dep"),
    alertIds: ids("alr"),
    backupIds: ids("bak"),
    tunnelIds: ids("tun"),
    fleetId: ref("flt").optional().describe("The devices that belong to the fleet when the operation begins."),
    selector: FleetSelector.optional().describe("The devices that match when the operation begins."),
    upload: z.literal(true).optional().describe("Makes a draft. Send the items in parts, and then start it."),
  })
  .refine((target) => Object.values(target).filter((value) => value !== undefined).length === 1, "give exactly one kind of target");

/** The field of `target` that names each kind by its ids. */
export const BULK_ID_FIELDS = {
  device: "deviceIds",
  app: "appIds",
  deployment: "deploymentIds",
  alert: "alertIds",
  backup: "backupIds",
  tunnel: "tunnelIds",
} as const;

const one = z.strictObject({ operationId: ref("blk") });
const read = { auth: ["user", "apiKey"], permission: "bulk:read" } as const;
const write = { auth: ["user", "apiKey"], permission: "bulk:write" } as const;
const CHANGE = ["BULK_OPERATION_NOT_FOUND", "INVALID_STATE_TRANSITION"] as const;

const Told = z.object({ operationId: id("blk"), operation: BulkName, name: z.string().nullable(), total: z.int() });
const Ended = Told.extend({ status: BulkStatus, statusReason: z.string().nullable(), counts: BulkCounts });

const asked = {
  operation: BulkName,
  target: Target,
  params: z.record(z.string().max(64), z.unknown()).default({}).describe("What the single call takes beside the id; see the guide."),
};
type Asked = Pick<z.output<z.ZodObject<typeof asked>>, keyof typeof asked>;

const checkAsked = ({ operation, target, params }: Asked, context: z.core.$RefinementCtx): void => {
  const refuse = (path: readonly PropertyKey[], message: string): void => context.addIssue({ code: "custom", path: [...path], message });
  const kind = targetOf(operation);
  for (const each of BULK_TARGETS) {
    const field = BULK_ID_FIELDS[each];
    if (each !== kind && target[field] !== undefined) refuse(["target", field], `${operation} takes ${BULK_ID_FIELDS[kind]}`);
  }
  for (const field of ["fleetId", "selector"] as const)
    if (kind !== "device" && target[field] !== undefined) refuse(["target", field], "selects devices, and this operation is about something else");
  const parsed = BULK_PARAMS[operation].safeParse(params);
  for (const { path, message } of parsed.error?.issues ?? []) refuse(["params", ...path], message);
};

const Creation = z
  .strictObject({
    ...asked,
    name: z.string().trim().min(1).max(100).optional(),
    await: z.enum(["ended", "ordered"]).default("ended").describe("`ordered`: an item has succeeded when its command is queued."),
    maxParallel: z.int().min(1).max(1_000).default(200).describe("The most items that have an open command at once."),
    failureThreshold: BulkThreshold.nullish().describe(
      "Default: none, and 10 percent for `device.delete`, `app.remove`, `deployment.delete` and `agent.update`. `null`: never stops.",
    ),
    rate: BulkRate.nullable().default(null),
    startAt: Moment.optional().describe("At most 30 days ahead."),
    expiresAt: Moment.optional().describe("At most 60 days ahead. Default: 7 days after it may start."),
  })
  .superRefine(checkAsked);

export const bulkOperations = group({
  tag: "Bulk Operations",
  records: { BulkOperation, BulkItem, BulkPreview },
  operations: {
    list: query({
      ...read,
      summary: "List bulk operations",
      rest: ["GET /bulk-operations"],
      list: "page",
      input: listQuery({
        sort: ["createdAt"],
        by: "-createdAt",
        filters: {
          status: z.array(BulkStatus).min(1).max(9).optional().describe("Only operations in one of these states, separated by commas."),
          operation: BulkName.optional().describe("Only operations of this kind."),
        },
      }),
      output: paged(named(BulkOperation)),
    }),
    create: mutation({
      ...write,
      summary: "Change many devices, apps, deployments, alerts, backups or tunnels",
      rest: ["POST /bulk-operations"],
      status: 201,
      location: "/bulk-operations/{operationId}",
      input: Creation,
      output: BulkOperation,
      errors: [
        ...["BULK_NO_TARGETS", "BULK_TARGET_LIMIT_EXCEEDED", "BULK_LIMIT_REACHED", "FLEET_NOT_FOUND", "DEPLOYMENT_NOT_FOUND"],
        ...["COMMAND_TYPE_UNKNOWN", "COMMAND_PAYLOAD_INVALID"],
      ] as const,
    }),
    preview: query({
      ...write,
      summary: "Count the targets of a bulk operation, and do nothing",
      rest: ["POST /bulk-operations/preview"],
      input: z.strictObject(asked).superRefine(checkAsked),
      output: BulkPreview,
      errors: ["FLEET_NOT_FOUND", "DEPLOYMENT_NOT_FOUND", "COMMAND_TYPE_UNKNOWN", "COMMAND_PAYLOAD_INVALID"],
    }),
    get: query({
      ...read,
      summary: "Get a bulk operation",
      rest: ["GET /bulk-operations/{operationId}"],
      input: one,
      output: named(BulkOperation),
      errors: ["BULK_OPERATION_NOT_FOUND"],
    }),
    wait: query({
      ...read,
      summary: "Wait until a bulk operation has one of several states",
      rest: ["GET /bulk-operations/{operationId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: one.extend(awaitedFields(BulkStatus)),
      output: named(BulkOperation),
      errors: ["BULK_OPERATION_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    listItems: query({
      ...read,
      summary: "List the items of a bulk operation",
      rest: ["GET /bulk-operations/{operationId}/items"],
      list: "cursor",
      input: cursorQuery({
        operationId: ref("blk"),
        status: z.array(BulkItemStatus).min(1).max(6).optional().describe("Only items in one of these states, separated by commas."),
        code: z.string().min(1).max(64).optional().describe("Only items with this code."),
      }),
      output: paged(BulkItem),
      errors: ["BULK_OPERATION_NOT_FOUND"],
    }),
    results: query({
      ...read,
      summary: "Download the results of a bulk operation, one line for each item",
      rest: ["GET /bulk-operations/{operationId}/results"],
      plain: { type: "application/x-ndjson; charset=utf-8", filename: "results.ndjson", pieces: true },
      input: one.extend({
        after: z.int().min(0).max(2_147_483_647).default(0).describe("Only items after this number."),
        follow: z.boolean().default(false).describe("`true`: waits for each item that has not ended, as long as the operation runs."),
      }),
      output: Pieces,
      errors: ["BULK_OPERATION_NOT_FOUND"],
    }),
    uploadItems: mutation({
      ...write,
      summary: "Send a part of the items of a draft",
      rest: ["POST /bulk-operations/{operationId}/items"],
      maxBodyBytes: MAX_PART_BYTES,
      rawBody: "lines",
      rawType: "application/x-ndjson",
      query: ["part", "sha256"],
      input: one.extend({
        part: z.int().min(1).max(MAX_PARTS).describe("The number of the part, from 1 without a gap. The same part may be sent again."),
        sha256: z
          .string()
          .regex(/^[0-9a-f]{64}$/)
          .describe("SHA-256 of the body, in hexadecimal."),
        lines: z.string().min(1).max(MAX_PART_BYTES).describe('NDJSON: a line `{"id": …}` for each item.'),
      }),
      output: z.object({
        operationId: id("blk"),
        part: z.int(),
        added: z.int().describe("The items that this part added; ids that occur again count once."),
        total: z.int().describe("The items of the operation."),
      }),
      errors: [...CHANGE, "BULK_PART_INVALID", "BULK_TARGET_LIMIT_EXCEEDED"],
    }),
    start: mutation({
      ...write,
      summary: "Start a draft whose items have been sent",
      rest: ["POST /bulk-operations/{operationId}/start"],
      input: one,
      output: BulkOperation,
      errors: [...CHANGE, "BULK_NO_TARGETS"],
    }),
    pause: mutation({
      ...write,
      summary: "Pause a bulk operation",
      rest: ["POST /bulk-operations/{operationId}/pause"],
      input: one.extend({ reason: Reason.optional() }),
      output: BulkOperation,
      errors: [...CHANGE],
    }),
    resume: mutation({
      ...write,
      summary: "Resume a paused bulk operation",
      rest: ["POST /bulk-operations/{operationId}/resume"],
      input: one,
      output: BulkOperation,
      errors: [...CHANGE],
    }),
    cancel: mutation({
      ...write,
      summary: "Cancel a bulk operation",
      rest: ["POST /bulk-operations/{operationId}/cancel"],
      input: one.extend({ reason: Reason }),
      output: BulkOperation,
      errors: [...CHANGE],
    }),
    retryFailed: mutation({
      ...write,
      summary: "Repeat the failed items in a new bulk operation",
      rest: ["POST /bulk-operations/{operationId}/retry-failed"],
      status: 201,
      location: "/bulk-operations/{operationId}",
      input: one.extend({ codes: z.array(z.string().min(1).max(64)).min(1).max(50).optional().describe("Only items that failed with one of these codes.") }),
      output: BulkOperation,
      errors: [...CHANGE, "BULK_NO_TARGETS", "BULK_TARGET_LIMIT_EXCEEDED", "BULK_LIMIT_REACHED"],
    }),
  },
  events: {
    started: event("bulk_operation.started", Told, "A bulk operation began"),
    completed: event("bulk_operation.completed", Ended, "A bulk operation ended, perhaps with errors, or was cancelled"),
    failed: event("bulk_operation.failed", Ended, "A bulk operation stopped because too many items failed"),
    paused: event("bulk_operation.paused", Ended, "A bulk operation was paused by a person, or because its creator lost the access that it needs"),
  },
});
