// Apps as rollouts use them: the content that a version means, the updates of a step, and the way back of an app whose update no device has got.
import { createHash } from "node:crypto";
import type { AppId, AppSpec } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import type { AppCatalogue } from "./catalogue/load.ts";
import type { Contents } from "./contents.ts";
import type { BackUpFirst } from "./orders.ts";
import type { AppRow } from "./record.ts";
import type { Steps } from "./steps.ts";
import { findApps, lockApp, raiseDesired } from "./store/apps.ts";
import { findContents, lockApps } from "./store/many.ts";
import { type Content, findContent } from "./store/snapshots.ts";
import { allows, installTier } from "./templates.ts";
import { answered, createUpdateMany, type UpdateAnswer, type WantedUpdate } from "./update-many.ts";

export interface TargetContent {
  readonly version: string;
  readonly spec: AppSpec;
  readonly contentHash: string;
}

export interface AppUpdate {
  readonly appId: string;
  /** A template's version with a configuration laid over the app's own, or a revision that the app had. */
  readonly to:
    | { readonly version: string; readonly spec: AppSpec; readonly configuration: Readonly<Record<string, unknown>> | null }
    | { readonly restore: number };
}
type Updated = Exclude<AppUpdate["to"], { restore: number }>;

export interface AppRollouts {
  /** The template's present version. Throws APP_TEMPLATE_NOT_FOUND or PLAN_UPGRADE_REQUIRED. */
  target(scope: TenantScope, templateId: string): TargetContent;
  /**
   * Answers in the order of the updates, within the share of the tenant's queue that is for many. An app is refused with INVALID_STATE_TRANSITION while
   * something else is under way, and with what an order or a configuration may be refused with.
   */
  updateMany(
    tx: Tx,
    scope: SystemScope,
    updates: readonly AppUpdate[],
    ordering: { readonly by: string; readonly expiresAt: Date },
  ): Promise<{ readonly answers: readonly UpdateAnswer[]; readonly notify: () => void }>;
  /** Makes the app what it was before this revision. The command must be held, and is canceled afterwards. */
  takeBack(tx: Tx, scope: SystemScope, app: { readonly appId: string; readonly revision: number; readonly before: number; readonly by: string }): Promise<void>;
}

export interface AppRolloutsDeps extends Pick<FeatureKit, "emit" | "plan" | "enqueueEach"> {
  readonly backUpFirst: BackUpFirst;
  readonly catalogue: AppCatalogue;
  readonly contents: Contents;
  readonly steps: Steps;
}

const hashOf = (spec: AppSpec): string => createHash("sha256").update(JSON.stringify(spec)).digest("hex");

export const createAppRollouts = ({ emit, plan, enqueueEach, catalogue, contents, steps, backUpFirst }: AppRolloutsDeps): AppRollouts => {
  const order = createUpdateMany({ emit, steps, backUpFirst, enqueueEach });
  const configured = (app: AppRow, { version, spec, configuration }: Updated): Content =>
    contents.configure({ appType: app.appType, templateVersion: version, spec, config: app.config }, { ...app.config, ...configuration });
  return {
    target: (scope, templateId) => {
      const entry = catalogue.find(templateId);
      if (entry === undefined) throw new AppError("APP_TEMPLATE_NOT_FOUND", { details: { templateId } });
      const { template, spec } = entry;
      if (!allows(installTier(plan, scope.tenant), template))
        throw new AppError("PLAN_UPGRADE_REQUIRED", { details: { templateId, requiredPlan: template.minPlan } });
      return { version: template.version, spec, contentHash: hashOf(spec) };
    },
    updateMany: async (tx, scope, updates, ordering) => {
      const appIds = updates.map(({ appId }) => appId);
      await lockApps(tx, scope, appIds);
      const apps = new Map((await findApps(tx, scope, appIds, appIds.length)).map((app) => [app.appId as string, app]));
      const restored = await findContents(
        tx,
        scope,
        updates.flatMap(({ appId, to }) => ("restore" in to ? [{ appId, revision: to.restore }] : [])),
      );
      const wanted = answered(updates, ({ appId, to }): WantedUpdate => {
        const app = apps.get(appId);
        if (app === undefined) throw new AppError("APP_NOT_FOUND", { details: { appId } });
        if (!("restore" in to)) return { app, content: configured(app, to), event: "update" };
        const content = restored.get(appId);
        if (content === undefined) throw new AppError("SNAPSHOT_NOT_FOUND", { details: { snapshotId: `revision ${to.restore}` } });
        return { app, content, event: "rollBack" };
      });
      return order(tx, scope, wanted, ordering);
    },
    takeBack: async (tx, scope, { appId, revision, before, by }) => {
      const app = await lockApp(tx, scope, appId as AppId); // as: a row's id
      if (app === null || app.revision !== revision) return;
      const content = await findContent(tx, scope, appId, before);
      if (content === null) return;
      // Reports that know the version before tell of the same revision, so the app keeps its own.
      await raiseDesired(tx, scope, app.deviceId);
      const back =
        app.status === "rolling_back"
          ? app
          : await steps.take(tx, scope, app, { event: "rollBack", by, reason: "ROLLOUT_WITHDRAWN", patch: { commandId: null } });
      await steps.take(tx, scope, back, { event: "ran", by, patch: { ...content, revision: before, commandId: null, failure: null } });
    },
  };
};
