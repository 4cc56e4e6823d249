// A Redis with a replica and three sentinels that watch over both, on free ports. Password: `secret`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askRedis } from "../../../server/platform/cluster/redis-link.ts";
import { eventually } from "../checks/eventually.ts";
import { freePort } from "../net/free-port.ts";
import { folderPrefix } from "../setup/run-mark.ts";

const PASSWORD = "secret";
const MASTER = "watched";

export interface Sentinels {
  readonly url: string;
  /** Asks one of the two servers. */
  ask(server: number, ...words: readonly string[]): Promise<unknown>;
  /** The number of the server that is the master by its own word. */
  master(): Promise<number>;
  kill(server: number): Promise<void>;
  freeze(server: number): void;
  close(): Promise<void>;
}

export const startSentinels = async (): Promise<Sentinels> => {
  const dir = await mkdtemp(join(tmpdir(), folderPrefix("sentinels")));
  const children: ChildProcess[] = [];
  const run = (...words: readonly string[]): ChildProcess => {
    const child = spawn("redis-server", [...words], { cwd: dir, stdio: "ignore" });
    children.push(child);
    return child;
  };
  const ports: number[] = [];
  for (let n = 0; n < 5; n += 1) ports.push(await freePort());
  const [first, second, ...watching] = ports;
  const own = ["--bind", "127.0.0.1", "--save", "", "--requirepass", PASSWORD, "--masterauth", PASSWORD];
  const servers = [run("--port", String(first), ...own), run("--port", String(second), ...own, "--replicaof", "127.0.0.1", String(first))];
  const urlOf = (server: number): string => `redis://:${PASSWORD}@127.0.0.1:${ports[server]}`;
  const ask: Sentinels["ask"] = (server, ...words) => askRedis(urlOf(server), words);
  const ends = async (child: ChildProcess | undefined): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  await eventually(async () => {
    if (!String(await ask(1, "INFO", "replication")).includes("master_link_status:up")) throw new Error("the replica does not follow");
  });
  for (const port of watching) {
    const file = join(dir, `sentinel-${port}.conf`);
    const settings = [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${dir}`,
      `sentinel monitor ${MASTER} 127.0.0.1 ${first} 2`,
      `sentinel auth-pass ${MASTER} ${PASSWORD}`,
      `sentinel down-after-milliseconds ${MASTER} 500`,
      `sentinel failover-timeout ${MASTER} 3000`,
    ];
    await writeFile(file, `${settings.join("\n")}\n`);
    run(file, "--sentinel");
  }
  for (const port of watching)
    await eventually(async () => {
      const others = await askRedis(`redis://127.0.0.1:${port}`, ["SENTINEL", "SENTINELS", MASTER]);
      const replicas = await askRedis(`redis://127.0.0.1:${port}`, ["SENTINEL", "REPLICAS", MASTER]);
      if (!Array.isArray(others) || others.length !== 2 || !Array.isArray(replicas) || replicas.length !== 1)
        throw new Error("the sentinels do not know each other");
    });
  return {
    url: `redis-sentinel://:${PASSWORD}@${watching.map((port) => `127.0.0.1:${port}`).join(",")}/0?master=${MASTER}`,
    ask,
    master: () =>
      Promise.any(
        [0, 1].map(async (server) => {
          const role = await ask(server, "ROLE");
          if (!Array.isArray(role) || String(role[0]) !== "master") throw new Error("no master");
          return server;
        }),
      ),
    kill: (server) => ends(servers[server]),
    freeze: (server) => void servers[server]?.kill("SIGSTOP"),
    close: async () => {
      for (const child of children) await ends(child);
      await rm(dir, { recursive: true, force: true });
    },
  };
};
