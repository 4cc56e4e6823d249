// Reads of apps.
import type { contract } from "../../../../protocol/index.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { FeatureKit } from "../../kit.ts";
import { toApp } from "../record.ts";
import { isInTransition } from "../states.ts";
import { findApp, pageOfApps } from "../store/apps.ts";

export const createAppReads = ({ db }: Pick<FeatureKit, "db">): Pick<Handlers<typeof contract.apps>, "list" | "get" | "timeline"> => ({
  list: ({ scope }, query) => pageOfApps(db, scope, query),
  get: async ({ scope, fail }, { appId }) => {
    const app = await findApp(db, scope, appId);
    if (app === null) throw fail("APP_NOT_FOUND", { appId });
    return toApp(app);
  },
  timeline: async ({ scope, fail }, { appId }) => {
    const app = await findApp(db, scope, appId);
    if (app === null) throw fail("APP_NOT_FOUND", { appId });
    const { commandId, deviceId, status, timeline } = app;
    return { items: [...timeline], waitsFor: commandId !== null && isInTransition(status) ? { commandId, deviceId } : null };
  },
});
