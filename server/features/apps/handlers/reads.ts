// Reads of apps.
import type { App, contract } from "../../../../protocol/index.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { FeatureKit } from "../../kit.ts";
import { toApp } from "../record.ts";
import { isInTransition } from "../states.ts";
import { findApp, pageOfApps } from "../store/apps.ts";

type Names = "list" | "get" | "wait" | "timeline";

export const createAppReads = ({ db, until }: Pick<FeatureKit, "db" | "until">): Pick<Handlers<typeof contract.apps>, Names> => ({
  list: ({ scope }, query) => pageOfApps(db, scope, query),
  get: async ({ scope, fail }, { appId }) => {
    const app = await findApp(db, scope, appId);
    if (app === null) throw fail("APP_NOT_FOUND", { appId });
    return toApp(app);
  },
  wait: async ({ scope, signal, fail }, { appId, status, timeout: seconds }) => {
    const read = async (): Promise<App> => {
      const app = await findApp(db, scope, appId);
      if (app === null) throw fail("APP_NOT_FOUND", { appId });
      return toApp(app);
    };
    return until(scope, { subjectId: appId, seconds, signal, read, isDone: (app) => status.includes(app.status) });
  },
  timeline: async ({ scope, fail }, { appId }) => {
    const app = await findApp(db, scope, appId);
    if (app === null) throw fail("APP_NOT_FOUND", { appId });
    const { commandId, deviceId, status, timeline } = app;
    return { items: [...timeline], waitsFor: commandId !== null && isInTransition(status) ? { commandId, deviceId } : null };
  },
});
