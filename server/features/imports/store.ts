// Rows of imports and of the lines of their plans.
import type { Prisma } from "../../../prisma/generated/client.ts";
import { Import, ImportLine, type Page } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createListing } from "../../core/rows/listing.ts";
import { given, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK, statement } from "../../core/statements.ts";

type Stored = Prisma.Result<Prisma.ImportDelegate, Record<never, never>, "findFirstOrThrow">;
type Words = "tenantId" | "status" | "counts" | "mode" | "conflict" | "format" | "origin";
export type ImportRow = Omit<Stored, Words> & Pick<Import, Words>;
const toRow = (row: Stored): ImportRow => row as ImportRow; // as: the contract's words
export const toImport = ({ succeeded, failed, receivedBytes, sizeBytes, ...row }: ImportRow): Import =>
  recordOf(Import, { ...row, applied: { succeeded, failed }, upload: receivedBytes === null ? null : { receivedBytes, sizeBytes } });

/** Until the transaction ends, nobody else begins or applies an import of the tenant. */
export const lockImports = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`imports of ${tenantId}`]);
};

export const findImport = async (db: Clients, scope: SystemScope, importId: string): Promise<ImportRow | null> => {
  const row = await db.for(scope).import.findFirst({ where: { importId } });
  return row === null ? null : toRow(row);
};

const list = createListing("imports", { createdAt: { kind: "time" } }, { column: "importId", kind: "text" });
export const pageOfImports = (db: Clients, scope: SystemScope, query: Parameters<typeof list>[0]): Promise<Page<ImportRow>> => {
  const rows = db.for(scope).import;
  return list(query, { owner: scope.tenantId, rows: (asked) => rows.findMany(asked), count: () => rows.count(), record: toRow });
};

/** The import that has one of these states. */
export const findBusy = async (db: Clients, scope: SystemScope, statuses: readonly Import["status"][]): Promise<string | null> =>
  (await db.for(scope).import.findFirst({ where: { status: { in: [...statuses] } }, select: { importId: true } }))?.importId ?? null;

type Asked = "importId" | "status" | "mode" | "conflict" | "sendInvites" | "lenient" | "createdBy" | "expiresAt";
type Made = "planHash" | "lines" | "counts" | "deletesToConfirm" | "readyAt";
export type NewImport = Pick<ImportRow, Asked | "format" | "origin"> & Partial<Pick<ImportRow, Made | "receivedBytes">>;
export interface NewLine extends Omit<ImportLine, "status"> {
  readonly status: string;
  /** Sealed; null: nothing is to be done. */
  readonly calls: Uint8Array<ArrayBuffer> | null;
}
export const insertImport = async (tx: Clients, scope: SystemScope, made: NewImport): Promise<ImportRow> =>
  toRow(await tx.for(scope).import.create({ data: { lines: 0, counts: {}, ...made } }));
export const insertLines = async (tx: Clients, scope: SystemScope, importId: string, lines: readonly NewLine[]): Promise<void> => {
  const data = lines.map((line) => ({ ...line, importId, changes: line.changes as Prisma.InputJsonValue })); // as: read from JSON
  await tx.for(scope).importLine.createMany({ data });
};

export type ImportChange = Partial<
  Pick<
    ImportRow,
    | Made
    | "origin"
    | "status"
    | "statusReason"
    | "appliedBy"
    | "succeeded"
    | "failed"
    | "nextLine"
    | "completedAt"
    | "receivedBytes"
    | "sizeBytes"
    | "expiresAt"
  >
>;
export const updateImport = async (tx: Clients, scope: SystemScope, importId: string, change: ImportChange): Promise<void> => {
  await tx.for(scope).import.updateMany({ where: { importId }, data: given(change) });
};

export const deleteImport = async (tx: Clients, scope: SystemScope, importId: string): Promise<boolean> =>
  (await tx.for(scope).import.deleteMany({ where: { importId } })).count === 1;

type LineRow = Prisma.Result<Prisma.ImportLineDelegate, Record<never, never>, "findFirstOrThrow">;
const listLines = createListing("import-lines", { n: { kind: "number" } }, { column: "n", kind: "number" });
type LinesQuery = Parameters<typeof listLines>[0] & {
  readonly importId: string;
  readonly action?: readonly string[] | undefined;
  readonly status?: string | undefined;
};
export const pageOfLines = (db: Clients, scope: SystemScope, query: LinesQuery): Promise<Page<ImportLine>> => {
  const rows = db.for(scope).importLine;
  const { importId, action, status } = query;
  const where = { importId, ...given({ status }), ...(action === undefined ? {} : { action: { in: [...action] } }) };
  return listLines(query, {
    owner: scope.tenantId,
    rows: (asked) => rows.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => rows.count({ where }),
    record: (row: LineRow) => recordOf(ImportLine, row),
  });
};

/** The next lines that are to be carried out. */
export const pendingLines = (
  tx: Clients,
  scope: SystemScope,
  importId: string,
  { from, limit }: { readonly from: number; readonly limit: number },
): Promise<readonly LineRow[]> =>
  tx.for(scope).importLine.findMany({ where: { importId, n: { gte: from }, status: "pending" }, orderBy: { n: "asc" }, take: limit });

export interface LineEnd extends Pick<ImportLine, "n" | "status"> {
  readonly code?: string;
  readonly message?: string;
  readonly recordId?: string | null;
}
const END_LINES = statement(
  "imports.endLines",
  `update import_lines l set status = e.status, code = e.code, message = e.message, record_id = coalesce(e.record_id, l.record_id)
     from unnest($3::int[], $4::text[], $5::text[], $6::text[], $7::text[]) as e(n, status, code, message, record_id)
    where l.tenant_id = $1 and l.import_id = $2 and l.n = any($3::int[]) and l.n = e.n`,
);
export const endLines = async (tx: SqlTx, { tenantId }: SystemScope, importId: string, ends: readonly LineEnd[]): Promise<void> => {
  if (ends.length === 0) return;
  await tx.query(END_LINES, [
    tenantId,
    importId,
    ends.map(({ n }) => n),
    ends.map(({ status }) => status),
    ends.map(({ code = null }) => code),
    ends.map(({ message = null }) => message),
    ends.map(({ recordId = null }) => recordId),
  ]);
};

/** The ids of the records that these lines have made. */
export const madeRecords = async (tx: Clients, scope: SystemScope, importId: string, lines: readonly number[]): Promise<ReadonlyMap<number, string>> => {
  if (lines.length === 0) return new Map();
  const rows = await tx
    .for(scope)
    .importLine.findMany({ where: { importId, n: { in: [...lines] }, status: "succeeded" }, select: { n: true, recordId: true } });
  return new Map(rows.flatMap(({ n, recordId }) => (recordId === null ? [] : [[n, recordId]])));
};

const KEEP_DAYS = 90;
/** Cancels plans that nobody has applied in time and files that never came whole, and deletes what is old. */
export const forgetImports = async ({ system }: Clients, now: Date): Promise<void> => {
  const tooLate = { ready: "nobody applied it in time", uploading: "its file did not come in time" };
  for (const [status, statusReason] of Object.entries(tooLate))
    await system.import.updateMany({ where: { status, expiresAt: { lte: now } }, data: { status: "cancelled", statusReason, completedAt: now } });
  await system.import.deleteMany({
    where: { createdAt: { lt: secondsFromNow(-KEEP_DAYS * DAY_SECONDS, now) }, status: { notIn: ["applying", "validating"] } },
  });
};
