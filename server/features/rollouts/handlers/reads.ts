// Reads of rollouts and of their devices.
import type { contract, Rollout } from "../../../../protocol/index.ts";
import { isLimited, permissionsIn } from "../../../core/access.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { Many } from "../../../core/many/types.ts";
import { withActor, withActors } from "../../../core/people/actors.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { FeatureKit } from "../../kit.ts";
import { type RolloutRow, toRollout } from "../record.ts";
import { groupFailures, pageOfDevices, seenCounts } from "../store/devices.ts";
import { findRollout, pageOfRollouts } from "../store/rollouts.ts";

export interface RolloutReadsDeps extends Pick<FeatureKit, "db" | "until"> {
  readonly many: Pick<Many, "states">;
}

type Names = "list" | "get" | "wait" | "devices" | "failures" | "steps";
export const unknownRollout = (rolloutId: string): AppError => new AppError("ROLLOUT_NOT_FOUND", { details: { rolloutId } });

export const createShow =
  ({ db, many }: { readonly db: Db; readonly many: Pick<Many, "states"> }) =>
  async (scope: SystemScope, rows: readonly RolloutRow[]): Promise<Rollout[]> => {
    const work = await db.tx((tx) =>
      many.states(
        tx,
        scope,
        rows.map(({ rolloutId }) => rolloutId),
      ),
    );
    const seen = async (row: RolloutRow) => (isLimited(scope) ? seenCounts(db, scope, row) : null);
    return Promise.all(rows.map(async (row) => toRollout(row, scope, work.get(row.rolloutId), await seen(row))));
  };

export const createRolloutReads = (deps: RolloutReadsDeps): Pick<Handlers<typeof contract.rollouts>, Names> => {
  const { db, until } = deps;
  const showAll = createShow(deps);
  const find = async (scope: SystemScope, rolloutId: string): Promise<RolloutRow> => {
    const row = await findRollout(db, scope, rolloutId);
    if (row === null) throw unknownRollout(rolloutId);
    return row;
  };
  const show = async (scope: SystemScope, row: RolloutRow) => {
    const [shown] = await showAll(scope, [row]);
    if (shown === undefined) throw new Error("a rollout got lost");
    return withActor(db, scope, shown);
  };
  return {
    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfRollouts(db, scope, query);
      return { items: await withActors(db, scope, await showAll(scope, items)), ...page };
    },
    get: async ({ scope }, { rolloutId }) => show(scope, await find(scope, rolloutId)),
    wait: async ({ scope, signal }, { rolloutId, status, timeout: seconds }) => {
      const read = () => find(scope, rolloutId);
      return show(scope, await until(scope, { subjectId: rolloutId, seconds, signal, read, isDone: (row) => status.includes(row.status) }));
    },
    devices: async ({ scope }, { rolloutId, ...query }) => pageOfDevices(db, scope, await find(scope, rolloutId), query),
    failures: async ({ scope }, { rolloutId }) => {
      const items = await groupFailures(db, scope, await find(scope, rolloutId));
      // They stand in the app's own failure, too, which takes its own permission.
      return { items: permissionsIn(scope).has("app:read") ? items : items.map((item) => ({ ...item, lines: [] })) };
    },
    steps: async ({ scope }, { rolloutId }) => {
      const { steps } = await find(scope, rolloutId);
      return { items: await withActors(db, scope, isLimited(scope) ? [] : steps) };
    },
  };
};
