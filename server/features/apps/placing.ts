// Apps as deployments use them: one app per deployment, installed, changed and removed in the deployment's transaction.
import type { AppSummary, CommandId, DeviceId } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { DeviceRef } from "../../core/ports/delivery.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { sealSecrets } from "./app-secrets.ts";
import type { Contents } from "./contents.ts";
import { contentOfApp, type NewInstall, type Ordered, type Orders, type Update } from "./orders.ts";
import { type AppRow, toApp } from "./record.ts";
import { appsOfDeployment, lockApp, saveApp } from "./store/apps.ts";
import type { Content } from "./store/snapshots.ts";

/** Cancels a command that a feature ordered. `before` runs when the command is locked, and its end, if it ends at once, comes after it. */
export type CancelOrdered = (
  scope: SystemScope,
  command: DeviceRef & { readonly commandId: string },
) => Promise<
  (tx: Tx, order: { readonly by: string; readonly reason: string; readonly before: () => Promise<void> }) => Promise<{ readonly notify: () => void }>
>;

export interface Placement extends Omit<NewInstall, "seal" | "by"> {
  readonly secrets: Readonly<Record<string, string>>;
}

export interface Placing {
  readonly contents: Contents;
  /** Throws DEVICE_NOT_FOUND unless the caller sees the device. */
  requireDevice(tx: Tx, scope: TenantScope, deviceId: string): Promise<void>;
  install(tx: Tx, scope: TenantScope, placement: Placement): Promise<Ordered>;
  update(tx: Tx, scope: TenantScope, appId: string, update: Omit<Update, "by" | "content"> & { readonly content: (app: AppRow) => Content }): Promise<Ordered>;
  start(tx: Tx, scope: TenantScope, appId: string): Promise<Ordered>;
  stop(tx: Tx, scope: TenantScope, appId: string): Promise<Ordered>;
  remove(tx: Tx, scope: TenantScope, appId: string, keepVolumes: boolean): Promise<Ordered>;
  /** The app goes when its command has ended. `mark` moves the deployment first, while the app is locked. */
  cancel(
    scope: TenantScope,
    app: { readonly appId: string; readonly deviceId: DeviceId; readonly commandId: CommandId },
  ): Promise<(tx: Tx, mark: () => Promise<void>) => Promise<{ readonly notify: () => void }>>;
  of(
    db: Clients,
    scope: SystemScope,
    deploymentId: string,
  ): Promise<readonly { readonly summary: AppSummary; readonly drift: boolean; readonly content: Content }[]>;
}

export interface PlacingDeps extends Pick<FeatureKit, "plan" | "secretBox"> {
  readonly orders: Orders;
  readonly contents: Contents;
  readonly cancelOrdered: CancelOrdered;
  readonly knownDevices: (db: Clients, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
}

const locked = async (tx: Tx, scope: SystemScope, appId: string): Promise<AppRow> => {
  const app = await lockApp(tx, scope, appId);
  if (app === null) throw new AppError("INVALID_STATE_TRANSITION", { details: { from: "removed", to: "updating", allowed: [] } });
  return app;
};

export const createPlacing = ({ plan, secretBox, orders, contents, cancelOrdered, knownDevices }: PlacingDeps): Placing => ({
  contents,
  requireDevice: async (tx, scope, deviceId) => {
    if (!(await knownDevices(tx, scope, [deviceId])).has(deviceId)) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
  },
  install: async (tx, scope, { secrets, ...wanted }) => {
    await plan.require(tx, scope, "apps", 1);
    const complete = contents.secrets(wanted.content.appType, secrets);
    return orders.install(tx, scope, { ...wanted, by: actorOf(scope.principal), seal: (appId) => sealSecrets(secretBox, scope, appId, complete) });
  },
  update: async (tx, scope, appId, { content, ...update }) => {
    const app = await locked(tx, scope, appId);
    return orders.update(tx, scope, app, { ...update, content: content(app), by: actorOf(scope.principal) });
  },
  start: async (tx, scope, appId) => orders.start(tx, scope, await locked(tx, scope, appId), actorOf(scope.principal)),
  stop: async (tx, scope, appId) => orders.stop(tx, scope, await locked(tx, scope, appId), actorOf(scope.principal)),
  remove: async (tx, scope, appId, keepVolumes) => orders.remove(tx, scope, await locked(tx, scope, appId), { by: actorOf(scope.principal), keepVolumes }),
  cancel: async (scope, { appId, deviceId, commandId }) => {
    const { tenantId } = scope;
    const cancel = await cancelOrdered(scope, { tenantId, deviceId, commandId });
    return (tx, mark) =>
      cancel(tx, {
        by: actorOf(scope.principal),
        reason: "deployment_cancelled",
        before: async () => {
          await locked(tx, scope, appId);
          await mark();
          await saveApp(tx, scope, appId, { cancelAsked: true, version: { increment: 1 } });
        },
      });
  },
  of: async (db, scope, deploymentId) =>
    (await appsOfDeployment(db, scope, deploymentId)).map((row) => ({
      summary: { appId: row.appId, appName: row.name, deploymentId: deploymentId as AppSummary["deploymentId"], status: row.status, configuration: row.config }, // as: a row's id
      drift: toApp(row).drift,
      content: contentOfApp(row),
    })),
});
