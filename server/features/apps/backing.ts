// Apps as backups use them: what one is now, with its secrets, and one that is installed again from what a backup kept of it.
import type { AppId, BackupContent, DesiredApp, DeviceId } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { openSecrets } from "./app-secrets.ts";
import { contentOfApp, type Ordered, type Orders } from "./orders.ts";
import type { Placing } from "./placing.ts";
import { type AppRow, toDesired } from "./record.ts";
import { findApp, findApps, lockApp } from "./store/apps.ts";
import type { Content } from "./store/snapshots.ts";

export interface BackedApp {
  readonly appId: AppId;
  readonly deviceId: DeviceId;
  readonly name: string;
  readonly status: AppRow["status"];
  /** An agent has had it, so there may be data. */
  readonly hasRun: boolean;
  readonly desired: DesiredApp;
  readonly content: BackupContent;
  readonly spec: AppRow["spec"];
}
/** What a backup kept of an app. */
export interface KeptApp {
  readonly content: BackupContent;
  readonly spec: AppRow["spec"];
}

export interface Backing {
  /** Null: there is no such app, or none that the caller sees. */
  find(db: Clients, scope: SystemScope, appId: string): Promise<BackedApp | null>;
  /** The same; until the transaction ends, nobody else changes it. */
  lock(tx: Tx, scope: SystemScope, appId: string): Promise<BackedApp | null>;
  /** The apps with these ids, or all, which the caller sees. */
  select(db: Clients, scope: SystemScope, appIds: readonly string[] | null, limit: number): Promise<readonly BackedApp[]>;
  secretsOf(db: Clients, scope: SystemScope, appId: string): Promise<Readonly<Record<string, string>>>;
  /** Installs it again, as another app. Throws APP_TEMPLATE_NOT_FOUND or PLAN_LIMIT_EXCEEDED. */
  install(
    tx: Tx,
    scope: TenantScope,
    on: { readonly deviceId: DeviceId; readonly kept: KeptApp; readonly secrets: Readonly<Record<string, string>> },
  ): Promise<Ordered>;
  /** Gives the app its former version and configuration; null if it has them. The app is locked. */
  turnBack(tx: Tx, scope: SystemScope, appId: string, to: { readonly kept: KeptApp; readonly by: string }): Promise<Ordered | null>;
}

export interface BackingDeps extends Pick<FeatureKit, "secretBox"> {
  readonly orders: Orders;
  readonly placing: Placing;
}

const TIMEOUT_SECONDS = 900;

const toBacked = (row: AppRow): BackedApp => ({
  appId: row.appId,
  deviceId: row.deviceId,
  name: row.name,
  status: row.status,
  hasRun: row.reported !== null,
  desired: toDesired(row),
  content: { appName: row.name, template: row.appType, templateVersion: row.templateVersion, revision: row.revision, configuration: row.config },
  spec: row.spec,
});
const contentOf = ({ content, spec }: KeptApp): Content => ({
  appType: content.template,
  templateVersion: content.templateVersion,
  config: content.configuration,
  spec,
});
const isSame = (a: Content, b: Content): boolean =>
  a.templateVersion === b.templateVersion && JSON.stringify(Object.entries(a.config).sort()) === JSON.stringify(Object.entries(b.config).sort());

export const createBacking = ({ secretBox, orders, placing }: BackingDeps): Backing => ({
  find: async (db, scope, appId) => {
    const row = await findApp(db, scope, appId);
    return row === null ? null : toBacked(row);
  },
  lock: async (tx, scope, appId) => {
    const row = await lockApp(tx, scope, appId);
    return row === null ? null : toBacked(row);
  },
  select: async (db, scope, appIds, limit) => (await findApps(db, scope, appIds, limit)).map(toBacked),
  secretsOf: async (db, scope, appId) => {
    const row = await findApp(db, scope, appId);
    return row === null ? {} : openSecrets(secretBox, scope, row);
  },
  install: (tx, scope, { deviceId, kept, secrets }) =>
    placing.install(tx, scope, {
      content: contentOf(kept),
      deviceId,
      deploymentId: null,
      name: kept.content.appName,
      timeoutSeconds: TIMEOUT_SECONDS,
      secrets,
    }),
  turnBack: async (tx, scope, appId, { kept, by }) => {
    const row = await lockApp(tx, scope, appId);
    if (row === null || isSame(contentOfApp(row), contentOf(kept))) return null;
    return orders.update(tx, scope, row, { content: contentOf(kept), event: "rollBack", by });
  },
});
