// Rows of data exports and of the chunks of their files.
import type { Prisma } from "../../../prisma/generated/client.ts";
import { DataExport, type ExportScope, type Page } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { createListing } from "../../core/rows/listing.ts";
import { recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK } from "../../core/statements.ts";
import { sectionsOf } from "./sections.ts";

type Stored = Prisma.Result<Prisma.DataExportDelegate, Record<never, never>, "findFirstOrThrow">;

export interface ExportRow extends Omit<Stored, "scopes" | "sizeBytes" | "tenantId" | "counts" | "format"> {
  readonly tenantId: DataExport["tenantId"];
  readonly scopes: readonly ExportScope[];
  readonly format: DataExport["format"];
  readonly sizeBytes: number;
  readonly counts: Readonly<Record<string, number>>;
}

const toRow = (row: Stored): ExportRow => ({ ...row, sizeBytes: Number(row.sizeBytes) }) as ExportRow; // as: the contract's words

export const toDataExport = ({ section, lines, ...row }: ExportRow): DataExport => {
  const lacking = sectionsOf(row.scopes).flatMap(({ kind, secrets }) => (secrets === undefined || !row.counts[kind] ? [] : [[kind, secrets] as const]));
  return recordOf(DataExport, { ...row, progress: { section, lines }, secretsMissing: Object.fromEntries(lacking) });
};

const SEEN = { deletedAt: null };

export const findExport = async (db: Clients, scope: SystemScope, exportId: string): Promise<ExportRow | null> => {
  const row = await db.for(scope).dataExport.findFirst({ where: { exportId, ...SEEN } });
  return row === null ? null : toRow(row);
};

const list = createListing("data-exports", { createdAt: { kind: "time" } }, { column: "exportId", kind: "text" });
export const pageOfExports = (db: Clients, scope: SystemScope, query: Parameters<typeof list>[0]): Promise<Page<ExportRow>> => {
  const { dataExport } = db.for(scope);
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => dataExport.findMany({ ...asked, where: { ...SEEN, AND: asked.where } }),
    count: () => dataExport.count({ where: SEEN }),
    record: toRow,
  });
};

/** Until the transaction ends, nobody else begins an export of the tenant. */
export const lockExports = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`data exports of ${tenantId}`]);
};

const LIVE = { in: ["pending", "running"] };
export const findLive = async (db: Clients, scope: SystemScope): Promise<string | null> =>
  (await db.for(scope).dataExport.findFirst({ where: { status: LIVE }, select: { exportId: true } }))?.exportId ?? null;

/** The exports of the last day, deleted ones too. */
export const countOfDay = (db: Clients, scope: SystemScope, now: Date): Promise<number> =>
  db.for(scope).dataExport.count({ where: { createdAt: { gt: secondsFromNow(-DAY_SECONDS, now) } } });

export type NewExport = Pick<ExportRow, "scopes" | "format" | "from" | "to" | "createdBy">;
export const insertExport = async (tx: Clients, scope: SystemScope, { scopes, ...made }: NewExport): Promise<ExportRow> =>
  toRow(await tx.for(scope).dataExport.create({ data: { ...made, scopes: [...scopes], exportId: newId("exp") } }));

/** The exports that a node could begin now, of all tenants, the oldest first. */
export const findWaitingExports = async (db: Clients, limit: number): Promise<readonly ExportRow[]> =>
  (await db.system.dataExport.findMany({ where: { status: LIVE }, orderBy: { createdAt: "asc" }, take: limit })).map(toRow);

/** The file of an attempt, as long as that is the newest and nobody has cancelled it. */
export type ExportAttempt = Pick<ExportRow, "tenantId" | "exportId" | "attempt">;
const present = ({ exportId, attempt }: ExportAttempt) => ({ exportId, attempt, status: "running" });

/** Null: it has ended meanwhile. Call it with the lock of the export. */
export const beginAttempt = async (tx: Tx, { tenantId, exportId }: ExportAttempt, now: Date): Promise<ExportRow | null> => {
  const fresh = { section: null, lines: 0, counts: {}, sizeBytes: 0n };
  const [row] = await tx.for({ tenantId }).dataExport.updateManyAndReturn({
    where: { exportId, status: LIVE },
    data: { status: "running", attempt: { increment: 1 }, startedAt: now, ...fresh },
  });
  if (row === undefined) return null;
  await tx.for({ tenantId }).dataExportChunk.deleteMany({ where: { exportId } });
  return toRow(row);
};

