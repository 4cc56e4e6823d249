// One gateway of the rig: the real program as a direct child, on a port that it keeps across restarts.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { packageRoot } from "../../../agent-sim/agent/index.ts";
import { type Child, plainEnv, startChild } from "../../kit/net/children.ts";
import { freePort } from "../../kit/net/free-port.ts";

const READY_MS = 60_000;

export interface Node {
  readonly name: string;
  readonly port: number;
  /** Where visitors of tunnels come, unless the settings name another port. */
  readonly edgePort: number;
  readonly alive: boolean;
  /** The number of starts. */
  readonly lives: number;
  /** Runs the gateway of the package in `root`; without one, the one that it ran last. */
  start(root?: string): Promise<void>;
  kill(): Promise<void>;
  /** Sends SIGTERM; returns the exit code, or null if it had to be killed. */
  stop(): Promise<number | null>;
  signal(name: NodeJS.Signals): void;
  /** Resident memory; null where /proc is missing. */
  residentBytes(): Promise<number | null>;
  readonly said: string;
}

/** The package that the rig belongs to. */
export const OWN_ROOT = packageRoot(import.meta.dirname);

const programOf = (root: string): string => {
  const program = join(root, "dist", "server", "main.js");
  if (!existsSync(program)) throw new Error("the gateway is not built; build it with: npm run build");
  return program;
};

export const createNode = async (name: string, env: Readonly<Record<string, string>>, root = OWN_ROOT): Promise<Node> => {
  let program = programOf(root);
  const [port, edgePort] = [await freePort(), await freePort()];
  let child: Child | null = null;
  let lives = 0;
  return {
    name,
    port,
    edgePort,
    get alive() {
      return child?.alive ?? false;
    },
    get lives() {
      return lives;
    },
    get said() {
      return child?.said ?? "";
    },
    start: async (other) => {
      if (other !== undefined) program = programOf(other);
      lives += 1;
      child = startChild({
        command: process.execPath,
        words: [program],
        env: { ...plainEnv(), EDGE_PORT: String(edgePort), ...env, NODE_ID: name, PORT: String(port), INTERNAL_PORT: "0" },
      });
      await child.waitFor("is ready at", READY_MS);
    },
    kill: async () => void (await child?.kill()),
    stop: async () => (child ? child.stop() : null),
    signal: (signal) => child?.signal(signal),
    residentBytes: async () => {
      const status = await readFile(`/proc/${child?.pid ?? -1}/status`, "utf8").catch(() => "");
      const kib = /VmRSS:\s+(\d+)/.exec(status)?.[1];
      return kib === undefined ? null : Number(kib) * 1_024;
    },
  };
};
