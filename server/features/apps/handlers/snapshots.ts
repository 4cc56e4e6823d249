// Snapshots of apps, and the way back to one.
import { contract } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";
import { happened } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import { withActors } from "../../../core/people/actors.ts";
import { actorOf } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import type { Orders } from "../orders.ts";
import { toApp } from "../record.ts";
import { findApp } from "../store/apps.ts";
import { countSnapshots, findSnapshot, insertSnapshot, listSnapshots, MAX_SNAPSHOTS, removeSnapshot } from "../store/snapshots.ts";
import { lockedApp, unknownApp } from "./changes.ts";

type Names = "listSnapshots" | "createSnapshot" | "removeSnapshot" | "rollback";

const unknown = (snapshotId: string): AppError => new AppError("SNAPSHOT_NOT_FOUND", { details: { snapshotId } });
const tooMany = (): AppError =>
  new AppError("APP_CONFIG_INVALID", {
    details: { issues: [{ path: "", code: "too_many", message: `an app has at most ${MAX_SNAPSHOTS} snapshots of people` }] },
  });

export const createAppSnapshots = ({
  db,
  emit,
  orders,
}: Pick<FeatureKit, "db" | "emit"> & { readonly orders: Orders }): Pick<Handlers<typeof contract.apps>, Names> => ({
  listSnapshots: async ({ scope }, { appId }) => {
    if ((await findApp(db, scope, appId)) === null) throw unknownApp(appId);
    return { items: await withActors(db, scope, await listSnapshots(db, scope, appId)) };
  },
  createSnapshot: ({ scope, commit }, { appId, metadata }) =>
    commit(async (tx) => {
      const app = await lockedApp(tx, scope, appId);
      if ((await countSnapshots(tx, scope, appId)) >= MAX_SNAPSHOTS) throw tooMany();
      const snapshot = await insertSnapshot(tx, scope, app, { automatic: false, metadata, by: actorOf(scope.principal) });
      const { snapshotId, revision, automatic } = snapshot;
      await emit(tx, [happened(scope, contract.apps.events.snapshotCreated, appId, { appId: app.appId, snapshotId, revision, automatic })]);
      return snapshot;
    }),
  removeSnapshot: ({ scope, commit }, { appId, snapshotId }) =>
    commit(async (tx) => {
      await lockedApp(tx, scope, appId);
      if (!(await removeSnapshot(tx, scope, appId, snapshotId))) throw unknown(snapshotId);
      return null;
    }),
  rollback: ({ scope, commit, fail }, { appId, snapshotId }) =>
    commit(async (tx, afterwards) => {
      const before = await lockedApp(tx, scope, appId);
      const content = await findSnapshot(tx, scope, appId, snapshotId);
      if (content === null) throw unknown(snapshotId);
      if (content.appType !== before.appType) throw fail("SNAPSHOT_INCOMPATIBLE", { snapshotId, appType: before.appType });
      const { app, notify } = await orders.update(tx, scope, before, { content, event: "rollBack", by: actorOf(scope.principal) });
      afterwards(notify);
      return toApp(app);
    }),
});