export type ExportProgress = Partial<Pick<ExportRow, "section" | "lines" | "counts" | "sizeBytes">>;
/** False: another node has begun it anew, or somebody has cancelled it. */
export const saveExportProgress = async (db: Clients, attempt: ExportAttempt, { sizeBytes, counts, ...progress }: ExportProgress): Promise<boolean> => {
  const { count } = await db.for(attempt).dataExport.updateMany({
    where: present(attempt),
    data: { ...progress, ...(counts === undefined ? {} : { counts }), ...(sizeBytes === undefined ? {} : { sizeBytes: BigInt(sizeBytes) }) },
  });
  return count === 1;
};

export const insertChunk = async (tx: Clients, attempt: ExportAttempt, part: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> => {
  await tx.for(attempt).dataExportChunk.create({ data: { exportId: attempt.exportId, part, bytes } });
};

export type ExportEnd = Pick<ExportRow, "status"> & Partial<Pick<ExportRow, "statusReason" | "sha256" | "completedAt" | "expiresAt" | "attempt">>;
export const endAttempt = async (tx: Clients, attempt: ExportAttempt, end: ExportEnd): Promise<ExportRow | null> => {
  const [row] = await tx.for(attempt).dataExport.updateManyAndReturn({ where: present(attempt), data: { ...end, section: null } });
  return row === undefined ? null : toRow(row);
};

/** What all files take. */
export const bytesOfExports = async (db: Clients): Promise<number> =>
  Number((await db.system.dataExport.aggregate({ where: { status: { in: ["running", "completed"] } }, _sum: { sizeBytes: true } }))._sum.sizeBytes ?? 0);

/** Null: the chunk is gone. */
export const readExportChunk = async (db: Clients, scope: SystemScope, exportId: string, part: number): Promise<Uint8Array | null> =>
  (await db.for(scope).dataExportChunk.findFirst({ where: { exportId, part }, select: { bytes: true } }))?.bytes ?? null;

export const countDownload = async (tx: Clients, scope: SystemScope, exportId: string): Promise<void> => {
  await tx.for(scope).dataExport.updateMany({ where: { exportId }, data: { downloadCount: { increment: 1 } } });
};

/** From now on only this link downloads the export. False: it is not complete. */
export const saveLink = async (tx: Clients, scope: SystemScope, exportId: string, linkId: string): Promise<boolean> =>
  (await tx.for(scope).dataExport.updateMany({ where: { exportId, status: "completed", ...SEEN }, data: { linkId } })).count === 1;

/** Nobody uses the link again. False: somebody has, or another one has replaced it. */
export const useUpLink = async (tx: Clients, scope: SystemScope, exportId: string, linkId: string): Promise<boolean> =>
  (await tx.for(scope).dataExport.updateMany({ where: { exportId, linkId, ...SEEN }, data: { linkId: null } })).count === 1;

export const hideExport = async (tx: Clients, scope: SystemScope, exportId: string, now: Date): Promise<void> => {
  const { dataExport } = tx.for(scope);
  await dataExport.updateMany({ where: { exportId, status: LIVE }, data: { status: "cancelled" } });
  await dataExport.updateMany({ where: { exportId, deletedAt: null }, data: { deletedAt: now } });
};

const CHUNKS_AT_ONCE = 50;
const EXPORTS_AT_ONCE = 20;
const KEEP_DAYS = 90;
/** Deletes files whose time is over, in steps, and records that are old. True: there may be more. */
export const deleteOldExports = async ({ system }: Clients, now: Date): Promise<boolean> => {
  const { dataExport, dataExportChunk } = system;
  await dataExport.updateMany({ where: { status: "completed", expiresAt: { lte: now } }, data: { status: "expired" } });
  const gone = { OR: [{ status: { in: ["failed", "cancelled", "expired"] } }, { deletedAt: { not: null } }] };
  const withFile = await dataExport.findMany({ where: { ...gone, chunks: { some: {} } }, select: { exportId: true }, take: EXPORTS_AT_ONCE });
  for (const { exportId } of withFile)
    if ((await dataExportChunk.deleteMany({ where: { exportId }, limit: CHUNKS_AT_ONCE })).count === CHUNKS_AT_ONCE) return true;
  const before = secondsFromNow(-KEEP_DAYS * DAY_SECONDS, now);
  const hidden = secondsFromNow(-2 * DAY_SECONDS, now);
  const old = { OR: [{ createdAt: { lt: before }, ...gone }, { deletedAt: { lt: hidden } }] };
  const { count } = await dataExport.deleteMany({ where: { ...old, chunks: { none: {} } }, limit: EXPORTS_AT_ONCE });
  return withFile.length === EXPORTS_AT_ONCE || count === EXPORTS_AT_ONCE;
};
