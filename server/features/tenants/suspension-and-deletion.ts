// A tenant's life after its creation: administrators suspend and reactivate it, its owner schedules and cancels its deletion, and a job removes what is due.
import { contract, type Tenant, type TenantId } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Afterwards, Handlers } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Counters } from "./plan-limits.ts";
import {
  changeStatus,
  deleteTenantRow,
  findDueTenants,
  forgetReservations,
  markDeleted,
  postponeDeletion,
  type TenantStatus,
  type TenantStatusChange,
} from "./store/suspension-and-deletion.ts";
import { findTenant, type StoredTenant } from "./store/tenants.ts";

export interface SuspensionAndDeletionDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly counters: Counters;
  /** Deletes some rows of the tenant from every table but its own. */
  readonly deleteRows: (scope: SystemScope, limit: number) => Promise<"more" | "waiting" | "done">;
  /** Ends what the tenant is charged for. Throws while that cannot be done. */
  readonly endBilling: (scope: SystemScope) => Promise<void>;
  readonly deletionDays: number;
  readonly forgetTenant: (tenantId: string) => void;
  readonly counted: (tenant: StoredTenant, clients: Tx) => Promise<Tenant>;
}

const NEXT: Readonly<Record<TenantStatus, readonly TenantStatus[]>> = {
  active: ["suspended", "pending_deletion"],
  suspended: ["active"],
  pending_deletion: ["active"],
  deleted: [],
};
const PURGE_ROWS = 1_000;
const PURGE_TENANTS = 10;
const RETRY_SECONDS = 600;
const { suspended, reactivated, deletionScheduled, restored, deleted } = contract.tenants.events;

