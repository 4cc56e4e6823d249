// What people do with bulk operations: start, pause, resume and cancel them, and repeat what failed.
import type { contract } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { requireConfirmed, requirePermission } from "./create.ts";
import { requireLimits } from "./limits.ts";
import { ownOf } from "./reads.ts";
import { type BulkEntry, REGISTRY } from "./registry.ts";
import { moveBulk, requireRetry } from "./states.ts";
import { BULK, eventsOf } from "./stepper.ts";
import { countFailed } from "./store/items.ts";
import { type BulkChange, type BulkRow, findBulk, insertBulk, lockBulk, toBulkOperation, updateBulk } from "./store/operations.ts";
import { unknownBulk } from "./unknown.ts";

export type ChangesDeps = Pick<FeatureKit, "db" | "clock" | "emit" | "many" | "plan">;
type H = Handlers<typeof contract.bulkOperations>;

const RETRY_DAYS = 7;

export const createChanges = (deps: ChangesDeps): Pick<H, "start" | "pause" | "resume" | "cancel" | "retryFailed"> => {
  const { clock, emit, many } = deps;

  /** The operation, which no step and nobody else changes until the transaction ends. */
  const hold = async (tx: Tx, scope: TenantScope, operationId: string): Promise<BulkRow> => {
    await many.hold(tx, scope, operationId);
    const row = await lockBulk(tx, scope, operationId);
    if (row === null || (ownOf(scope) ?? row.createdBy) !== row.createdBy) throw unknownBulk(operationId);
    return row;
  };

  const change = ({ scope, commit }: Pick<Parameters<H["start"]>[0], "scope" | "commit">, operationId: string, decide: (row: BulkRow) => BulkChange) =>
    commit(async (tx, afterwards) => {
      const before = await hold(tx, scope, operationId);
      await updateBulk(tx, scope, operationId, decide(before));
      const after = (await findBulk(tx, scope, operationId)) ?? before;
      await emit(tx, eventsOf(scope, before, after));
      await many.wake(tx, scope, operationId);
      afterwards(many.hint);
      return toBulkOperation(after);
    });

  const entryOf = ({ operation }: BulkRow): BulkEntry => REGISTRY[operation] as BulkEntry; // as: each entry takes its own parameters

  return {
    start: (call, { operationId }) =>
      change(call, operationId, (row) => {
        const status = moveBulk(row.status, "start");
        requirePermission(call.scope, entryOf(row));
        if (row.counts.total === 0) throw call.fail("BULK_NO_TARGETS");
        requireConfirmed(entryOf(row), row.params, row.counts.total);
        return { status };
      }),
    pause: (call, { operationId, reason = null }) => change(call, operationId, ({ status }) => ({ status: moveBulk(status, "pause"), statusReason: reason })),
    resume: (call, { operationId }) =>
      change(call, operationId, (row) => {
        const status = moveBulk(row.status, "resume");
        requirePermission(call.scope, entryOf(row));
        return { status, statusReason: null };
      }),
    cancel: (call, { operationId, reason }) => change(call, operationId, ({ status }) => ({ status: moveBulk(status, "cancel"), statusReason: reason })),
    retryFailed: ({ scope, commit, fail }, { operationId, codes = [] }) =>
      commit(async (tx, afterwards) => {
        const parent = await hold(tx, scope, operationId);
        requireRetry(parent.status, parent.counts);
        requirePermission(scope, entryOf(parent));
        const found = await countFailed(tx, scope, operationId, codes);
        if (found === 0) throw fail("BULK_NO_TARGETS");
        await requireLimits(deps, tx, scope, found);
        const { operation, name, params, maxParallel, failureThreshold, perMinute } = parent;
        const row = await insertBulk(tx, scope, {
          operationId: newId("blk"),
          operation,
          name,
          params,
          maxParallel,
          failureThreshold,
          perMinute,
          await: parent.await,
          target: { kind: "retry", fleetId: null, selector: null },
          status: "freezing",
          counts: { total: 0, pending: 0, skipped: 0 },
          retryOf: parent.operationId,
          retryCodes: codes,
          startAt: null,
          expiresAt: secondsFromNow(RETRY_DAYS * DAY_SECONDS, clock.now()),
          createdBy: actorOf(scope.principal),
        });
        await many.begin(tx, scope, { recordId: row.operationId, kind: BULK, priority: 2, stepAt: null });
        afterwards(many.hint);
        return toBulkOperation(row);
      }),
  };
};
