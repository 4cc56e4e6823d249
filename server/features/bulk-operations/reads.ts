// Reads of bulk operations, their items, and their results as a stream that goes on while the operation runs.
import { type BulkItem, type contract, targetOf } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Handlers } from "../../core/feature.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { bindingOf, readCursor, writeCursor } from "../../core/rows/cursor.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { listItems, type StoredItem } from "./store/items.ts";
import { type BulkRow, findBulk, pageOfBulks, toBulkOperation } from "./store/operations.ts";
import { type Finders, findTargets } from "./targets.ts";
import { unknownBulk } from "./unknown.ts";

export interface ReadsDeps extends Pick<FeatureKit, "db" | "until" | "many"> {
  readonly finders: Finders;
}
type H = Handlers<typeof contract.bulkOperations>;

const PAGE = 20;
const LINES = 1_000;
/** A stream that follows an operation waits so long for the next end, and then looks again. */
const FOLLOW_SECONDS = 3_600;

/** The creator whose operations a caller sees who is limited to some devices; null: all. */
export const ownOf = (scope: TenantScope): string | null => (isLimited(scope) ? actorOf(scope.principal) : null);

const hasEnded = ({ status }: StoredItem): boolean => status !== "pending" && status !== "running";

export const createReads = ({ db, until, many, finders }: ReadsDeps): Pick<H, "list" | "get" | "wait" | "listItems" | "results"> => {
  const find = async (scope: TenantScope, operationId: string): Promise<BulkRow> => {
    const row = await findBulk(db, scope, operationId, ownOf(scope));
    if (row === null) throw unknownBulk(operationId);
    return row;
  };
  const shown = async (scope: TenantScope, row: BulkRow) => {
    const states = row.completedAt === null ? await many.states(db, scope, [row.operationId]) : null;
    return withActor(db, scope, toBulkOperation(row, states?.get(row.operationId)?.lastError ?? null));
  };

  /** With the names of those targets that the reader sees. */
  const named = async (scope: TenantScope, { operation }: BulkRow, items: readonly StoredItem[]): Promise<BulkItem[]> => {
    const ids = items.map(({ targetId }) => targetId);
    const { seen } = await findTargets(finders[targetOf(operation)], db, scope, ids);
    return items.map((item) => ({ ...item, name: seen.get(item.targetId) ?? null }));
  };

  /** What the stream says next: the items behind `after`, up to the first that has not ended. */
  const nextLines = async (scope: TenantScope, operationId: string, after: number, follow: boolean) => {
    const row = await find(scope, operationId);
    const items = await listItems(db, scope, operationId, { after, limit: LINES });
    const open = follow && row.completedAt === null ? items.findIndex((item) => !hasEnded(item)) : -1;
    // A draft, and one that is still being frozen, may get more.
    const mayGrow = follow && (row.status === "draft" || row.status === "freezing");
    const shownItems = open === -1 ? items : items.slice(0, open);
    return { items: await named(scope, row, shownItems), isWhole: open === -1 && items.length < LINES && !mayGrow };
  };

  const lines = async function* (
    scope: TenantScope,
    { operationId, after, follow }: { operationId: string; after: number; follow: boolean },
    signal: AbortSignal,
  ) {
    for (let at = after; !signal.aborted; ) {
      const read = () => nextLines(scope, operationId, at, follow);
      const awaiting = { subjectId: operationId, seconds: FOLLOW_SECONDS, signal, read };
      const { items, isWhole } = follow ? await until(scope, { ...awaiting, isDone: (next) => next.items.length > 0 || next.isWhole }) : await read();
      if (items.length > 0) yield items.map((item) => `${JSON.stringify(item)}\n`).join("");
      at = items.at(-1)?.n ?? at;
      if (isWhole) return;
    }
  };

  return {
    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfBulks(db, scope, query, ownOf(scope));
      return pageWithActors(db, scope, { ...page, items: items.map((row) => toBulkOperation(row)) });
    },
    get: async ({ scope }, { operationId }) => shown(scope, await find(scope, operationId)),
    wait: async ({ scope, signal }, { operationId, status, timeout: seconds }) => {
      const read = () => find(scope, operationId);
      return shown(scope, await until(scope, { subjectId: operationId, seconds, signal, read, isDone: (row) => status.includes(row.status) }));
    },
    listItems: async ({ scope }, query) => {
      const { operationId, cursor, pageSize = PAGE, status, code } = query;
      const row = await find(scope, operationId);
      const binding = bindingOf("bulk-items", scope.tenantId, query);
      const [after = 0] = readCursor(cursor, binding, [{ kind: "number" }]) ?? [];
      const found = await listItems(db, scope, operationId, { after: Number(after), limit: pageSize + 1, status, code });
      const items = await named(scope, row, found.slice(0, pageSize));
      const last = items.at(-1);
      return found.length > pageSize && last !== undefined ? { items, nextCursor: writeCursor(binding, [last.n]) } : { items };
    },
    results: async ({ scope, signal }, query) => {
      await find(scope, query.operationId);
      return lines(scope, query, signal);
    },
  };
};
