// Rows of bulk operations.
import { Prisma } from "../../../../prisma/generated/client.ts";
import { type BulkCounts, type BulkName, BulkOperation, type BulkStatus, BulkThreshold, type Page } from "../../../../protocol/index.ts";
import type { Clients, Tx } from "../../../core/database.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { actionsOf } from "../states.ts";

type Stored = Prisma.Result<Prisma.BulkOperationDelegate, Record<never, never>, "findFirstOrThrow">;

/** An operation as the feature knows it. */
export interface BulkRow {
  readonly operationId: BulkOperation["operationId"];
  readonly tenantId: BulkOperation["tenantId"];
  readonly operation: BulkName;
  readonly name: string | null;
  readonly target: BulkOperation["target"];
  readonly params: Readonly<Record<string, unknown>>;
  readonly await: BulkOperation["await"];
  readonly maxParallel: number;
  readonly failureThreshold: BulkThreshold | null;
  readonly perMinute: number | null;
  readonly status: BulkStatus;
  readonly statusReason: string | null;
  readonly nextItem: number;
  readonly frozenTo: string | null;
  readonly retryCodes: readonly string[];
  readonly counts: BulkCounts;
  readonly startAt: Date | null;
  readonly expiresAt: Date;
  readonly retryOf: BulkOperation["retryOf"];
  readonly createdBy: string;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

const toRow = ({ total, pending, running, succeeded, failed, skipped, cancelled, failureThreshold, target, params, ...row }: Stored): BulkRow =>
  ({
    ...row,
    target: BulkOperation.shape.target.parse(target),
    params: BulkOperation.shape.params.parse(params),
    failureThreshold: failureThreshold === null ? null : BulkThreshold.parse(failureThreshold),
    counts: { total, pending, running, succeeded, failed, skipped, cancelled },
  }) as BulkRow; // as: the contract's words

export const toBulkOperation = (row: BulkRow, lastError: string | null = null): BulkOperation =>
  recordOf(BulkOperation, {
    ...row,
    rate: row.perMinute === null ? null : { perMinute: row.perMinute },
    actions: actionsOf(row.status, row.counts),
    lastError,
  });

export interface NewBulk
  extends Omit<BulkRow, "tenantId" | "counts" | "nextItem" | "frozenTo" | "startedAt" | "completedAt" | "createdAt" | "updatedAt" | "statusReason"> {
  readonly counts: Pick<BulkCounts, "total" | "pending" | "skipped">;
}

const json = (value: object | null) => (value === null ? Prisma.DbNull : (value as Prisma.InputJsonValue)); // as: parsed JSON

export const insertBulk = async (
  db: Clients,
  scope: SystemScope,
  { counts, target, params, failureThreshold, retryCodes, ...made }: NewBulk,
): Promise<BulkRow> =>
  toRow(
    await db.for(scope).bulkOperation.create({
      data: {
        ...made,
        ...counts,
        retryCodes: [...retryCodes],
        target: target as Prisma.InputJsonObject, // as: parsed JSON
        params: params as Prisma.InputJsonObject, // as: parsed JSON
        failureThreshold: json(failureThreshold),
      },
    }),
  );

/** Null: there is none, or, for `createdBy`, none of that creator. */
export const findBulk = async (db: Clients, scope: SystemScope, operationId: string, createdBy: string | null = null): Promise<BulkRow | null> => {
  const row = await db.for(scope).bulkOperation.findFirst({ where: { operationId, ...(createdBy === null ? {} : { createdBy }) } });
  return row === null ? null : toRow(row);
};

/** Operations that have not ended, drafts not among them, the newest first; for `createdBy`, only those of that creator. */
export const findBulksUnderWay = async (db: Clients, scope: SystemScope, take: number, createdBy: string | null): Promise<readonly BulkRow[]> => {
  const where = { status: { in: ["freezing", "pending", "running", "paused"] }, ...(createdBy === null ? {} : { createdBy }) };
  return (await db.for(scope).bulkOperation.findMany({ where, orderBy: { operationId: "desc" }, take })).map(toRow);
};

const LOCK = statement<{ readonly operation_id: string }>(
  "bulk.lock",
  "select b.operation_id from bulk_operations b where b.tenant_id = $1 and b.operation_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes it. Hold its work first. */
export const lockBulk = async (tx: Tx, scope: SystemScope, operationId: string): Promise<BulkRow | null> => {
  const [row] = await tx.query(LOCK, [scope.tenantId, operationId]);
  return row === undefined ? null : findBulk(tx, scope, operationId);
};

export type BulkChange = Partial<
  Pick<BulkRow, "status" | "statusReason" | "nextItem" | "frozenTo" | "counts" | "startedAt" | "completedAt"> & { readonly updatedAt: Date }
>;
export const updateBulk = async (db: Clients, scope: SystemScope, operationId: string, { counts, ...change }: BulkChange): Promise<void> => {
  await db.for(scope).bulkOperation.updateMany({ where: { operationId }, data: { ...change, ...counts } });
};

const list = createListing("bulk-operations", { createdAt: { kind: "time" } }, { column: "operationId", kind: "text" });
type BulkQuery = Parameters<typeof list>[0] & { readonly status?: readonly BulkStatus[] | undefined; readonly operation?: BulkName | undefined };

/** A page of one creator's operations; null: of all. */
export const pageOfBulks = (db: Clients, scope: SystemScope, query: BulkQuery, createdBy: string | null): Promise<Page<BulkRow>> => {
  const { bulkOperation } = db.for(scope);
  const { status, operation } = query;
  const where = {
    ...(createdBy === null ? {} : { createdBy }),
    ...(status === undefined ? {} : { status: { in: [...status] } }),
    ...(operation === undefined ? {} : { operation }),
  };
  return list(query, {
    owner: `${scope.tenantId} ${createdBy ?? ""}`,
    rows: (asked) => bulkOperation.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => bulkOperation.count({ where }),
    record: toRow,
  });
};

/** Operations that have not ended. */
export const countLive = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).bulkOperation.count({ where: { completedAt: null } });

export const countOthersRunning = (db: Clients, scope: SystemScope, operationId: string): Promise<number> =>
  db.for(scope).bulkOperation.count({ where: { status: "running", operationId: { not: operationId } } });

const OLD = 20;
/** Deletes some operations that ended before then. True: there may be more. */
export const deleteOldBulks = async (db: Clients, before: Date): Promise<boolean> => {
  const { bulkOperation } = db.system;
  const old = await bulkOperation.findMany({ where: { completedAt: { lt: before } }, select: { operationId: true }, take: OLD });
  await bulkOperation.deleteMany({ where: { operationId: { in: old.map(({ operationId }) => operationId) } } });
  return old.length === OLD;
};
