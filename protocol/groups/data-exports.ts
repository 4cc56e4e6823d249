// Data exports: all that a tenant has, or parts of it, as one compressed text that another tenant can import.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { id, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, Pieces, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { named } from "../records/actor.ts";

/** In the order of the sections in the file: what a line refers to stands before it, as far as that is possible. */
export const EXPORT_SCOPES = [
  ...["settings", "update-policies", "fleets", "devices", "roles", "members", "deployments", "apps", "backup-destinations", "backup-policies"],
  ...["channels", "alert-rules", "silences", "webhooks", "views", "tunnels", "domains", "mesh-routes", "security-rules", "rates", "budgets"],
  ...["rollouts", "backups", "alerts", "events", "audit"],
] as const;
export const ExportScope = z.enum(EXPORT_SCOPES);
export type ExportScope = z.infer<typeof ExportScope>;

const Status = z.enum(["pending", "running", "completed", "failed", "cancelled", "expired"]);
export type DataExportStatus = z.infer<typeof Status>;
const Format = z.enum(["ndjson", "csv"]);

export const DataExport = z.object({
  exportId: id("exp"),
  tenantId: TenantId,
  scopes: z.array(ExportScope),
  format: Format,
  from: z.iso.datetime().nullable().describe("Events and audit records from this time on."),
  to: z.iso.datetime().nullable().describe("Events and audit records before this time."),
  status: Status,
  statusReason: z
    .enum(["ACCESS_LOST", "TOO_LARGE", "TOO_LONG", "INTERNAL_ERROR"])
    .nullable()
    .describe("Why it failed. `ACCESS_LOST`: its creator may not read all of it any more."),
  progress: z.object({ section: z.string().nullable(), lines: z.int() }).describe("The section that is being written, and the lines so far."),
  counts: z.record(z.string(), z.int()).describe("The records of each kind, as soon as its section is complete."),
  secretsMissing: z.record(z.string(), z.array(z.string())).describe("What records of a kind lack, because no export has secrets."),
  sizeBytes: z.int().describe("Of the compressed file."),
  sha256: z.string().nullable().describe("Of the compressed file, in hexadecimal, once it is complete."),
  downloadCount: z.int(),
  createdBy: z.string(),
  startedAt: z.iso.datetime().nullable(),
  completedAt: z.iso.datetime().nullable(),
  expiresAt: z.iso.datetime().nullable().describe("Until then it can be downloaded: 7 days after it was complete."),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type DataExport = z.infer<typeof DataExport>;

const DataExportLink = z.object({
  exportId: id("exp"),
  url: z.url().describe("Downloads the file, once, for everybody who has it."),
  expiresAt: z.iso.datetime().describe("15 minutes after it was made."),
});

const one = z.strictObject({ exportId: ref("exp") });
const common = { auth: ["user", "apiKey"], permission: "export:create" } as const;
const Told = z.object({ exportId: id("exp"), scopes: z.array(z.string()), sizeBytes: z.int(), statusReason: z.string().nullable() });

export const dataExports = group({
  tag: "Data Export",
  records: { DataExport, DataExportLink },
  operations: {
    list: query({
      ...common,
      summary: "List data exports",
      rest: ["GET /exports"],
      list: "page",
      input: listQuery({ sort: ["createdAt"], by: "-createdAt" }),
      output: paged(named(DataExport)),
    }),
    create: mutation({
      ...common,
      summary: "Export the tenant's data",
      rest: ["POST /exports"],
      status: 201,
      whileSuspended: true,
      location: "/exports/{exportId}",
      input: z
        .strictObject({
          scopes: z.array(ExportScope).min(1).max(EXPORT_SCOPES.length).optional().describe("Default: all."),
          format: Format.default("ndjson").describe("`csv` takes exactly one scope, and cannot be imported."),
          from: Moment.optional().describe("Events and audit records from this time on."),
          to: Moment.optional().describe("Events and audit records before this time."),
        })
        .superRefine(({ scopes, format, from, to }, context) => {
          const refuse = (path: string, message: string): void => context.addIssue({ code: "custom", path: [path], message });
          if (scopes !== undefined && new Set(scopes).size !== scopes.length) refuse("scopes", "names a scope twice");
          if (format === "csv" && scopes?.length !== 1) refuse("scopes", "must be one scope for csv");
          if (from !== undefined && to !== undefined && Date.parse(from) >= Date.parse(to)) refuse("to", "must be after from");
        }),
      output: DataExport,
      errors: ["EXPORT_IN_PROGRESS", "PLAN_LIMIT_EXCEEDED"],
    }),
    get: query({
      ...common,
      summary: "Get a data export",
      rest: ["GET /exports/{exportId}"],
      input: one,
      output: named(DataExport),
      errors: ["EXPORT_NOT_FOUND"],
    }),
    wait: query({
      ...common,
      summary: "Wait until a data export has one of several states",
      rest: ["GET /exports/{exportId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: one.extend(awaitedFields(Status)),
      output: named(DataExport),
      errors: ["EXPORT_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    download: query({
      ...common,
      summary: "Download a data export",
      rest: ["GET /exports/{exportId}/download"],
      plain: { type: "application/gzip", filename: "export.gz", pieces: true },
      headers: { range: "range" },
      responseHeaders: { "Accept-Ranges": "Always `bytes`.", "Content-Range": "With status 206, the bytes that follow, and how many there are in all." },
      input: one.extend({
        range: z.string().max(100).optional().describe("Such as `bytes=1048576-`, to go on after a break. Another form gets the whole file."),
      }),
      output: Pieces,
      errors: ["EXPORT_NOT_FOUND", "EXPORT_NOT_READY", "EXPORT_EXPIRED", "RANGE_NOT_SATISFIABLE"],
    }),
    link: mutation({
      ...common,
      summary: "Make a link that downloads a data export once",
      rest: ["POST /exports/{exportId}/link"],
      status: 201,
      whileSuspended: true,
      input: one,
      output: DataExportLink,
      errors: ["EXPORT_NOT_FOUND", "EXPORT_NOT_READY", "EXPORT_EXPIRED"],
    }),
    downloadByLink: query({
      auth: ["public"],
      permission: "public",
      tenancy: "none",
      limit: "anonymous",
      replay: "once",
      summary: "Download a data export by its link",
      rest: ["GET /export/file"],
      plain: { type: "application/gzip", filename: "export.gz", pieces: true },
      input: z.strictObject({ token: z.string().min(1).max(1_000).describe("Of the link.") }),
      output: Pieces,
      errors: ["EXPORT_LINK_INVALID", "EXPORT_EXPIRED"],
    }),
    remove: mutation({
      ...common,
      summary: "Cancel a data export, or delete it with its file",
      rest: ["DELETE /exports/{exportId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["EXPORT_NOT_FOUND"],
    }),
  },
  events: {
    completed: event("export.completed", Told, "A data export is ready for download"),
    failed: event("export.failed", Told, "A data export failed"),
  },
});
