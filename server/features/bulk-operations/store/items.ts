// Rows of items. Raw SQL, because a step writes a slice of them at once.
import type { z } from "zod";
import { BULK_ITEM_STATUSES, BulkItem, type BulkItemStatus } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import { recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export interface ItemRef {
  readonly n: number;
  readonly targetId: string;
  readonly attempt: number;
}

/** The features of the targets know their names. */
const StoredItem = BulkItem.omit({ name: true });
export type StoredItem = z.infer<typeof StoredItem>;

/** How an item goes on. */
export interface ItemResult {
  readonly status: BulkItemStatus;
  readonly code?: string | null;
  readonly message?: string | null;
  readonly commandId?: string | null;
}

const INSERT = statement<{ readonly status: string; readonly count: number }>(
  "bulk.insertItems",
  `with made as (
     insert into bulk_items (tenant_id, operation_id, n, target_id, status, code, finished_at)
     select $1, $2, $3::int + w.at::int, w.id, case when w.code is null then 'pending' else 'skipped' end, w.code, case when w.code is null then null else now() end
       from unnest($4::text[], $5::text[]) with ordinality as w(id, code, at)
     on conflict do nothing returning status)
   select m.status, count(*) from made m group by m.status`,
);

/** A target with a code is skipped. Numbers begin behind `after`; a target that the operation has already gets no second item. */
export const insertItems = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { operationId, after, targets }: { readonly operationId: string; readonly after: number; readonly targets: readonly (readonly [string, string | null])[] },
): Promise<{ readonly pending: number; readonly skipped: number }> => {
  const rows =
    targets.length === 0 ? [] : await tx.query(INSERT, [tenantId, operationId, after, targets.map(([targetId]) => targetId), targets.map(([, code]) => code)]);
  const counts = new Map(rows.map(({ status, count }) => [status, count]));
  return { pending: counts.get("pending") ?? 0, skipped: counts.get("skipped") ?? 0 };
};

const LAST = statement<{ readonly last: number }>(
  "bulk.lastItem",
  "select coalesce(max(i.n), 0) as last from bulk_items i where i.tenant_id = $1 and i.operation_id = $2",
);
/** The highest number; 0 for none. */
export const lastItem = async (tx: SqlTx, { tenantId }: SystemScope, operationId: string): Promise<number> =>
  (await tx.query(LAST, [tenantId, operationId]))[0]?.last ?? 0;

const COPY = statement<{ readonly count: number; readonly last: number | null }>(
  "bulk.copyFailed",
  `with taken as (
     select i.n, i.target_id from bulk_items i
      where i.tenant_id = $1 and i.operation_id = $3 and i.n > $4 and i.status = 'failed' and (cardinality($5::text[]) = 0 or i.code = any($5)) order by i.n limit $6),
   made as (insert into bulk_items (tenant_id, operation_id, n, target_id) select $1, $2, t.n, t.target_id from taken t returning n)
   select count(*), max(m.n) as last from made m`,
);
/** Copies failed items of another operation, with their numbers, from behind `after`. */
export const copyFailed = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  copy: { readonly to: string; readonly from: string; readonly after: number; readonly codes: readonly string[]; readonly limit: number },
): Promise<{ readonly count: number; readonly last: number }> => {
  const [row] = await tx.query(COPY, [tenantId, copy.to, copy.from, copy.after, copy.codes, copy.limit]);
  return { count: row?.count ?? 0, last: row?.last ?? copy.after };
};

const COUNT_FAILED = statement<{ readonly count: number }>(
  "bulk.countFailed",
  "select count(*) from bulk_items i where i.tenant_id = $1 and i.operation_id = $2 and i.status = 'failed' and (cardinality($3::text[]) = 0 or i.code = any($3))",
);
export const countFailed = async (sql: SqlTx, { tenantId }: SystemScope, operationId: string, codes: readonly string[]): Promise<number> =>
  (await sql.query(COUNT_FAILED, [tenantId, operationId, codes]))[0]?.count ?? 0;

const PENDING = statement<{ readonly n: number; readonly target_id: string; readonly attempt: number }>(
  "bulk.pendingItems",
  `select i.n, i.target_id, i.attempt from bulk_items i
    where i.tenant_id = $1 and i.operation_id = $2 and i.n >= $3 and i.status = 'pending' order by i.n limit $4`,
);
export const pendingItems = async (tx: SqlTx, { tenantId }: SystemScope, operationId: string, from: { readonly n: number; readonly limit: number }) =>
  (await tx.query(PENDING, [tenantId, operationId, from.n, from.limit])).map(({ n, target_id, attempt }): ItemRef => ({ n, targetId: target_id, attempt }));

const RUNNING = statement<{ readonly n: number; readonly target_id: string; readonly attempt: number; readonly command_id: string | null }>(
  "bulk.runningItems",
  "select i.n, i.target_id, i.attempt, i.command_id from bulk_items i where i.tenant_id = $1 and i.operation_id = $2 and i.status = 'running' order by i.n limit $3",
);
export const runningItems = async (tx: SqlTx, { tenantId }: SystemScope, operationId: string, limit: number) =>
  (await tx.query(RUNNING, [tenantId, operationId, limit])).map(({ n, target_id, attempt, command_id }) => ({
    n,
    targetId: target_id,
    attempt,
    commandId: command_id,
  }));

