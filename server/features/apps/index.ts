// Apps: the catalogue, and its applications on devices. The way of a change:
//
// 1. handlers/ checks what somebody wants and locks the app.
// 2. orders.ts writes the app, raises the device's desired version and orders the command, in one transaction; steps.ts moves the app's state, emits
//    the event and moves the app's deployment with it.
// 3. agent-reports.ts moves the app on when the command has ended, or when the agent reports a state. Nothing else changes a state.
import { contract, type DeviceId } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { GroupMachines } from "../../core/ports/machine-groups.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { type AgentReport, createAgentReports, type ReportAnswer } from "./agent-reports.ts";
import { createAppAttention } from "./attention.ts";
import { type Backing, createBacking } from "./backing.ts";
import type { AppCatalogue } from "./catalogue/load.ts";
import { createContents } from "./contents.ts";
import { desiredState } from "./desired-state.ts";
import { type DetailsDeps, type FindMachines, portsOfApp } from "./details.ts";
import { createAppChanges } from "./handlers/changes.ts";
import { createAppReads } from "./handlers/reads.ts";
import { createAppSecrets } from "./handlers/secrets.ts";
import { createAppSnapshots } from "./handlers/snapshots.ts";
import { createHideFor, createHideOnDevice } from "./hiding.ts";
import { type AppLogsWiring, createAppLogs, type LogReads } from "./logs/index.ts";
import { createAppMetrics } from "./metrics.ts";
import { type BackUpFirst, createOrders } from "./orders.ts";
import { type CancelOrdered, createPlacing, type Placing } from "./placing.ts";
import { type AppRollouts, createAppRollouts } from "./rollouts.ts";
import { createSteps, type FollowApps } from "./steps.ts";
import { keepFigures } from "./store/app-figures.ts";
import { commandOfApp, countApps, countAppsByDevice, countAppsByStatus, type DeviceAppCounts, findApp, findNamedApps, forgetRemoved } from "./store/apps.ts";
import { createTemplates } from "./templates.ts";

export type { BackedApp, Backing, KeptApp } from "./backing.ts";
export type { CheckedConfig, ConfigFault } from "./catalogue/check-config.ts";
export { completeSecrets } from "./catalogue/complete-secrets.ts";
export { type AppCatalogue, type CatalogueEntry, createAppCatalogue, loadAppCatalogue } from "./catalogue/load.ts";
export type { AppLogSettings, AppLogsWiring, LogReads } from "./logs/index.ts";
export type { BackUpFirst } from "./orders.ts";
export type { CancelOrdered, Placing } from "./placing.ts";
export type { AppRow } from "./record.ts";
export type { AppRollouts, AppUpdate } from "./rollouts.ts";
export type { AppMove, FollowApps } from "./steps.ts";
export type { Content } from "./store/snapshots.ts";

const HOUR_MS = 3_600_000;
/** How long the row of a removed app stays. */
const KEPT_DAYS = 30;

