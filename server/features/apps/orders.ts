// What people want of apps, as orders to the device's agent: the app's row, the device's desired version and the command change together or not at all.
import { type AppId, type AppSpec, contract, type DeploymentId, type DeviceId } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { isAppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { orderOf } from "../../core/ports/command-outcomes.ts";
import type { Enqueue } from "../../core/ports/delivery.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SealedSecrets } from "./app-secrets.ts";
import { type AppRow, toDesired } from "./record.ts";
import { type AppEvent, moveApp } from "./states.ts";
import type { Steps } from "./steps.ts";
import type { AppPatch } from "./store/app-row.ts";
import { raiseDesired } from "./store/apps.ts";
import { type Content, insertSnapshot } from "./store/snapshots.ts";

type Verb = Exclude<keyof typeof contract.apps.commands, "logs" | "followLogs">;

export interface Ordered {
  readonly app: AppRow;
  /** Call it after the commit. */
  readonly notify: () => void;
}

export interface NewInstall {
  readonly content: Content;
  readonly deviceId: DeviceId;
  readonly deploymentId: DeploymentId | null;
  readonly name: string;
  readonly timeoutSeconds: number;
  readonly by: string;
  /** The secrets, for this app. */
  readonly seal: (appId: AppId) => SealedSecrets;
}

export interface Update {
  readonly content: Content;
  readonly event: "update" | "rollBack";
  readonly by: string;
  readonly rolledBackTo?: number | null;
  /** The device must have got the order by then. */
  readonly expiresAt?: Date | undefined;
}

export interface Orders {
  install(tx: Tx, scope: SystemScope, wanted: NewInstall): Promise<Ordered>;
  update(tx: Tx, scope: SystemScope, app: AppRow, update: Update): Promise<Ordered>;
  start(tx: Tx, scope: SystemScope, app: AppRow, by: string): Promise<Ordered>;
  stop(tx: Tx, scope: SystemScope, app: AppRow, by: string): Promise<Ordered>;
  restart(tx: Tx, scope: SystemScope, app: AppRow, restart: { readonly by: string; readonly patch?: AppPatch }): Promise<Ordered>;
  /** From a device that is gone the app is gone, too. */
  remove(tx: Tx, scope: SystemScope, app: AppRow, removal: { readonly by: string; readonly keepVolumes: boolean }): Promise<Ordered>;
}

/** Makes backups of apps that are about to be updated, if their template or a policy asks for it. A backup's command is ahead of the update's in the app's lane. */
export type BackUpFirst = (tx: Tx, scope: SystemScope, appIds: readonly AppId[], by: string) => Promise<{ readonly notify: () => void }>;

export interface OrdersDeps {
  readonly backUpFirst: BackUpFirst;
  readonly enqueue: Enqueue;
  readonly emit: Emit;
  readonly steps: Steps;
}

interface Order {
  readonly event: AppEvent;
  readonly verb: Verb;
  readonly by: string;
  readonly patch?: AppPatch;
  readonly rolledBackTo?: number | null;
  readonly expiresAt?: Date | undefined;
}

export const both = (first: () => void, second: () => void) => (): void => {
  first();
  second();
};
const isGone = (error: unknown): boolean => isAppError(error) && error.code === "DEVICE_NOT_FOUND";

/** The command that brings the app to what its row says. */
export const commandFor = (app: AppRow, { verb, by, expiresAt }: Pick<Order, "verb" | "by" | "expiresAt">) => {
  const { appId, deviceId, revision, desiredVersion, timeoutSeconds } = app;
  const ordered = orderOf(contract.apps.commands[verb], {
    deviceId,
    key: `${appId}:${revision}:${verb}:${desiredVersion}`,
    orderedBy: by,
    payload: { app: toDesired(app), desiredVersion },
    executionTimeoutSeconds: timeoutSeconds,
  });
  return { ...ordered, terms: { expiresAt } };
};

/** What an update changes in the app's row, beside its order. */
export const revised = (app: AppRow, content: Content) =>
  ({ ...content, revision: app.lastRevision + 1, lastRevision: app.lastRevision + 1, desiredState: "running" }) as const;

export const createOrders = ({ enqueue, emit, steps, backUpFirst }: OrdersDeps): Orders => {
  const send = async (tx: Tx, scope: SystemScope, app: AppRow, asked: Pick<Order, "verb" | "by" | "expiresAt">) => {
    const { commandIds, notify } = await enqueue(tx, scope, [commandFor(app, asked)]);
    return { commandId: commandIds[0] ?? null, notify };
  };

  const order = async (tx: Tx, scope: SystemScope, app: AppRow, { event, verb, by, patch = {}, rolledBackTo = null, expiresAt }: Order): Promise<Ordered> => {
    moveApp(app.status, event);
    const desiredVersion = await raiseDesired(tx, scope, app.deviceId);
    const change = { ...patch, desiredVersion };
    const { commandId, notify } = await send(tx, scope, { ...app, ...change } as AppRow, { verb, by, expiresAt }); // as: a change holds plain values
    const saved = { ...change, commandId, cancelAsked: false, failure: null };
    return { app: await steps.take(tx, scope, app, { event, by, patch: saved, rolledBackTo }), notify };
  };

  const start: Orders["start"] = (tx, scope, app, by) => {
    // An agent that never got this revision has nothing to start.
    const verb = app.reported?.revision === app.revision ? "start" : "deploy";
    return order(tx, scope, app, { event: "start", verb, by, patch: { desiredState: "running" } });
  };

  return {
    start,
    install: async (tx, scope, { content, deviceId, deploymentId, name, timeoutSeconds, by, seal }) => {
      const desiredVersion = await raiseDesired(tx, scope, deviceId);
      const appId = newId("app");
      const sealed = seal(appId);
      const secretsVersion = sealed.secrets === null ? 0 : 1;
      const made = { appId, deviceId, deploymentId, name, ...content, ...sealed, secretsVersion, desiredVersion, timeoutSeconds };
      const first = { ...made, revision: 1, desiredState: "running", keepVolumes: false } as AppRow; // as: all that an order reads
      const { commandId, notify } = await send(tx, scope, first, { verb: "deploy", by });
      return { app: await steps.insert(tx, scope, { ...made, commandId, createdBy: by }, by), notify };
    },
    update: async (tx, scope, app, { content, event, by, rolledBackTo = null, expiresAt }) => {
      moveApp(app.status, event);
      const backup = event === "update" ? await backUpFirst(tx, scope, [app.appId], by) : null;
      const snapshot = await insertSnapshot(tx, scope, app, { automatic: true, metadata: {}, by });
      const { appId } = app;
      const data = { appId, snapshotId: snapshot.snapshotId, revision: app.revision, automatic: true };
      await emit(tx, [happened(scope, contract.apps.events.snapshotCreated, appId, data)]);
      const ordered = await order(tx, scope, app, { event, verb: "deploy", by, patch: revised(app, content), rolledBackTo, expiresAt });
      return backup === null ? ordered : { ...ordered, notify: both(backup.notify, ordered.notify) };
    },
    stop: (tx, scope, app, by) => order(tx, scope, app, { event: "stop", verb: "stop", by, patch: { desiredState: "stopped" } }),
    restart: (tx, scope, app, restart) => order(tx, scope, app, { event: "restart", verb: "restart", ...restart }),
    remove: async (tx, scope, app, { by, keepVolumes }) => {
      const patch = { desiredState: "removed", keepVolumes } as const;
      try {
        return await order(tx, scope, app, { event: "remove", verb: "remove", by, patch });
      } catch (error) {
        if (!isGone(error)) throw error;
        const removing = await steps.take(tx, scope, app, { event: "remove", by, patch: { ...patch, commandId: null } });
        return { app: await steps.take(tx, scope, removing, { event: "removed", by, reason: "DEVICE_REMOVED" }), notify: () => undefined };
      }
    },
  };
};

/** The content of an app, for another revision of it. */
export const contentOfApp = ({ appType, templateVersion, config, spec }: AppRow): Content => ({ appType, templateVersion, config, spec: spec as AppSpec });
