// The rig's own Redis: a direct child without persistence, so a restart forgets everything.
import { spawnSync } from "node:child_process";
import { connect } from "node:net";
import { type Child, startChild } from "../../kit/net/children.ts";
import { freePort } from "../../kit/net/free-port.ts";

const READY_MS = 10_000;
const ANSWER_MS = 3_000;

export interface ChaosRedis {
  readonly port: number;
  start(): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Sends one command and returns the first line of the reply. */
  ask(...words: readonly string[]): Promise<string>;
}

export const hasRedis = (): boolean => spawnSync("redis-server", ["--version"]).status === 0;

export const createRedis = async (folder: string): Promise<ChaosRedis> => {
  if (!hasRedis()) throw new Error("redis-server is not installed; install it with: apt-get install redis-server");
  const port = await freePort();
  let child: Child | null = null;
  return {
    port,
    start: async () => {
      const words = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no", "--enable-debug-command", "local"];
      child = startChild({ command: "redis-server", words, env: { PATH: process.env["PATH"] }, cwd: folder });
      await child.waitFor("Ready to accept connections", READY_MS);
    },
    kill: async () => void (await child?.kill()),
    stop: async () => {
      child?.signal("SIGCONT");
      await child?.stop();
    },
    signal: (name) => child?.signal(name),
    ask: (...words) =>
      new Promise((resolve, reject) => {
        const socket = connect(port, "127.0.0.1");
        socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error("Redis does not answer")));
        socket.once("error", reject);
        socket.once("data", (reply) => {
          socket.destroy();
          resolve(reply.toString("utf8").split("\r\n")[0] ?? "");
        });
        socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
      }),
  };
};
