// Which apps need somebody. A few have a line each; many share one.
import { type Attention, type AttentionSource, MAX_ALONE, shownNames } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import type { AppCatalogue } from "./catalogue/load.ts";
import type { AppRow } from "./record.ts";
import { drifted, type FoundApps, findNeedy, inError, outdatedBy } from "./store/attention.ts";

type Common = Pick<Attention, "kind" | "tone"> & { readonly search: string };
type Facts = (app: AppRow) => Pick<Attention, "since" | "params">;

const linesOf = ({ first, total }: FoundApps, { search, ...common }: Common, factsOf: Facts): Attention[] => {
  if (total > MAX_ALONE) {
    const action = { place: "apps", id: null, search } as const;
    return [{ ...common, count: total, since: null, subject: null, names: shownNames(first), params: {}, action }];
  }
  return first.map((app) => ({
    ...common,
    ...factsOf(app),
    count: 1,
    subject: { kind: "app", id: app.appId, name: app.name },
    names: [app.name],
    action: { place: "apps", id: app.appId, search: "" },
  }));
};

export const createAppAttention = ({ db, catalogue }: Pick<FeatureKit, "db"> & { readonly catalogue: AppCatalogue }): AttentionSource => {
  const isOld = outdatedBy(catalogue.entries.map(({ template }) => template));
  return {
    needs: "app:read",
    find: async (scope) => {
      const take = MAX_ALONE + 1;
      const failed = await findNeedy(db, scope, inError, take);
      const drifting = await findNeedy(db, scope, drifted, take);
      const old = await findNeedy(db, scope, isOld, take);
      return [
        ...linesOf(failed, { kind: "apps_failed", tone: "bad", search: "status=error" }, ({ failure, updatedAt }) => ({
          since: updatedAt,
          params: failure === null ? {} : { reason: failure.reason },
        })),
        ...linesOf(drifting, { kind: "apps_drifted", tone: "warn", search: "drift=true" }, ({ driftSince }) => ({ since: driftSince, params: {} })),
        ...linesOf(old, { kind: "apps_outdated", tone: "info", search: "outdated=true" }, ({ appType, templateVersion }) => ({
          since: null,
          params: { from: templateVersion, to: catalogue.find(appType)?.template.version ?? "" },
        })),
      ];
    },
  };
};
