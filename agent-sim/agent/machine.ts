// What an agent says of the machine that it runs on: its name and kind in `hello`, its figures in heartbeats, and what it has in the inventory.
import { readFileSync, statfsSync } from "node:fs";
import { arch, availableParallelism, cpus, freemem, hostname, loadavg, networkInterfaces, platform, release, totalmem, uptime } from "node:os";
import { AGENT_VERSION } from "./own-files.ts";

/** What a machine is and has. It changes seldom. */
export interface Inventory {
  readonly hostname: string;
  readonly platform: string;
  readonly arch: string;
  readonly osVersion: string;
  readonly agentVersion: string;
  readonly model?: string;
  /** Null: there is none, so the machine takes no backups. */
  readonly resticVersion?: string | null;
  /** The kinds of apps that its agent runs. */
  readonly runtimes?: readonly string[];
  readonly hardware: { readonly cpuCores?: number; readonly memoryBytes?: number; readonly diskBytes?: number };
  /** Where others in its networks reach it. */
  readonly ipAddresses: readonly string[];
}

export interface AgentMachine {
  readonly hostname: string;
  readonly os: string;
  readonly arch: string;
  readonly agentVersion: string;
  /** For a heartbeat. */
  metrics(): Readonly<Record<string, number>>;
  inventory(): Inventory;
}

export const percent = (part: number, whole: number): number => (whole > 0 ? Math.min(100, Math.round((part / whole) * 1_000) / 10) : 0);

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8").replaceAll("\0", "").trim() || undefined;
  } catch {
    // This system has no such file, or shows it to nobody.
    return undefined;
  }
};
const DISK = platform() === "win32" ? "C:\\" : "/";
const disk = (): { readonly bytes: number; readonly used: number } | null => {
  try {
    const { bsize, blocks, bfree } = statfsSync(DISK);
    return { bytes: blocks * bsize, used: (blocks - bfree) * bsize };
  } catch {
    return null;
  }
};

const MAX_TEXT = 128;
const osVersion = (): string => (/^PRETTY_NAME="?([^"\n]+)/m.exec(readText("/etc/os-release") ?? "")?.[1] ?? release()).slice(0, MAX_TEXT);
/** What boards without a name say. */
const NAMELESS = /^(system product name|to be filled by o\.e\.m\.|default string|none)$/i;
const model = (): string | undefined => {
  const named = readText("/proc/device-tree/model") ?? readText("/sys/class/dmi/id/product_name");
  return named === undefined || NAMELESS.test(named) ? undefined : named.slice(0, MAX_TEXT);
};

/** The interfaces of containers and virtual machines on this machine: nobody else reaches them. */
const INNER = /^(br-|cali|cni|docker|flannel|lxc|podman|veth|virbr)/;
const MAX_ADDRESSES = 16;
const ipAddresses = (): readonly string[] =>
  Object.entries(networkInterfaces())
    .flatMap(([name, addresses = []]) => (INNER.test(name) ? [] : addresses))
    .filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address))
    .map(({ address }) => address)
    .slice(0, MAX_ADDRESSES);

/** The one that the agent really runs on. */
export const thisMachine: AgentMachine = {
  hostname: hostname(),
  os: platform(),
  arch: arch(),
  agentVersion: AGENT_VERSION,
  metrics: () => {
    const { bytes, used } = disk() ?? { bytes: 0, used: 0 };
    return {
      cpu: percent(loadavg()[0] ?? 0, availableParallelism()),
      memory: percent(totalmem() - freemem(), totalmem()),
      ...(bytes > 0 ? { disk: percent(used, bytes) } : {}),
      uptimeSeconds: Math.floor(uptime()),
    };
  },
  inventory: () => {
    const [named, cores, total] = [model(), cpus().length, disk()?.bytes];
    return {
      hostname: hostname(),
      platform: platform(),
      arch: arch(),
      osVersion: osVersion(),
      agentVersion: AGENT_VERSION,
      ...(named === undefined ? {} : { model: named }),
      hardware: { ...(cores > 0 ? { cpuCores: cores } : {}), memoryBytes: totalmem(), ...(total === undefined ? {} : { diskBytes: total }) },
      ipAddresses: ipAddresses(),
    };
  },
};
