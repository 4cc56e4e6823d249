// What an agent says of the machine that it runs on: its name and kind in `hello`, its figures in heartbeats.
import { readFileSync } from "node:fs";
import { arch, availableParallelism, freemem, hostname, loadavg, platform, totalmem, uptime } from "node:os";
import { join } from "node:path";
import { packageRoot } from "./package-root.ts";

export const AGENT_VERSION = (JSON.parse(readFileSync(join(packageRoot(import.meta.dirname), "package.json"), "utf8")) as { version: string }).version;

export interface AgentMachine {
  readonly hostname: string;
  readonly os: string;
  readonly arch: string;
  readonly agentVersion: string;
  /** For a heartbeat. */
  metrics(): Readonly<Record<string, number>>;
}

export const percent = (part: number, whole: number): number => (whole > 0 ? Math.min(100, Math.round((part / whole) * 1_000) / 10) : 0);

/** The one that the agent really runs on. */
export const thisMachine: AgentMachine = {
  hostname: hostname(),
  os: platform(),
  arch: arch(),
  agentVersion: AGENT_VERSION,
  metrics: () => ({
    cpu: percent(loadavg()[0] ?? 0, availableParallelism()),
    memory: percent(totalmem() - freemem(), totalmem()),
    uptimeSeconds: Math.floor(uptime()),
  }),
};
