// The options of a process host, what it expects of the process of an app, and the bounds within which it supervises its apps.

import type { AppBackup, DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import type { Time } from "../../agent/index.ts";
import type { VolumePlace } from "../app-data.ts";
import type { HostOptions } from "../host.ts";
import type { HostVolumes } from "../volumes.ts";
import type { AppFolder } from "./app-folder.ts";
import type { Cgroups } from "./cgroups.ts";
import type { Disk } from "./disk.ts";

export const SUPERVISION = {
  /** Interval between two looks at a running app. */
  lookMs: 1_000,
  /** An app without a health check has started if it lives this long. */
  settleMs: 2_000,
  /** Delay before the first restart; each further one within the window doubles it. */
  backoffMs: 1_000,
  maxBackoffMs: 30_000,
  /** An app that ends more often than this within the window is given up. */
  crashes: 5,
  windowMs: 300_000,
  /** The size of an app's log, with the older part. */
  logBytes: 4_194_304,
};

export type HookStep = NonNullable<AppBackup["hooks"]["pre"]>;

/** Starts what has been prepared. */
export type Start = () => Promise<void>;

export interface AppProcess {
  isAlive(): Promise<boolean>;
  /** Checks everything that can be known before the start, and fetches the secrets. */
  prepare(app: DesiredApp, ownPorts: ReadonlySet<number>): Promise<Start>;
  /** Resolves once the app has started, rejects if it ends or takes too long. */
  untilHealthy(app: DesiredApp): Promise<void>;
  stop(app: DesiredApp | null): Promise<void>;
  /** How it ended, in words. */
  ending(): string;
  lastLines(): Promise<readonly string[]>;
  tail(lines: number): Promise<readonly string[]>;
  follow(signal: AbortSignal, isOver: () => boolean): AsyncIterable<string>;
  removeVolumes(): Promise<void>;
  /** The folders of the app's volumes by name. Refuses links. */
  volumes(app: DesiredApp): Promise<readonly VolumePlace[]>;
  /** Data that is in none of them, in words. Default: there is none. */
  outside?(): Promise<readonly string[]>;
  /** Nothing of the app changes its data from now on. */
  rest(app: DesiredApp, mode: "stop" | "pause"): Promise<void>;
  /** Ends the rest: resolves when it runs again. Does nothing to an app that runs. */
  wake(app: DesiredApp, mode: "stop" | "pause"): Promise<void>;
  /** Runs a command of the template in the app. Rejects with HOOK_FAILED. */
  hook(app: DesiredApp, step: HookStep): Promise<void>;
  figures(): { readonly cpuPercent: number | null; readonly memoryBytes: number | null };
  /** When what runs was started, by the device's clock. Null: nothing runs, or nobody knows. */
  startedAt(): Date | null;
}

export interface ProcessHostOptions extends HostOptions {
  /** The agent's data. Apps are below `apps/`. One process at a time may use it. */
  readonly folder: string;
  /** Each program is a folder with a `main.mjs`. Default: those that come with the agent. */
  readonly programs?: string;
  readonly time: Time;
  readonly supervision?: Partial<typeof SUPERVISION>;
  /** How the apps run; default: as processes of this machine. */
  readonly createProcess?: AppContext["createProcess"];
  /** Where their volumes are; default: in the folders of the apps. `apps` are those on the device. */
  readonly createVolumes?: (apps: () => readonly string[]) => HostVolumes;
  readonly disk?: Disk;
  /** Default: those of this machine. */
  readonly cgroups?: Cgroups;
  /** Called before each step of a change. */
  readonly onStep?: (step: string) => void;
}

/** What the apps of one process host share. */
export interface AppContext extends Required<Pick<ProcessHostOptions, "secretsOf" | "onChange" | "programs" | "time" | "disk" | "cgroups" | "onStep">> {
  readonly apps: string;
  /** The file that turns itself into an app's program. */
  readonly shim: string;
  /** The agent ends: nothing waits any longer, and nothing begins. */
  readonly closing: AbortSignal;
  readonly supervision: typeof SUPERVISION;
  /** The ports that other apps have, by number, and whose they are. */
  readonly createProcess: (context: AppContext, folder: AppFolder) => AppProcess;
  readonly portsOfOthers: (appId: string) => ReadonlyMap<number, string>;
}
