// Saved views of a tenant's people: their own and those that all share.
import { contract, type SavedView } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { ownerOf, type SystemScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { countViews, deleteView, findView, insertView, lockViews, pageOfViews, updateView } from "./store.ts";

/** The most views of one person or key, and of a tenant. */
const MAX_OWN = 100;
const MAX_VIEWS = 500;

const unknown = (viewId: string): AppError => new AppError("VIEW_NOT_FOUND", { details: { viewId } });

type Told = "created" | "updated" | "deleted";
/** As those see it who share the view; null: they see neither. */
const changeFor = (before: SavedView, after: SavedView): Told | null => {
  if (!before.shared) return after.shared ? "created" : null;
  return after.shared ? "updated" : "deleted";
};

export const createViews = ({ db, emit }: Pick<FeatureKit, "db" | "emit">): Feature<typeof contract.views> => {
  /** Others learn of the views that they share, and of no others. */
  const tell = async (tx: Tx, scope: SystemScope, { viewId, place }: SavedView, change: Told): Promise<void> => {
    await emit(tx, [happened(scope, contract.views.events.changed, viewId, { viewId, place, change })]);
  };
  return {
    handlers: implement(contract.views, {
      list: async ({ scope }, query) => pageWithActors(db, scope, await pageOfViews(db, scope, query)),
      get: async ({ scope }, { viewId }) => {
        const view = await findView(db, scope, viewId);
        if (view === null) throw unknown(viewId);
        return withActor(db, scope, view);
      },
      create: ({ scope, fail, commit }, fields) =>
        commit(async (tx) => {
          const createdBy = ownerOf(scope.principal);
          await lockViews(tx, scope);
          const { own, all } = await countViews(tx, scope, createdBy);
          if (own >= MAX_OWN) throw fail("VIEW_LIMIT_REACHED", { limit: MAX_OWN });
          if (all >= MAX_VIEWS) throw fail("VIEW_LIMIT_REACHED", { limit: MAX_VIEWS });
          const view = await insertView(tx, scope, { ...fields, createdBy });
          if (view.shared) await tell(tx, scope, view, "created");
          return view;
        }),
      update: ({ scope, fail, commit }, change) =>
        commit(async (tx) => {
          const before = await findView(tx, scope, change.viewId);
          if (before === null) throw unknown(change.viewId);
          // Nobody takes a shared view from the others but by deleting it.
          const isTaken = before.shared && change.shared === false && before.createdBy !== ownerOf(scope.principal);
          if (isTaken) throw new AppError("FORBIDDEN", { details: { reason: "view_of_another", viewId: before.viewId } });
          const view = await updateView(tx, scope, change);
          if (view === null) throw fail("VERSION_CONFLICT", { currentVersion: (await findView(tx, scope, change.viewId))?.version ?? before.version });
          const told = changeFor(before, view);
          if (told !== null) await tell(tx, scope, view, told);
          return view;
        }),
      remove: ({ scope, commit }, { viewId }) =>
        commit(async (tx) => {
          const view = await findView(tx, scope, viewId);
          if (view === null || !(await deleteView(tx, scope, viewId))) throw unknown(viewId);
          if (view.shared) await tell(tx, scope, view, "deleted");
          return null;
        }),
    }),
  };
};
