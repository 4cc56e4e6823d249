// Opens the host that the command line names, connected with its agent.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ReportedApp } from "../../protocol/records/apps/app-spec.ts";
import { type Agent, type CommandHandlers, type Inventory, type Time, thisMachine } from "../agent/index.ts";
import { runProgram } from "../children/index.ts";
import { findRepositoryBy } from "./backups/access.ts";
import type { BackupEngine } from "./backups/engine.ts";
import { createBackupHandlers, createVolumeHandlers } from "./backups/handlers.ts";
import { createOffers, type Offers } from "./backups/offers.ts";
import { openRealEngine, openRestic } from "./backups/real-engine.ts";
import { INSTALL_LINE } from "./backups/restic.ts";
import { createSimulatedEngine, openBackupMemory, simulatedVolumes } from "./backups/simulated-engine.ts";
import { createComposeHost, dockerEnvironment } from "./compose.ts";
import { createHostHandlers } from "./handlers.ts";
import { type Host, type HostOptions, refuse } from "./host.ts";
import { createInventorySync } from "./inventory-sync.ts";
import { createLogHandlers } from "./log-handlers.ts";
import { createDeviceMesh, type DeviceMeshOptions } from "./mesh/mesh.ts";
import { readText, replaceFile, systemDisk } from "./processes/disk.ts";
import { openProcessHost } from "./processes/process-host.ts";
import { createReadState } from "./read-state.ts";
import { ADVERTISE_FILE, ALLOW_FILE, readAllowed, readNetworks } from "./services.ts";
import { createSimulatedHost } from "./simulated.ts";
import { type AppliedVersion, createStateSync, fetchSecretsBy } from "./state-sync.ts";
import { createDeviceTunnels } from "./tunnels.ts";

export const HOST_KINDS = ["simulated", "process", "compose"] as const;
export type HostKind = (typeof HOST_KINDS)[number];

const DOCKER_WITHIN_MS = 10_000;
/** The kinds of apps that a host runs on this machine, which may lack Docker. */
export const runtimesOf = async (kind: HostKind, time: Time, closing: AbortSignal): Promise<readonly string[]> => {
  if (kind !== "compose") return kind === "process" ? ["process"] : ["process", "compose"];
  const words = ["compose", "version", "--short"];
  const { outcome, code } = await runProgram({ command: "docker", words, env: dockerEnvironment(), time, signals: [closing], withinMs: DOCKER_WITHIN_MS });
  // A machine that is starting may be too busy to answer.
  return outcome === "late" || (outcome === "ended" && code === 0) ? ["compose"] : [];
};

export interface DeviceHost {
  readonly kind: HostKind;
  readonly handlers: CommandHandlers;
  /** Begins to report, at first within this time. */
  start(agent: Pick<Agent, "call"> & Partial<Pick<Agent, "signed">>, windowMs?: number): void;
  /** Where programs of this machine find the proxy to mesh routes; null while the device is no consumer. */
  readonly socksPort: number | null;
  /** What the machine's operator may ask without the gateway. */
  readonly apps: Pick<Host, "report" | "tail" | "follow"> & {
    /** Starts the processes of an app anew that should run. Rejects with HostFailure. */
    restart(appId: string): Promise<ReportedApp>;
  };
  /** Leaves the apps running. */
  close(): Promise<void>;
}

export interface DeviceHostOptions {
  readonly kind: HostKind;
  /** The folder of the agent's data. */
  readonly folder: string;
  readonly time: Time;
  readonly seed: number;
  readonly deviceId: string;
  /** The port of the proxy to mesh routes, on loopback; 0: a free one. Without it there is none: many devices may share a machine. */
  readonly socksPort?: number | undefined;
  /** For names that a router of mesh routes resolves. Default: the system's. */
  readonly lookup?: DeviceMeshOptions["lookup"];
  /** The folder of the programs that apps of a process host run; default: those that come with the agent. */
  readonly programs?: string | undefined;
  /** For the machine's operator. */
  readonly say?: (text: string) => void;
}

interface Opened {
  readonly host: Host;
  readonly engine: BackupEngine;
  readonly handlers: CommandHandlers;
}

const openHost = ({ kind, folder, time, seed, deviceId, programs }: DeviceHostOptions, shared: HostOptions, call: Agent["call"], offers: Offers): Opened => {
  const ofBackups = { find: findRepositoryBy({ call, time, folder: join(folder, "backups") }), folder: join(folder, "backups"), time, deviceId, offers };
  if (kind === "simulated") {
    const host = createSimulatedHost({ ...shared, time, seed });
    const memory = openBackupMemory(join(folder, "backups"));
    const engine = createSimulatedEngine({ ...ofBackups, host, seed, memory });
    return { host, engine, handlers: { ...createBackupHandlers(engine), ...createVolumeHandlers({ data: simulatedVolumes(host), time }) } };
  }
  // What a killed agent left running must not read data that changes again.
  const restic = openRestic(ofBackups);
  const host =
    kind === "process"
      ? openProcessHost({ ...shared, folder, time, ...(programs === undefined ? {} : { programs }) })
      : createComposeHost({ ...shared, folder, time });
  const engine = openRealEngine({ ...ofBackups, host, restic });
  return { host, engine, handlers: { ...createBackupHandlers(engine), ...createVolumeHandlers({ data: host.data, time }) } };
};