// The array names the keys once more, so that the items are found by them whatever the planner believes of an operation that has just been frozen.
const WRITE = statement(
  "bulk.writeItems",
  `update bulk_items i set status = v.status, code = v.code, message = v.message, attempt = v.attempt, command_id = coalesce(v.command_id, i.command_id),
          finished_at = case when v.status in ('pending', 'running') then null else now() end
     from unnest($3::int[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[]) as v(n, status, code, message, attempt, command_id)
    where i.tenant_id = $1 and i.operation_id = $2 and i.n = any($3::int[]) and i.n = v.n`,
);
export type WrittenItem = ItemRef & ItemResult;
export const writeItems = async (tx: SqlTx, { tenantId }: SystemScope, operationId: string, items: readonly WrittenItem[]): Promise<void> => {
  if (items.length === 0) return;
  await tx.query(WRITE, [
    tenantId,
    operationId,
    items.map(({ n }) => n),
    items.map(({ status }) => status),
    items.map(({ code }) => code ?? null),
    items.map(({ message }) => message?.slice(0, MAX_MESSAGE).toWellFormed() ?? null),
    items.map(({ attempt }) => attempt),
    items.map(({ commandId }) => commandId ?? null),
  ]);
};
const MAX_MESSAGE = 500;

const CANCEL_PENDING = statement<{ readonly n: number }>(
  "bulk.cancelPending",
  `update bulk_items i set status = 'cancelled', code = $4, finished_at = now()
    where i.tenant_id = $1 and i.operation_id = $2 and i.status = 'pending' and i.n = any(array(
      select p.n from bulk_items p where p.tenant_id = $1 and p.operation_id = $2 and p.n >= $3 and p.status = 'pending' order by p.n limit $5)) returning i.n`,
);
/** Cancels the next ones; answers how many, and where to go on. */
export const cancelPending = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  operationId: string,
  { from, code, limit }: { readonly from: number; readonly code: string; readonly limit: number },
): Promise<{ readonly count: number; readonly next: number }> => {
  const rows = await tx.query(CANCEL_PENDING, [tenantId, operationId, from, code, limit]);
  return { count: rows.length, next: rows.reduce((next, { n }) => Math.max(next, n + 1), from) };
};

interface Row {
  readonly n: number;
  readonly target_id: string;
  readonly status: BulkItemStatus;
  readonly code: string | null;
  readonly message: string | null;
  readonly attempt: number;
  readonly command_id: BulkItem["commandId"];
  readonly finished_at: Date | null;
}
const COLUMNS = "i.n, i.target_id, i.status, i.code, i.message, i.attempt, i.command_id, i.finished_at";
const LIST = statement<Row>(
  "bulk.listItems",
  `select ${COLUMNS} from bulk_items i where i.tenant_id = $1 and i.operation_id = $2 and i.n > $3 order by i.n limit $4`,
);
const LIST_OF_STATUS = statement<Row>(
  "bulk.listItemsOfStatus",
  `select ${COLUMNS} from bulk_items i
    where i.tenant_id = $1 and i.operation_id = $2 and i.status = $5 and i.n > $3 and ($6::text is null or i.code = $6) order by i.n limit $4`,
);
export interface ItemsQuery {
  readonly after: number;
  readonly limit: number;
  readonly status?: readonly BulkItemStatus[] | undefined;
  readonly code?: string | undefined;
}
const toItem = ({ target_id, command_id, finished_at, ...row }: Row): StoredItem =>
  recordOf(StoredItem, { ...row, targetId: target_id, commandId: command_id, finishedAt: finished_at });

/** In the order of their numbers. Each status is a range of an index, so a rare one costs no more. */
export const listItems = async (sql: SqlTx, { tenantId }: SystemScope, operationId: string, query: ItemsQuery): Promise<readonly StoredItem[]> => {
  const { after, limit, code } = query;
  const values = [tenantId, operationId, after, limit];
  const statuses = query.status ?? (code === undefined ? null : BULK_ITEM_STATUSES);
  if (statuses === null) return (await sql.query(LIST, values)).map(toItem);
  const lists = await Promise.all([...new Set(statuses)].map((status) => sql.query(LIST_OF_STATUS, [...values, status, code ?? null])));
  return lists
    .flat()
    .sort((a, b) => a.n - b.n)
    .slice(0, limit)
    .map(toItem);
};

const FIND_PART = statement<{ readonly part: number; readonly sha256: Buffer; readonly added: number }>(
  "bulk.findPart",
  "select p.part, p.sha256, p.added from bulk_parts p where p.tenant_id = $1 and p.operation_id = $2 and p.part = $3",
);
export const findPart = async (tx: SqlTx, { tenantId }: SystemScope, operationId: string, part: number) =>
  (await tx.query(FIND_PART, [tenantId, operationId, part]))[0] ?? null;

const INSERT_PART = statement("bulk.insertPart", "insert into bulk_parts (tenant_id, operation_id, part, sha256, added) values ($1, $2, $3, $4, $5)");
export const insertPart = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  operationId: string,
  { part, sha256, added }: { readonly part: number; readonly sha256: Buffer; readonly added: number },
): Promise<void> => {
  await tx.query(INSERT_PART, [tenantId, operationId, part, sha256, added]);
};

const DELETE_ITEMS = statement<{ readonly n: number }>(
  "bulk.deleteItems",
  `delete from bulk_items i using (select p.tenant_id, p.operation_id, p.n from bulk_operations b
       cross join lateral (select o.tenant_id, o.operation_id, o.n from bulk_items o where o.tenant_id = b.tenant_id and o.operation_id = b.operation_id limit $2) p
      where b.completed_at < $1 limit $2) old
    where i.tenant_id = old.tenant_id and i.operation_id = old.operation_id and i.n = old.n returning i.n`,
);
/** Deletes some items of operations that ended before then. True: there may be more. */
export const deleteOldItems = async (sql: SqlTx, before: Date, limit: number): Promise<boolean> =>
  (await sql.query(DELETE_ITEMS, [before, limit])).length === limit;
