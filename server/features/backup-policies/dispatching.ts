// Hands the apps of runs out a few at a time: at most 20 of a policy and 100 of a tenant, and only to devices that are there.
import type { BackupPolicyId } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { isAppError } from "../../core/errors.ts";
import { becomeLeader } from "../../core/leader-election.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Backing } from "../apps/index.ts";
import type { PolicyBackups } from "../backups/index.ts";
import { findPolicy } from "./store/policies.ts";
import { type BusyRow, countBusy, findQueued, type QueuedRow, saveItem } from "./store/runs.ts";

/** So long an app waits for its device. */
export const WAIT_SECONDS = { skip: 3_600, run_once: DAY_SECONDS } as const;
const PER_POLICY = 20;
const PER_TENANT = 100;
/** The apps of one run in one look: as many as can begin at once, and more that are due no more. */
const PER_RUN = 100;

export interface DispatchDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly apps: () => Backing;
  readonly backups: () => PolicyBackups;
  readonly endIfDone: (tx: Tx, scope: SystemScope, runId: string) => Promise<void>;
}

type Place = Pick<BusyRow, "tenant_id" | "policy_id">;
const keyOf = ({ tenant_id, policy_id }: Place): string => `${tenant_id} ${policy_id}`;
const createFree = (busy: readonly BusyRow[]) => {
  const ofPolicy = new Map(busy.map((row) => [keyOf(row), row.busy]));
  const ofTenant = new Map<string, number>();
  const add = (tenantId: string, more: number): void => {
    ofTenant.set(tenantId, (ofTenant.get(tenantId) ?? 0) + more);
  };
  for (const row of busy) add(row.tenant_id, row.busy);
  return {
    has: (place: Place): boolean => (ofPolicy.get(keyOf(place)) ?? 0) < PER_POLICY && (ofTenant.get(place.tenant_id) ?? 0) < PER_TENANT,
    take: (place: Place): void => {
      ofPolicy.set(keyOf(place), (ofPolicy.get(keyOf(place)) ?? 0) + 1);
      add(place.tenant_id, 1);
    },
  };
};

export interface Dispatched {
  /** Apps that began or were given up. */
  readonly count: number;
  /** What to call after the commit. */
  readonly notices: readonly (() => void)[];
}

/** Null while another node does this. */
export const createDispatch = ({ db, clock, apps, backups, endIfDone }: DispatchDeps) => {
  const start = async (tx: Tx, { tenant_id, run_id, policy_id, app_id }: QueuedRow): Promise<(() => void) | null> => {
    const scope = { tenantId: tenant_id };
    const at = { runId: run_id, appId: app_id };
    const policy = await findPolicy(tx, scope, policy_id);
    const app = await apps().lock(tx, scope, app_id);
    if (policy === null || app === null) {
      await saveItem(tx, scope, at, { status: "skipped", reason: "APP_NOT_FOUND" });
      return null;
    }
    try {
      await backups().requireFree(tx, scope, app_id);
      const { row, notify } = await backups().backUp(tx, scope, {
        app,
        type: policy.type,
        trigger: "policy",
        destinationId: policy.destinationId,
        consistency: policy.consistency,
        by: "system",
        policyId: policy.policyId as BackupPolicyId,
        ttlSeconds: WAIT_SECONDS.skip,
        timeoutSeconds: policy.timeoutSeconds,
      });
      await saveItem(tx, scope, at, { status: "started", backupId: row.backupId });
      return notify;
    } catch (error) {
      if (!isAppError(error)) throw error;
      await saveItem(tx, scope, at, { status: error.code === "BACKUP_IN_PROGRESS" ? "skipped" : "failed", reason: error.code });
      return null;
    }
  };

  const expire = async (tx: Tx, { tenant_id, run_id, app_id }: QueuedRow): Promise<null> => {
    await saveItem(tx, { tenantId: tenant_id }, { runId: run_id, appId: app_id }, { status: "skipped", reason: "DEVICE_OFFLINE" });
    return null;
  };
  /** One node at a time, so that the bounds hold for the installation. */
  return (): Promise<Dispatched | null> =>
    db.tx(async (tx) => {
      if (!(await becomeLeader(tx, "backupDispatch"))) return null;
      const queued = await findQueued(tx, clock.now(), PER_RUN);
      const busy = await countBusy(tx);
      const free = createFree(busy);
      const notices: (() => void)[] = [];
      const changed = new Map<string, QueuedRow>();
      let count = 0;
      for (const row of queued) {
        if (!row.expired && !free.has(row)) continue;
        changed.set(row.run_id, row);
        count += 1;
        const notify = row.expired ? await expire(tx, row) : await start(tx, row);
        if (notify === null) continue;
        notices.push(notify);
        free.take(row);
      }
      for (const { tenant_id, run_id } of changed.values()) await endIfDone(tx, { tenantId: tenant_id }, run_id);
      return { count, notices };
    });
};