export const createSuspensionAndDeletion = (deps: SuspensionAndDeletionDeps) => {
  const { db, clock, emit, counters, deleteRows, endBilling, deletionDays, forgetTenant, counted } = deps;
  /** TENANT_NOT_FOUND, or INVALID_STATE_TRANSITION when the tenant has a status that does not lead to `to`. */
  const refusal = async (tx: Tx, scope: SystemScope, to: TenantStatus): Promise<AppError> => {
    const { tenantId } = scope;
    const from = (await findTenant(tx, scope))?.status;
    if (from === undefined) return new AppError("TENANT_NOT_FOUND", { details: { tenantId } });
    return new AppError("INVALID_STATE_TRANSITION", { details: { from, to, allowed: NEXT[from as TenantStatus] ?? [] } });
  };

  const change = async (tx: Tx, afterwards: Afterwards, scope: SystemScope, wanted: Omit<TenantStatusChange, "now">): Promise<StoredTenant> => {
    const changed = await changeStatus(tx, scope, { now: clock.now(), ...wanted });
    if (changed === null) throw await refusal(tx, scope, wanted.to);
    afterwards(() => forgetTenant(scope.tenantId));
    return changed;
  };

  const trySuspend = async (tx: Tx, scope: SystemScope, reason: string): Promise<boolean> => {
    const changed = await changeStatus(tx, scope, { now: clock.now(), from: "active", to: "suspended", reason });
    if (changed === null) return false;
    const { tenantId, slug } = changed;
    await emit(tx, [happened(scope, suspended, tenantId, { tenantId, slug, reason })]);
    return true;
  };

  const tryReactivate = async (tx: Tx, scope: SystemScope, suspendedFor?: string): Promise<boolean> => {
    const changed = await changeStatus(tx, scope, { now: clock.now(), from: "suspended", to: "active", suspendedFor });
    if (changed === null) return false;
    const { tenantId, slug } = changed;
    await emit(tx, [happened(scope, reactivated, tenantId, { tenantId, slug })]);
    return true;
  };

  const checkEmpty = async (tx: Tx, scope: SystemScope): Promise<void> => {
    const references = { devices: (await counters.hosts?.(tx, scope)) ?? 0, apps: (await counters.apps?.(tx, scope)) ?? 0 };
    if (references.devices + references.apps > 0) throw new AppError("TENANT_NOT_EMPTY", { details: { references } });
  };

  const handlers: Pick<Handlers<typeof contract.tenants>, "remove" | "restore"> = {
    remove: ({ scope, fail, commit }, { tenantId, confirm, force }) =>
      commit(async (tx, afterwards) => {
        if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
        const deleteAfter = secondsFromNow(deletionDays * DAY_SECONDS, clock.now());
        const { slug } = await change(tx, afterwards, scope, { from: "active", to: "pending_deletion", deleteAfter });
        if (confirm !== slug) throw unconfirmed();
        if (!force) await checkEmpty(tx, scope);
        await emit(tx, [happened(scope, deletionScheduled, tenantId, { tenantId, slug, deleteAfter: deleteAfter.toISOString() })]);
        return null;
      }),

    restore: ({ scope, fail, commit }, { tenantId }) =>
      commit(async (tx, afterwards) => {
        if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
        const tenant = await change(tx, afterwards, scope, { from: "pending_deletion", to: "active" });
        await emit(tx, [happened(scope, restored, tenantId, { tenantId, slug: tenant.slug })]);
        return counted(tenant, tx);
      }),
  };

  /** Ends a tenant whose days are over: first nobody gets in any more, then nobody is charged any more, then its rows go, then its own row. True when there is more to do. */
  const purge = async ({ tenantId, status, slug }: { readonly tenantId: TenantId; readonly status: string; readonly slug: string }): Promise<boolean> => {
    const scope = { tenantId };
    if (status !== "deleted") {
      const isMine = await db.tx(async (tx) => {
        const marked = await markDeleted(tx, scope, clock.now());
        if (marked) await emit(tx, [happened(scope, deleted, tenantId, { tenantId, slug })]);
        return marked;
      });
      forgetTenant(tenantId);
      return isMine;
    }
    await endBilling(scope);
    const left = await deleteRows(scope, PURGE_ROWS);
    if (left === "done") await deleteTenantRow(db, scope);
    return left === "more";
  };

  const jobs: readonly Job[] = [
    {
      name: "tenants.purge",
      everyMs: 60_000,
      run: async () => {
        let more = false;
        const failures: unknown[] = [];
        for (const due of await findDueTenants(db, clock.now(), PURGE_TENANTS))
          try {
            more = (await purge(due)) || more;
          } catch (error) {
            failures.push(error);
            // Tenants that cannot be ended yet would keep the others waiting.
            await postponeDeletion(db, due, secondsFromNow(RETRY_SECONDS, clock.now()));
          }
        if (failures.length > 0) throw new AggregateError(failures, `${failures.length} tenants could not be ended`);
        return more;
      },
    },
    { name: "tenants.slugs", everyMs: 3_600_000, run: () => forgetReservations(db, clock.now()) },
  ];

  return {
    handlers,
    jobs,
    /** False when the tenant is not active. */
    trySuspend,
    /** False when the tenant is not suspended, or for another reason. */
    tryReactivate,
    suspend: async (tx: Tx, afterwards: Afterwards, tenantId: TenantId, reason: string): Promise<void> => {
      if (!(await trySuspend(tx, { tenantId }, reason))) throw await refusal(tx, { tenantId }, "suspended");
      afterwards(() => forgetTenant(tenantId));
    },
    reactivate: async (tx: Tx, afterwards: Afterwards, tenantId: TenantId): Promise<void> => {
      if (!(await tryReactivate(tx, { tenantId }))) throw await refusal(tx, { tenantId }, "active");
      afterwards(() => forgetTenant(tenantId));
    },
  };
};

const unconfirmed = (): AppError =>
  new AppError("VALIDATION_FAILED", {
    details: { reason: "not_confirmed", issues: [{ path: "confirm", code: "custom", message: "must be the tenant's slug" }] },
  });
