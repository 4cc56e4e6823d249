// Reads of apps.
import type { AppDetails, contract } from "../../../../protocol/index.ts";
import type { Handlers } from "../../../core/feature.ts";
import { withActors } from "../../../core/people/actors.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import { createShowApps, type DetailsDeps } from "../details.ts";
import type { AppRow } from "../record.ts";
import { isInTransition } from "../states.ts";
import { findApp, pageOfApps } from "../store/apps.ts";
import { unknownApp } from "./changes.ts";

type Names = "list" | "get" | "wait" | "timeline";

export const createAppReads = (deps: DetailsDeps & Pick<FeatureKit, "db" | "until">): Pick<Handlers<typeof contract.apps>, Names> => {
  const { db, until, catalogue } = deps;
  const versions = catalogue.entries.map(({ template }) => template);
  const showAll = createShowApps(deps);
  const find = async (scope: SystemScope, appId: string): Promise<AppRow> => {
    const app = await findApp(db, scope, appId);
    if (app === null) throw unknownApp(appId);
    return app;
  };
  const show = async (scope: SystemScope, app: AppRow): Promise<AppDetails> => {
    const [shown] = await showAll(scope, [app]);
    if (shown === undefined) throw new Error("an app got lost");
    return shown;
  };
  return {
    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfApps(db, scope, query, versions);
      return { items: await showAll(scope, items), ...page };
    },
    get: async ({ scope }, { appId }) => show(scope, await find(scope, appId)),
    wait: async ({ scope, signal }, { appId, status, timeout: seconds }) =>
      show(scope, await until(scope, { subjectId: appId, seconds, signal, read: () => find(scope, appId), isDone: (app) => status.includes(app.status) })),
    timeline: async ({ scope }, { appId }) => {
      const { commandId, deviceId, status, timeline } = await find(scope, appId);
      return { items: await withActors(db, scope, timeline), waitsFor: commandId !== null && isInTransition(status) ? { commandId, deviceId } : null };
    },
  };
};
