// A Redis Cluster of three masters with a replica each, on free ports. Password: `secret`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askRedis } from "../../../server/platform/cluster/redis-link.ts";
import { eventually } from "../checks/eventually.ts";
import { freePort } from "../net/free-port.ts";
import { folderPrefix } from "../setup/run-mark.ts";

const PASSWORD = "secret";
const MASTERS = 3;
const LAST_SLOT = 16_383;
/** How long a member may be silent. */
const NODE_TIMEOUT_MS = 1_000;
/** A member writes each change of its slots to the disk before it answers. */
const ASK_MS = 15_000;

/** Each question opens a connection. */
const soon = <T>(question: () => Promise<T>): Promise<T> => eventually(question, { stepMs: 100 });
const words = (answer: unknown): string[] => (Array.isArray(answer) ? answer.map(String) : []);

export const startRedisCluster = async () => {
  const dir = await mkdtemp(join(tmpdir(), folderPrefix("redis-cluster")));
  const ports: number[] = [];
  for (let n = 0; n < 4 * MASTERS; n += 1) ports.push(await freePort());
  const children: ChildProcess[] = [];
  const run = (n: number): void => {
    const own = ["--port", String(ports[n]), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--requirepass", PASSWORD, "--masterauth", PASSWORD];
    const shared = ["--cluster-enabled", "yes", "--cluster-config-file", `nodes-${n}.conf`, "--cluster-port", String(ports[2 * MASTERS + n])];
    const timeouts = ["--cluster-node-timeout", String(NODE_TIMEOUT_MS), "--repl-ping-replica-period", "1", "--cluster-replica-validity-factor", "0"];
    children[n] = spawn("redis-server", [...own, ...shared, ...timeouts], { cwd: dir, stdio: "ignore" });
  };
  for (let n = 0; n < 2 * MASTERS; n += 1) run(n);
  const portOf = (member: number): number => ports[member] ?? 0;
  const ask = (member: number, ...command: readonly string[]): Promise<unknown> =>
    askRedis(`redis://:${PASSWORD}@127.0.0.1:${portOf(member)}`, command, ASK_MS);
  const isMaster = async (member: number): Promise<boolean> => words(await ask(member, "ROLE"))[0] === "master";
  const kill = async (member: number): Promise<void> => {
    const child = children[member];
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  const holds = async (member: number, text: string): Promise<void> =>
    soon(async () => {
      if (!String(await ask(member, "CLUSTER", "INFO")).includes(text)) throw new Error(`member ${member} does not say ${text}`);
    });

  for (const member of children.keys()) await soon(() => ask(member, "PING"));
  for (let member = 0; member < MASTERS; member += 1) {
    const [from, to] = [member, member + 1].map((n) => Math.floor((n * (LAST_SLOT + 1)) / MASTERS));
    await ask(member, "CLUSTER", "ADDSLOTSRANGE", String(from), String(Number(to) - 1));
    await ask(member, "CLUSTER", "SET-CONFIG-EPOCH", String(member + 1));
  }
  for (const member of children.keys()) await ask(member, "CLUSTER", "MEET", "127.0.0.1", String(portOf(0)), String(ports[2 * MASTERS]));
  for (const member of children.keys()) await holds(member, `cluster_known_nodes:${2 * MASTERS}`);
  for (let member = 0; member < MASTERS; member += 1) {
    const id = String(await ask(member, "CLUSTER", "MYID"));
    await soon(() => ask(MASTERS + member, "CLUSTER", "REPLICATE", id));
  }
  for (const member of children.keys()) await holds(member, "cluster_state:ok");
  for (let member = MASTERS; member < 2 * MASTERS; member += 1)
    await soon(async () => {
      if (!String(await ask(member, "INFO", "replication")).includes("master_link_status:up")) throw new Error("a replica does not follow");
    });

  return {
    /** For a user that each member knows. */
    urlOf: (user: string, password: string): string => {
      const members = [...children.keys()].map((member) => `127.0.0.1:${portOf(member)}`);
      return `redis-cluster://${user}:${password}@${members.slice(0, MASTERS).join(",")}`;
    },
    /** Asks each member. */
    askAll: async (...command: readonly string[]): Promise<void> => {
      for (const member of children.keys()) await ask(member, ...command);
    },
    /** The password of the user `default`. */
    password: PASSWORD,
    ask,
    isMaster,
    /** The replica of a master. */
    replicaOf: (member: number): number => member + MASTERS,
    kill,
    /** Starts it again; it finds the others, as a replica of whoever has its slots now. */
    start: async (member: number): Promise<void> => {
      run(member);
      await soon(() => ask(member, "PING"));
    },
    freeze: (member: number): void => void children[member]?.kill("SIGSTOP"),
    close: async () => {
      for (const member of children.keys()) await kill(member);
      await rm(dir, { recursive: true, force: true });
    },
  };
};
export type RedisClusterServers = Awaited<ReturnType<typeof startRedisCluster>>;
