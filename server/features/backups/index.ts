// Backups and restores. The way of an order:
//
// 1. handlers/ and restoring.ts check what somebody wants and lock the app and its backups.
// 2. orders.ts writes the record and orders the command, in one transaction.
// 3. outcomes.ts moves the record on while the agent works and when the command has ended; steps.ts changes a state and emits its event.
//
// A backup is `completed` by the agent's word that it has read it back from its repository, and by nothing else.
import { contract } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { isAppError } from "../../core/errors.ts";
import { implement } from "../../core/feature.ts";
import type { HideFor } from "../../core/ports/command-outcomes.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { BackedApp, Backing, BackUpFirst, CancelOrdered } from "../apps/index.ts";
import type { FindOrder, FindUses, Repositories } from "../backup-destinations/index.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createDownloads, type DownloadsDeps } from "./downloads.ts";
import { createAgentCalls } from "./handlers/agent.ts";
import { createBackupChanges } from "./handlers/changes.ts";
import { createBackupReads } from "./handlers/reads.ts";
import { createBackupJobs } from "./jobs.ts";
import { type BackupOrders, createBackupOrders } from "./orders.ts";
import { createBackupOutcomes, type FollowBackup } from "./outcomes.ts";
import { createRestoring } from "./restoring.ts";
import { createBackupSteps } from "./steps.ts";
import type { BackupRow } from "./store/backup-row.ts";
import { countBackups, findNamedBackups, idsAt, keptBackups, lastGoodBackups, lockBackup } from "./store/backups.ts";
import { inUseByRestores } from "./store/restores.ts";

export { backupFailureOf } from "./failures.ts";
export type { FollowBackup } from "./outcomes.ts";
export type { BackupRow } from "./store/backup-row.ts";

export interface BackupsDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "enqueue" | "secretBox" | "plan" | "until">,
    Pick<DownloadsDeps, "carriers" | "pages" | "edgeUrl" | "isOnline"> {
  readonly apps: () => Backing;
  readonly repositories: () => Repositories;
  readonly cancelOrdered: CancelOrdered;
  readonly findOrder: FindOrder;
  readonly follow: FollowBackup;
  /** The apps among these that a policy has backed up before updates, by their ids. */
  readonly asksBeforeUpdate: (
    tx: Tx,
    scope: SystemScope,
    apps: readonly BackedApp[],
  ) => Promise<ReadonlyMap<string, { readonly destinationId: string | null }>>;
  readonly isKnown: (db: Clients, scope: SystemScope, deviceId: string) => Promise<boolean>;
  readonly requireEngine: (tx: Clients, scope: SystemScope, deviceId: string) => Promise<void>;
  readonly hideFor: HideFor | undefined;
}

/** Backups as policies use them. */
export interface PolicyBackups extends Pick<BackupOrders, "backUp" | "requireFree" | "verify" | "remove"> {
  kept(db: Clients, scope: SystemScope, appIds: readonly string[], limit: number): Promise<readonly BackupRow[]>;
  lock(tx: Tx, scope: SystemScope, backupId: string): Promise<BackupRow | null>;
  inUse(tx: Clients, scope: SystemScope, backupIds: readonly string[]): Promise<ReadonlySet<string>>;
  tellExpired(tx: Tx, scope: SystemScope, row: BackupRow): Promise<void>;
}

export interface BackupsFeature extends Feature<typeof contract.backups> {
  readonly forPolicies: PolicyBackups;
  readonly backUpFirst: BackUpFirst;
  readonly count: (scope: SystemScope) => Promise<number>;
  /** As the targets of bulk operations. */
  readonly named: typeof findNamedBackups;
  readonly usesOf: FindUses;
  readonly lastGood: typeof lastGoodBackups;
}

export const createBackups = (deps: BackupsDeps): BackupsFeature => {
  const { db, apps, asksBeforeUpdate } = deps;
  const steps = createBackupSteps(deps);
  const orders = createBackupOrders({ ...deps, steps });
  const restoring = createRestoring({ ...deps, steps, orders });
  const word = createBackupOutcomes({ ...deps, steps, orders, startRestore: restoring.startRestore });
  const parts = { ...deps, steps, orders };
  const downloads = createDownloads({ ...deps, orders });

  const backUpFirst: BackUpFirst = async (tx, scope, appIds, by) => {
    const found = (await apps().select(tx, { tenantId: scope.tenantId }, appIds, appIds.length)).filter(({ hasRun }) => hasRun);
    const asked = found.length === 0 ? new Map<string, { readonly destinationId: string | null }>() : await asksBeforeUpdate(tx, scope, found);
    const notifies: (() => void)[] = [];
    for (const app of found) {
      if (!asked.has(app.appId) && app.spec.backup?.beforeUpdates !== true) continue;
      const destinationId = asked.get(app.appId)?.destinationId ?? null;
      try {
        await orders.requireFree(tx, scope, app.appId);
        const { notify } = await orders.backUp(tx, scope, { app, type: "full", trigger: "pre_update", destinationId, consistency: "template", by });
        notifies.push(notify);
      } catch (error) {
        // The update goes on: one is under way already, or the device cannot make any.
        if (!isAppError(error)) throw error;
      }
    }
    return {
      notify: () => {
        for (const notify of notifies) notify();
      },
    };
  };

  return {
    handlers: implement(contract.backups, {
      ...createBackupReads(deps),
      ...createBackupChanges(parts),
      ...createAgentCalls(parts),
      restore: restoring.restore,
      download: downloads.download,
    }),
    edge: { mounts: [downloads.mount] },
    outcomes: word.outcomes,
    progress: word.progress,
    ...(deps.hideFor === undefined ? {} : { hideFor: deps.hideFor }),
    jobs: createBackupJobs({ ...parts, outcomes: word }),
    backUpFirst,
    named: findNamedBackups,
    lastGood: lastGoodBackups,
    count: (scope) => countBackups(db, scope),
    usesOf: async (tx, scope, destinationId, limit) => (await idsAt(tx, scope, destinationId, limit)).map((id) => ({ type: "backup", id })),
    forPolicies: {
      ...orders,
      kept: keptBackups,
      lock: lockBackup,
      inUse: inUseByRestores,
      tellExpired: (tx, scope, row) => steps.tell(tx, scope, row, "expired"),
    },
  };
};
