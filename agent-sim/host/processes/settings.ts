// What a process host is given, and the bounds within which it supervises its apps.
import type { Time } from "../../agent/index.ts";
import type { HostOptions } from "../host.ts";
import type { AppFolder } from "./app-folder.ts";
import type { AppProcess } from "./app-process.ts";
import type { Cgroups } from "./cgroups.ts";
import type { Disk } from "./disk.ts";

export const SUPERVISION = {
  /** Interval between two looks at a running app. */
  lookMs: 500,
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

export interface ProcessHostOptions extends HostOptions {
  /** The agent's data. Apps are below `apps/`. One process at a time may use it. */
  readonly folder: string;
  /** Each program is a folder with a `main.mjs`. Default: those that come with the agent. */
  readonly programs?: string;
  readonly time: Time;
  readonly supervision?: Partial<typeof SUPERVISION>;
  /** How the apps run; default: as processes of this machine. */
  readonly createProcess?: AppContext["createProcess"];
  readonly disk?: Disk;
  /** Default: those of this machine. */
  readonly cgroups?: Cgroups;
  /** Called before each step of a change. */
  readonly onStep?: (step: string) => void;
}

/** What the apps of one process host share. */
export interface AppContext extends Required<Pick<ProcessHostOptions, "secretsOf" | "onChange" | "programs" | "time" | "disk" | "cgroups" | "onStep">> {
  readonly apps: string;
  /** The agent ends: nothing waits any longer, and nothing begins. */
  readonly closing: AbortSignal;
  readonly supervision: typeof SUPERVISION;
  /** The ports that other apps have, by number, and whose they are. */
  readonly createProcess: (context: AppContext, folder: AppFolder) => AppProcess;
  readonly portsOfOthers: (appId: string) => ReadonlyMap<number, string>;
}