export interface AppsDeps extends Pick<FeatureKit, "db" | "clock" | "until" | "emit" | "enqueue" | "enqueueEach" | "plan" | "secretBox" | "audit" | "watch"> {
  readonly catalogue: AppCatalogue;
  readonly follow: FollowApps;
  /** The devices among these that the caller sees. */
  readonly knownDevices: (db: Clients, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly isOnline: (scope: SystemScope, deviceId: string) => Promise<boolean>;
  readonly cancelOrdered: CancelOrdered;
  readonly backUpFirst: BackUpFirst;
  readonly logs: AppLogsWiring;
  readonly machines: FindMachines;
  readonly lastBackups: DetailsDeps["lastBackups"];
  readonly machineGroups: GroupMachines;
  /** Whether the deployment waits for its device. */
  readonly adopt: (tx: Tx, scope: SystemScope, deploymentId: string) => Promise<void>;
}

/** The agent's view of its device. */
export interface DeviceApps {
  desiredState(scope: TenantScope, deviceId: DeviceId): Promise<Awaited<ReturnType<typeof desiredState>>>;
  report(scope: TenantScope, deviceId: DeviceId, report: AgentReport): Promise<ReportAnswer>;
  /** Returns whether somebody waits for these lines. */
  sendLogs(scope: TenantScope, deviceId: DeviceId, chunk: string): Promise<boolean>;
  /** Hides the secrets of all apps on the device in every text of a value. */
  hide<T>(tx: Tx, scope: SystemScope, deviceId: DeviceId, given: T): Promise<T>;
}

export interface AppsFeature extends Feature<typeof contract.apps> {
  readonly ofDevice: DeviceApps;
  readonly placing: Placing;
  readonly rollouts: AppRollouts;
  readonly backing: Backing;
  readonly logs: LogReads;
  /** Counts the apps of each device; one without apps is missing. */
  readonly countByDevice: (sql: SqlTx, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlyMap<string, DeviceAppCounts>>;
  readonly countByStatus: (scope: SystemScope) => Promise<ReadonlyMap<string, number>>;
  /** Where a port of an app is on its device: the one with this number, or the page, or the first. */
  readonly portOf: (
    db: Clients,
    scope: SystemScope,
    appId: string,
    port: number | undefined,
  ) => Promise<{ readonly deviceId: string; readonly port: number } | null>;
  readonly deviceOf: (db: Clients, scope: SystemScope, appId: string) => Promise<string | null>;
  /** As the targets of bulk operations. */
  readonly targets: { readonly named: typeof findNamedApps; readonly commandOf: typeof commandOfApp };
}

export const createAppFeature = (deps: AppsDeps): AppsFeature => {
  const { db } = deps;
  const steps = createSteps(deps);
  const orders = createOrders({ ...deps, steps });
  const contents = createContents(deps);
  const word = createAgentReports({ ...deps, steps, orders });
  const parts = { ...deps, steps, orders, contents };
  const logs = createAppLogs(deps);
  const placing = createPlacing(parts);
  return {
    handlers: implement(contract.apps, {
      ...createTemplates(deps),
      ...createAppReads(deps),
      ...createAppChanges(parts),
      ...createAppSecrets(parts),
      ...createAppSnapshots(parts),
      ...createAppMetrics(deps),
      ...logs.handlers,
    }),
    outcomes: { ...word.outcomes, ...logs.outcomes },
    portOf: async (clients, scope, appId, port) => {
      const app = await findApp(clients, scope, appId);
      if (app === null) return null;
      const ports = portsOfApp(app);
      const found = port === undefined ? ports[0] : ports.find((each) => each === port);
      return found === undefined ? null : { deviceId: app.deviceId, port: found };
    },
    deviceOf: async (clients, scope, appId) => (await findApp(clients, scope, appId))?.deviceId ?? null,
    hideFor: createHideFor(deps),
    logs: logs.reads,
    jobs: [logs.job, { name: "apps.forget", everyMs: HOUR_MS, run: () => forgetRemoved(db, secondsFromNow(-KEPT_DAYS * DAY_SECONDS, deps.clock.now())) }],
    attention: createAppAttention(deps),
    counters: { apps: countApps },
    countByDevice: countAppsByDevice,
    countByStatus: (scope) => countAppsByStatus(db, scope),
    targets: { named: findNamedApps, commandOf: commandOfApp },
    rollouts: createAppRollouts(parts),
    placing,
    backing: createBacking({ ...parts, placing }),
    ofDevice: {
      desiredState: (scope, deviceId) => desiredState(db, scope, deviceId),
      report: async (scope, deviceId, report) => {
        const { heard, ...answer } = await db.tx((tx) => word.report(tx, scope, deviceId, report));
        await keepFigures(db, scope, { version: report.version, apps: heard }, deps.clock.now());
        return answer;
      },
      sendLogs: logs.receive,
      hide: createHideOnDevice(deps),
    },
  };
};
