// Rows of the files of imports, and of the attempts to make plans of them.
import type { Clients, Tx } from "../../core/database.ts";
import type { SystemScope } from "../../core/scope.ts";
import { findImport, type ImportChange, type ImportRow, insertLines, type NewLine } from "./store.ts";

export interface StoredPart {
  readonly fromByte: number;
  /** Sealed. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export const insertUploadPart = async (tx: Clients, scope: SystemScope, importId: string, part: StoredPart): Promise<void> => {
  await tx.for(scope).importPart.create({ data: { importId, ...part } });
};

/** Where its parts begin, in their order. */
export const partsOf = async (db: Clients, scope: SystemScope, importId: string): Promise<readonly number[]> =>
  (await db.for(scope).importPart.findMany({ where: { importId }, orderBy: { fromByte: "asc" }, select: { fromByte: true } })).map(({ fromByte }) => fromByte);

/** Null: it is gone. */
export const readPart = async (db: Clients, scope: SystemScope, importId: string, fromByte: number): Promise<Uint8Array | null> =>
  (await db.for(scope).importPart.findFirst({ where: { importId, fromByte }, select: { bytes: true } }))?.bytes ?? null;

/** Imports of all tenants whose file has come, the oldest first. */
export const findUnplanned = async (db: Clients, limit: number): Promise<readonly Pick<ImportRow, "tenantId" | "importId">[]> =>
  (await db.system.import.findMany({
    where: { status: "validating" },
    orderBy: { createdAt: "asc" },
    take: limit,
    select: { tenantId: true, importId: true },
  })) as readonly Pick<ImportRow, "tenantId" | "importId">[]; // as: a row's id

/** The newest attempt, as long as nobody has deleted the import. */
type Attempt = Pick<ImportRow, "tenantId" | "importId" | "attempt">;
const present = ({ importId, attempt }: Attempt) => ({ importId, attempt, status: "validating" });

/** Null: it has ended meanwhile. Call it with the lock of the import. */
export const beginPlanning = async (tx: Tx, scope: SystemScope, importId: string): Promise<ImportRow | null> => {
  const { count } = await tx.for(scope).import.updateMany({ where: { importId, status: "validating" }, data: { attempt: { increment: 1 } } });
  if (count === 0) return null;
  await tx.for(scope).importLine.deleteMany({ where: { importId } });
  return findImport(tx, scope, importId);
};

/** False: another node has begun it anew, or somebody has deleted it. */
export const keepLines = async (tx: Clients, attempt: Attempt, lines: readonly NewLine[]): Promise<boolean> => {
  const { count } = await tx.for(attempt).import.updateMany({ where: present(attempt), data: { attempt: attempt.attempt } });
  if (count === 1) await insertLines(tx, attempt, attempt.importId, lines);
  return count === 1;
};

/** False: as above. Its file is not needed any more. */
export const endPlanning = async (tx: Clients, attempt: Attempt, change: ImportChange): Promise<boolean> => {
  const { counts, ...rest } = change;
  const { count } = await tx.for(attempt).import.updateMany({ where: present(attempt), data: { ...rest, ...(counts === undefined ? {} : { counts }) } });
  if (count === 1) await tx.for(attempt).importPart.deleteMany({ where: { importId: attempt.importId } });
  return count === 1;
};

const IMPORTS_AT_ONCE = 20;
/** Deletes the files of imports that have ended otherwise. */
export const deleteOldParts = async ({ system }: Clients): Promise<void> => {
  const ended = await system.import.findMany({
    where: { status: { notIn: ["uploading", "validating"] }, parts: { some: {} } },
    select: { importId: true },
    take: IMPORTS_AT_ONCE,
  });
  for (const { importId } of ended) await system.importPart.deleteMany({ where: { importId } });
};