/** Kept in a file, so that a restart does not carry out again what has failed. */
const appliedIn = (folder: string): AppliedVersion => {
  const path = join(folder, "desired-version");
  let version = Number.parseInt(readText(path) ?? "0", 10) || 0;
  return {
    get: () => version,
    raise: (next) => {
      if (next <= version) return;
      version = next;
      try {
        replaceFile(systemDisk, path, String(version));
      } catch (error) {
        // On a full disk, the next start may carry out once more what has been carried out.
        if (!(error instanceof Error && "syscall" in error)) throw error;
      }
    },
  };
};

export const openDeviceHost = (options: DeviceHostOptions): DeviceHost => {
  const { folder, time } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const applied = appliedIn(folder);
  let changed = (): void => undefined;
  let stop = (): void => undefined;
  const closing = new AbortController();
  let provideCall: (call: Agent["call"]) => void = () => undefined;
  const connected = new Promise<Agent["call"]>((resolve) => {
    provideCall = resolve;
  });
  const call: Agent["call"] = async (...called) => (await connected)(...called);
  // An app that the host starts anew at once waits until there is an agent.
  const shared: HostOptions = { secretsOf: async (appId) => fetchSecretsBy(await connected, time)(appId), onChange: () => changed() };
  const offers = createOffers(time);
  const read = createReadState();
  const { host, engine, handlers } = openHost(options, shared, call, offers);
  const logs = createLogHandlers({ host, time, call });
  let signed: Agent["signed"] | undefined;
  const signing = { headersFor: (url: string) => signed?.("GET", new URL(url).pathname) ?? {}, time, random: Math.random };
  const mesh = createDeviceMesh({ ...signing, socksPort: options.socksPort ?? null, lookup: options.lookup, say: options.say });
  const tunnels = createDeviceTunnels({
    call,
    ...signing,
    mesh,
    offers,
    // Read each time: a change counts with the next connection.
    reach: () => ({ networks: readAllowed(readText(join(folder, ALLOW_FILE)) ?? ""), folder }),
    onChange: () => changed(),
    say: options.say,
  });
  return {
    kind: options.kind,
    handlers: { ...createHostHandlers({ host, onVersion: applied.raise, newerThan: read.newerThan }), ...logs.handlers, ...handlers, ...tunnels.handlers },
    start: ({ call, ...agent }, windowMs) => {
      signed = agent.signed;
      const onIgnored = (appIds: readonly string[]): void =>
        options.say?.(`the gateway does not know these apps, which stay as they are: ${appIds.join(", ")}`);
      const onRefused = (networks: readonly string[]): void => options.say?.(`the gateway makes no mesh routes of these networks: ${networks.join(", ")}`);
      const advertises = (): readonly string[] => readNetworks(readText(join(folder, ADVERTISE_FILE)) ?? "");
      const sync = createStateSync({ host, call, time, applied, onRead: read.set, onIgnored, tunnels: tunnels.report, advertises, onRefused });
      let found: Pick<Inventory, "resticVersion" | "runtimes"> = {};
      const machine = { inventory: () => ({ ...thisMachine.inventory(), ...found }) };
      const inventory = createInventorySync({ machine, call, time });
      changed = sync.changed;
      stop = () => {
        sync.stop();
        tunnels.stop();
        inventory.stop();
      };
      provideCall(call);
      void Promise.all([engine.version(), runtimesOf(options.kind, time, closing.signal)]).then(([version, runtimes]) => {
        if (closing.signal.aborted) return;
        found = { runtimes, resticVersion: version };
        inventory.start(windowMs);
        if (runtimes.length === 0) options.say?.("docker compose does not answer on this machine, so it runs no containers");
        if (version === null) options.say?.(`there is no restic on this machine, so it takes no backups: ${INSTALL_LINE}`);
      });
      if (signed !== undefined) tunnels.start();
      sync.start(windowMs);
    },
    apps: {
      report: () => host.report(),
      tail: (appId, lines) => host.tail(appId, lines),
      follow: (appId, signal) => host.follow(appId, signal),
      restart: async (appId) => {
        const app = host.revision(appId) ?? refuse("UNKNOWN_APP", "this app is not on the device");
        if (host.report().some((each) => each.appId === appId && each.state === "stopped"))
          return refuse("APP_STOPPED", "this app was stopped by an order, and starts by one");
        return host.restart({ ...app, state: "running" });
      },
    },
    get socksPort() {
      return mesh.socksPort;
    },
    close: async () => {
      closing.abort();
      stop();
      logs.stop();
      await host.close();
    },
  };
};
