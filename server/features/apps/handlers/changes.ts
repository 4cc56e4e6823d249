// Changes of apps by people: install, configure, start, stop, restart, update, remove.
import type { contract } from "../../../../protocol/index.ts";
import type { Clients, Tx } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import { sealSecrets } from "../app-secrets.ts";
import type { Contents } from "../contents.ts";
import { contentOfApp, type Ordered, type Orders } from "../orders.ts";
import { type AppRow, toApp } from "../record.ts";
import { findApp, lockApp, saveApp } from "../store/apps.ts";

export interface AppChangesDeps extends Pick<FeatureKit, "db" | "plan" | "secretBox"> {
  readonly orders: Orders;
  readonly contents: Contents;
  readonly knownDevices: (db: Clients, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly isOnline: (scope: SystemScope, deviceId: string) => Promise<boolean>;
  readonly adopt: (tx: Tx, scope: SystemScope, deploymentId: string) => Promise<void>;
}

type H = Handlers<typeof contract.apps>;
type Change = (tx: Tx, app: AppRow, by: string) => Promise<Ordered>;
export const unknownApp = (appId: string): AppError => new AppError("APP_NOT_FOUND", { details: { appId } });

export const lockedApp = async (tx: Tx, scope: SystemScope, appId: string): Promise<AppRow> => {
  const app = await lockApp(tx, scope, appId);
  if (app === null) throw unknownApp(appId);
  return app;
};

export const createAppChanges = (deps: AppChangesDeps): Pick<H, "create" | "change" | "remove" | "start" | "stop" | "restart" | "upgrade"> => ({
  ...createVerbs(deps),
  create: createInstall(deps),
  change: createChange(deps),
});

const createVerbs = ({ db, orders, contents, isOnline }: AppChangesDeps): Pick<H, "remove" | "start" | "stop" | "restart" | "upgrade"> => {
  const requireOnline = async (scope: TenantScope, appId: string): Promise<void> => {
    const app = await findApp(db, scope, appId);
    if (app !== null && !(await isOnline(scope, app.deviceId))) throw new AppError("DEVICE_OFFLINE", { details: { deviceId: app.deviceId } });
  };
  const verb =
    (order: (scope: TenantScope) => Change): H["start"] =>
    async ({ scope, commit }, { appId, requireOnline: isRequired }) => {
      if (isRequired) await requireOnline(scope, appId);
      return commit(async (tx, afterwards) => {
        const { app, notify } = await order(scope)(tx, await lockedApp(tx, scope, appId), actorOf(scope.principal));
        afterwards(notify);
        return toApp(app);
      });
    };
  return {
    start: verb((scope) => (tx, app, by) => orders.start(tx, scope, app, by)),
    stop: verb((scope) => (tx, app, by) => orders.stop(tx, scope, app, by)),
    restart: verb((scope) => (tx, app, by) => orders.restart(tx, scope, app, { by })),
    upgrade: verb((scope) => (tx, app, by) => {
      const { title: _, ...content } = contents.prepare(scope, app.appType, app.config);
      return orders.update(tx, scope, app, { content, event: "update", by });
    }),
    remove: ({ scope, commit }, { appId, keepVolumes }) =>
      commit(async (tx, afterwards) => {
        const { notify } = await orders.remove(tx, scope, await lockedApp(tx, scope, appId), { by: actorOf(scope.principal), keepVolumes });
        afterwards(notify);
        return null;
      }),
  };
};

const createInstall =
  ({ plan, orders, contents, secretBox, knownDevices, adopt }: AppChangesDeps): H["create"] =>
  ({ scope, commit, fail }, { appType, deviceId, name, tenantId = scope.tenantId, deploymentId, config, secrets }) => {
    if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
    const { title, ...content } = contents.prepare(scope, appType, config);
    const complete = contents.secrets(appType, secrets);
    const by = actorOf(scope.principal);
    return commit(async (tx, afterwards) => {
      await plan.require(tx, scope, "apps", 1);
      if (!(await knownDevices(tx, scope, [deviceId])).has(deviceId)) throw fail("DEVICE_NOT_FOUND", { deviceId });
      if (deploymentId !== undefined) await adopt(tx, scope, deploymentId);
      const { app, notify } = await orders.install(tx, scope, {
        content,
        deviceId,
        by,
        timeoutSeconds: 900,
        name: name ?? title,
        deploymentId: deploymentId ?? null,
        seal: (appId) => sealSecrets(secretBox, scope, appId, complete),
      });
      afterwards(notify);
      return toApp(app);
    });
  };

const createChange =
  ({ orders, contents }: AppChangesDeps): H["change"] =>
  ({ scope, commit, fail }, { appId, name, config, status, version }) =>
    commit(async (tx, afterwards) => {
      const before = await lockedApp(tx, scope, appId);
      if (version !== undefined && version !== before.version) throw fail("VERSION_CONFLICT", { currentVersion: before.version });
      const by = actorOf(scope.principal);
      const renamed = name === undefined ? before : await saveApp(tx, scope, appId, { name, version: { increment: 1 } });
      const ordered =
        config !== undefined
          ? await orders.update(tx, scope, renamed, { content: contents.configure(contentOfApp(renamed), config), event: "update", by })
          : await toStatus(orders, { tx, scope, app: renamed, by }, status);
      if (ordered === null) return toApp(renamed);
      afterwards(ordered.notify);
      return toApp(ordered.app);
    });

interface Target {
  readonly tx: Tx;
  readonly scope: TenantScope;
  readonly app: AppRow;
  readonly by: string;
}
/** Null: it is so already. */
const toStatus = async (orders: Orders, { tx, scope, app, by }: Target, status: "running" | "stopped" | undefined): Promise<Ordered | null> => {
  if (status === undefined || status === app.status) return null;
  return status === "running" ? orders.start(tx, scope, app, by) : orders.stop(tx, scope, app, by);
};
