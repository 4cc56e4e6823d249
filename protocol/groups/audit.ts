// The audit log: who changed what, when and from where. The gateway writes one record with each change; nobody can change or delete one.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { id, ref } from "../kit/ids.ts";
import { group, Pieces, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";

const Columns = z.record(z.string(), z.unknown());
const Hash = z.string().regex(/^(?:[0-9a-f]{64})?$/);

export const AuditLog = z.object({
  auditId: id("aud"),
  tenantId: z.string().nullable().describe("Null for changes of the installation that concern no tenant."),
  sequence: z.int().min(1).describe("Consecutive within the tenant."),
  at: z.iso.datetime(),
  actor: z.object({
    type: z.enum(["user", "apiKey", "agent", "enrollmentToken", "operator", "impersonator", "anonymous"]),
    id: z.string(),
    email: z.string().nullable(),
    name: z.string().nullable().optional().describe("How the user, key or agent is called now. Absent in exports."),
    ip: z.string().nullable(),
    userAgent: z.string().nullable(),
  }),
  action: z.string().describe("The operation, such as `apiKeys.rotate`, or the operator's command, such as `cli.bootstrap`."),
  resource: z.object({ type: z.string(), id: z.string().nullable() }),
  changes: z
    .array(
      z.object({
        type: z.string(),
        id: z.string().nullable(),
        before: Columns.nullable().describe("Null for a new row; otherwise the columns that changed, as they were."),
        after: Columns.nullable().describe("Null for a deleted row."),
      }),
    )
    .describe("The rows that changed. Secrets are masked."),
  omitted: z.int().min(0).describe("How many more rows changed than `changes` shows."),
  outcome: z.enum(["success", "refused"]).describe("`refused`: the call was refused, but part of its effect stands."),
  code: z.string().nullable().describe("The error code of a refusal."),
  requestId: z.string().nullable(),
  hash: Hash.describe("SHA-256 of this record and of `previousHash`, in hexadecimal."),
  previousHash: Hash.describe("Hash of the tenant's previous record; empty in its first."),
});
export type AuditLog = z.infer<typeof AuditLog>;

const Format = z.enum(["ndjson", "csv"]);
export const AuditExport = z.object({
  format: Format,
  count: z.int().min(0),
  next: z.int().nullable().describe("Send it as `after` for the next part; null at the end."),
  content: z.string().describe("One record per line; CSV begins with a header."),
});
export type AuditExport = z.infer<typeof AuditExport>;

const Name = z.string().min(1).max(128);
const filters = {
  actor: Name.optional().describe("Id of the user, key, agent or token."),
  action: Name.optional().describe("The operation, such as `apiKeys.rotate`."),
  resource: Name.optional().describe("Id of a resource, or a type such as `api-keys`."),
  from: Moment.optional().describe("At this time or later."),
  to: Moment.optional().describe("Before this time."),
};

const order = { sort: ["sequence"], by: "-sequence" } as const;
const common = { auth: ["user", "apiKey"], permission: "audit:read" } as const;

export const audit = group({
  tag: "Audit",
  operations: {
    list: query({
      ...common,
      summary: "List audit records, newest first",
      rest: ["GET /audit-logs"],
      list: "page",
      input: listQuery({ ...order, filters }),
      output: paged(AuditLog),
    }),
    export: query({
      ...common,
      summary: "Export audit records, oldest first",
      rest: ["GET /audit-logs/export"],
      input: z.strictObject({
        ...filters,
        format: Format.default("ndjson").describe("Form of the lines in `content`."),
        after: z.int().min(0).max(2_147_483_647).default(0).describe("Only records after this sequence number: `next` of the part before."),
        max: z.int().min(1).max(5_000).default(1_000).describe("Maximum number of records in this part."),
      }),
      output: AuditExport,
    }),
    exportLines: query({
      ...common,
      summary: "Download audit records, oldest first",
      rest: ["GET /audit-logs/export.ndjson"],
      plain: { type: "application/x-ndjson; charset=utf-8", filename: "audit-logs.ndjson", pieces: true },
      input: z.strictObject({
        ...filters,
        after: z.int().min(0).max(2_147_483_647).default(0).describe("Only records after this sequence number."),
      }),
      output: Pieces,
    }),
    get: query({
      ...common,
      summary: "Get an audit record",
      rest: ["GET /audit-logs/{auditId}"],
      input: z.strictObject({ auditId: ref("aud") }),
      output: AuditLog,
      errors: ["AUDIT_LOG_NOT_FOUND"],
    }),
    listInstallation: query({
      auth: ["user"],
      permission: "platform",
      tenancy: "none",
      summary: "List audit records of the installation or of any tenant",
      rest: ["GET /admin/audit-logs"],
      list: "page",
      input: listQuery({ ...order, filters: { ...filters, tenant: Name.optional().describe("Id of a tenant; without it, records that concern no tenant.") } }),
      output: paged(AuditLog),
    }),
  },
  records: { AuditLog, AuditExport },
});
