// Imports: a file of what a tenant should have, which becomes a plan that people read, and then exactly that plan is carried out.
import { z } from "zod";
import { event } from "../kit/event.ts";
import { id, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { named } from "../records/actor.ts";
import { EXPORT_SCOPES, ExportScope } from "./data-exports.ts";

const Timestamp = z.iso.datetime();
export const ImportStatus = z.enum(["uploading", "validating", "ready", "applying", "completed", "completed_with_errors", "failed", "cancelled"]);
export type ImportStatus = z.infer<typeof ImportStatus>;
export const ImportAction = z.enum(["create", "update", "unchanged", "skip", "refuse", "delete"]);
export type ImportAction = z.infer<typeof ImportAction>;
/** The most bytes of a document that comes with the call. */
export const MAX_DOCUMENT_BYTES = 1_048_576;
/** The most bytes of one part of an upload, and of all of them. */
export const MAX_UPLOAD_PART_BYTES = 4_194_304;
export const MAX_UPLOAD_BYTES = 104_857_600;
/** In base64, as tRPC sends a part. */
const MAX_PART_TEXT = Math.ceil(MAX_UPLOAD_PART_BYTES / 3) * 4;

const Mode = z
  .enum(["merge", "replace", "dry_run"])
  .describe(
    "`replace`: also deletes what a kind of the document has here and the document lacks, after all else; only owners may. `dry_run`: makes a plan that nobody can apply.",
  );
const Conflict = z
  .enum(["fail", "skip", "overwrite"])
  .describe("What happens to a record that is there and differs: the line is refused, left out, or changes the record.");
const counts = z.partialRecord(ImportAction, z.int());

export const Import = z.object({
  importId: id("imt"),
  tenantId: TenantId,
  format: z.enum(["export", "manifest"]).describe("`export`: the lines of a data export; `manifest`: YAML that people write."),
  origin: z
    .enum(["written", "this", "foreign"])
    .describe("`this`: this installation has signed it, and nobody has changed it since. `foreign`: another one has. `written`: a manifest."),
  mode: Mode,
  conflict: Conflict,
  sendInvites: z.boolean(),
  lenient: z.boolean(),
  status: ImportStatus,
  statusReason: z.string().nullable().describe("Why it failed, in words."),
  upload: z
    .object({ receivedBytes: z.int(), sizeBytes: z.int().nullable() })
    .nullable()
    .describe("How much of the file has come, and how long it is; `null` if the document came with the call."),
  deletesToConfirm: z
    .int()
    .nullable()
    .describe("How many records the plan deletes, if they are more than a tenth of their kind: `apply` needs this number as `confirmDeletes`."),
  planHash: z.string().nullable().describe("Names the plan. `apply` carries out this one and no other."),
  lines: z.int().describe("The records of the document, and those that the plan deletes."),
  counts: counts.describe("The lines of the plan by what is to be done."),
  applied: z.object({ succeeded: z.int(), failed: z.int() }).describe("How far it has been carried out."),
  createdBy: z.string(),
  createdAt: Timestamp,
  readyAt: Timestamp.nullable(),
  completedAt: Timestamp.nullable(),
  expiresAt: Timestamp.describe("A plan that has not been applied by then is cancelled."),
});
export type Import = z.infer<typeof Import>;

export const ImportLine = z.object({
  n: z.int().describe("From 1, in the order in which they are carried out."),
  line: z.int().nullable().describe("In the document; `null` for a record that it lacks."),
  kind: z.string(),
  key: z.string().describe("What names the record among others of its kind."),
  action: ImportAction,
  code: z.string().nullable().describe("Why it is skipped or refused, or why carrying it out failed."),
  message: z.string().nullable(),
  changes: z.array(z.object({ field: z.string(), from: z.unknown(), to: z.unknown() })).describe("Fields that differ. Values that may be secrets are `***`."),
  recordId: z.string().nullable().describe("Of the record that is there, or that was made."),
  status: z.enum(["pending", "succeeded", "failed"]).describe("Whether it has been carried out."),
});
export type ImportLine = z.infer<typeof ImportLine>;

const one = z.strictObject({ importId: ref("imt") });
const write = { auth: ["user", "apiKey"], permission: "import:write" } as const;
const Told = z.object({ importId: id("imt"), status: ImportStatus, succeeded: z.int(), failed: z.int() });

export const imports = group({
  tag: "Data Export",
  records: { Import, ImportLine },
  operations: {
    manifest: query({
      auth: ["user", "apiKey"],
      permission: "export:create",
      summary: "Write the tenant as a manifest",
      rest: ["GET /export"],
      plain: { type: "application/yaml; charset=utf-8", filename: "mooring.yaml" },
      input: z.strictObject({
        format: z.literal("manifest").default("manifest").describe("The only one. `POST /v1/exports` makes the others."),
        scopes: z.array(ExportScope).min(1).max(EXPORT_SCOPES.length).optional().describe("Default: all that a manifest has and you may read."),
      }),
      output: z.string(),
      errors: ["EXPORT_TOO_LARGE"],
    }),
    list: query({
      ...write,
      summary: "List imports",
      rest: ["GET /imports"],
      list: "page",
      input: listQuery({ sort: ["createdAt"], by: "-createdAt" }),
      output: paged(named(Import)),
    }),
    create: mutation({
      ...write,
      summary: "Plan an import",
      rest: ["POST /imports"],
      status: 201,
      location: "/imports/{importId}",
      maxBodyBytes: 2 * MAX_DOCUMENT_BYTES,
      input: z.strictObject({
        document: z
          .string()
          .min(1)
          .max(MAX_DOCUMENT_BYTES)
          .optional()
          .describe("A manifest in YAML, or the lines of a data export, uncompressed. Without it, `upload` takes the file of a data export."),
        mode: Mode.default("merge"),
        conflict: Conflict.default("fail"),
        sendInvites: z.boolean().default(false).describe("Members of the file who are none here are invited. Without it their lines are skipped."),
        lenient: z.boolean().default(false).describe("Fields that nobody knows are left out instead of refusing their line."),
      }),
      output: Import,
      errors: ["IMPORT_INVALID", "IMPORT_VERSION_UNSUPPORTED", "IMPORT_IN_PROGRESS"],
    }),
    upload: mutation({
      ...write,
      summary: "Send the file of an import, or its next part",
      rest: ["POST /imports/{importId}/upload"],
      maxBodyBytes: MAX_UPLOAD_PART_BYTES,
      rawBody: "part",
      rawType: "application/gzip",
      headers: { contentRange: "content-range" },
      input: one.extend({
        contentRange: z
          .string()
          .max(100)
          .optional()
          .describe("The bytes that the body has, and the size of the file, such as `bytes 0-4194303/9000000`. Default: the body is the whole file."),
        part: z.base64().min(4).max(MAX_PART_TEXT).describe("Bytes of a data export as it was downloaded: gzip'd NDJSON."),
      }),
      output: Import,
      errors: ["IMPORT_NOT_FOUND", "IMPORT_UPLOAD_OFFSET", "IMPORT_UPLOAD_INVALID", "INVALID_STATE_TRANSITION"],
    }),
    get: query({ ...write, summary: "Get an import", rest: ["GET /imports/{importId}"], input: one, output: named(Import), errors: ["IMPORT_NOT_FOUND"] }),
    wait: query({
      ...write,
      summary: "Wait until an import has one of several states",
      rest: ["GET /imports/{importId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: one.extend(awaitedFields(ImportStatus)),
      output: named(Import),
      errors: ["IMPORT_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    report: query({
      ...write,
      summary: "List the lines of an import's plan",
      rest: ["GET /imports/{importId}/report"],
      list: "page",
      input: listQuery({
        sort: ["n"],
        by: "n",
        filters: {
          importId: ref("imt"),
          action: z.array(ImportAction).max(6).optional().describe("Only lines with one of these actions."),
          status: z.enum(["pending", "succeeded", "failed"]).optional().describe("Only lines that have been carried out so."),
        },
      }),
      output: paged(ImportLine),
      errors: ["IMPORT_NOT_FOUND"],
    }),
    apply: mutation({
      ...write,
      summary: "Carry out the plan of an import",
      rest: ["POST /imports/{importId}/apply"],
      input: one.extend({
        planHash: z.string().length(64).describe("Of the plan that you have read."),
        confirmDeletes: z.int().min(0).max(2_147_483_647).optional().describe("The number of `deletesToConfirm`."),
      }),
      output: Import,
      errors: [
        "IMPORT_NOT_FOUND",
        "IMPORT_IN_PROGRESS",
        "IMPORT_PLAN_CHANGED",
        "IMPORT_DELETES_UNCONFIRMED",
        "INVALID_STATE_TRANSITION",
        "REAUTHENTICATION_REQUIRED",
      ],
    }),
    remove: mutation({
      ...write,
      summary: "Stop an import, or forget it",
      rest: ["DELETE /imports/{importId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["IMPORT_NOT_FOUND"],
    }),
  },
  events: {
    completed: event("import.completed", Told, "An import has been carried out"),
    failed: event("import.failed", Told, "An import failed"),
  },
});
