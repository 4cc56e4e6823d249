// The apps of one agent of a fleet: a simulated host, the commands about apps, and the reports to the gateway.
import { createHash } from "node:crypto";
import type { DesiredApp, ReportedApp } from "../../protocol/records/apps/app-spec.ts";
import type { Agent, CommandHandlers, Time } from "../agent/index.ts";
import { findRepositoryBy } from "../host/backups/access.ts";
import { createBackupHandlers, createVolumeHandlers } from "../host/backups/handlers.ts";
import {
  type BackupFailures,
  type BackupMemory,
  createSimulatedEngine,
  openBackupMemory,
  type SimulatedEngineOptions,
  simulatedVolumes,
} from "../host/backups/simulated-engine.ts";
import { createHostHandlers } from "../host/handlers.ts";
import type { Host } from "../host/host.ts";
import { createLogHandlers } from "../host/log-handlers.ts";
import { createReadState } from "../host/read-state.ts";
import { createSimulatedHost, type SimulatedHostOptions } from "../host/simulated.ts";
import { createStateSync, fetchSecretsBy } from "../host/state-sync.ts";

/** The shares that fail, from 0 to 1. `hanging`: of the orders, those that the agent begins and gives up at their deadline. */
export type AppFailures = NonNullable<SimulatedHostOptions["failures"]> & { readonly hanging?: number; readonly backups?: BackupFailures };

/** About this share of the orders fails, a quarter of it each way. */
export const failingIn = (share: number): AppFailures => ({ starting: share / 4, health: share / 4, hanging: share / 4, running: share / 4 });

export interface FleetApps {
  readonly handlers: CommandHandlers;
  report(): readonly ReportedApp[];
  /** No more reports. */
  stop(): void;
}

export interface FleetAppsOptions {
  readonly time: Time;
  readonly seed: number;
  readonly failures: AppFailures;
  readonly call: Agent["call"];
  /** What the device's repositories hold; default: nothing, and it lasts as long as this process. */
  readonly memory?: BackupMemory;
  /** Changes what the engine does, such as a test that kills the device before a step. */
  readonly tuneBackups?: Partial<SimulatedEngineOptions>;
  /** An earlier process may have deployed some, which this one has to bring back. Default: no. */
  readonly mayHaveApps?: boolean;
}

/** Some orders are never carried out, the same for the same seed. */
const hanging = (host: Host, seed: number, share: number): Host => {
  const never = new Promise<never>(() => undefined);
  const hangs = ({ template, config, revision }: DesiredApp): boolean =>
    share > 0 &&
    createHash("sha256")
      .update(JSON.stringify([seed, template, config, revision]))
      .digest()
      .readUInt32BE() <
      share * 2 ** 32;
  return {
    ...host,
    apply: (desired) => (hangs(desired) ? never : host.apply(desired)),
    restart: (desired) => (hangs(desired) ? never : host.restart(desired)),
  };
};

/** An agent that never had an app reports none, so fleets without apps cost the gateway nothing. */
export const createFleetApps = (options: FleetAppsOptions): FleetApps => {
  const { time, seed, failures, call, mayHaveApps = false, memory = openBackupMemory(null), tuneBackups = {} } = options;
  let version: number | null = null;
  const { hanging: hangingShare = 0, backups: backupFailures = {}, ...ofHost } = failures;
  const host = createSimulatedHost({ time, seed, failures: ofHost, secretsOf: fetchSecretsBy(call, time), onChange: () => sync.changed() });
  const raise = (next: number): void => {
    if (version === null) sync.start();
    version = Math.max(version ?? 0, next);
  };
  const read = createReadState();
  const sync = createStateSync({ host, call, time, applied: { get: () => version ?? 0, raise }, onRead: read.set });
  const logs = createLogHandlers({ host, time, call });
  const find = findRepositoryBy({ call, time, folder: "/simulated" });
  const engine = createSimulatedEngine({ host, find, time, seed, memory, failures: backupFailures, ...tuneBackups });
  const ofBackups = { ...createBackupHandlers(engine), ...createVolumeHandlers({ data: simulatedVolumes(host), time }) };
  if (mayHaveApps) raise(0);
  return {
    handlers: {
      ...createHostHandlers({ host: hanging(host, seed, hangingShare), onVersion: raise, newerThan: read.newerThan }),
      ...logs.handlers,
      ...ofBackups,
    },
    report: host.report,
    stop: () => {
      sync.stop();
      logs.stop();
    },
  };
};
