// `npx tsx test/bench/simulation/real.ts 19000 150 renewed`: a real storm for the simulation to be held against. It connects agents to a real gateway, which accepts so
// many a second, cuts all sockets at once, and writes how they came back. Renewed: each agent has had another session since the fleet grew, so it has the window of
// the whole fleet. A process may open 20,000 files, so the agents are in two, and no proxy stands between them and the gateway.
import { type ChildProcess, fork } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { pause, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { urlOf, withRig } from "../../chaos/rig/rig.ts";
import { endWithParent } from "../child-processes.ts";
import type { Said, Told } from "./real-agents.ts";

const [AGENTS, ACCEPT_PER_SECOND] = [Number(process.argv[2] ?? 6_000), Number(process.argv[3] ?? 200)];
const isRenewed = process.argv[4] === "renewed";
const PARTS = 2;
const CONNECT_MS = 600_000;
/** So slowly that most are connected at any time. */
const RENEW_MS = 240_000;
const LOOK_MS = 50;
/** Other ends, such as a hello that comes too late, tell of agents that wait for their own process, and nothing about the gateway. */
const EXPECTED: ReadonlySet<string> = new Set(["closed with 1006 ", "refused with 503 node_full"]);
const FILE = new URL("real-storm.json", import.meta.url);
const PROGRAM = fileURLToPath(new URL("real-agents.ts", import.meta.url));

interface Part {
  readonly child: ChildProcess;
  said: Said;
}
const startPart = (): Part => {
  const part: Part = { child: endWithParent(fork(PROGRAM, { execArgv: ["--import", "tsx"] })), said: { connected: 0, ends: {} } };
  part.child.on("message", (said: Said) => {
    part.said = said;
  });
  return part;
};

const env = { ACCEPT_PER_SECOND: String(ACCEPT_PER_SECOND), MAX_CONNECTIONS: "20000" };
await withRig({ nodes: 1, seed: 1, env }, async ({ nodes: [node], provision }) => {
  if (node === undefined) throw new Error("the rig has no gateway");
  const members = await provision(AGENTS);
  const parts = Array.from({ length: PARTS }, startPart);
  const tell = (toldOf: (index: number) => Told): void => {
    for (const [index, { child }] of parts.entries()) child.send(toldOf(index));
  };
  const connected = (): number => parts.reduce((sum, { said }) => sum + said.connected, 0);
  const has = async (share: number): Promise<void> => {
    if (!(await until(time, () => connected() >= AGENTS * share, { everyMs: LOOK_MS, withinMs: CONNECT_MS })))
      throw new Error(`only ${connected()} agents are connected`);
  };

  tell((index) => ({
    url: urlOf(node),
    members: members.filter((_, place) => place % PARTS === index),
    seed: index + 1,
    rampPerSecond: (ACCEPT_PER_SECOND - 10) / PARTS,
  }));
  await has(1);
  process.stderr.write("all agents are connected\n");
  if (isRenewed) {
    tell(() => ({ withinMs: RENEW_MS }));
    let fewest = AGENTS;
    const look = (): boolean => {
      fewest = Math.min(fewest, connected());
      return false;
    };
    await until(time, look, { everyMs: LOOK_MS, withinMs: RENEW_MS });
    await has(1);
    process.stderr.write(`all have new sessions; ${fewest} at least were connected at any time\n`);
  }
  // The last of them get the window for the whole fleet with the next tick.
  await pause(time, 5_000);
  const startMs = time.elapsedMs();
  tell(() => ({ withinMs: 0 }));
  await until(time, () => connected() < AGENTS / 10, { everyMs: LOOK_MS, withinMs: 10_000 });
  const secondsUntil = async (share: number): Promise<number> => {
    await has(share);
    return Number(((time.elapsedMs() - startMs) / 1_000).toFixed(1));
  };
  const measured = {
    agents: AGENTS,
    acceptPerSecond: ACCEPT_PER_SECOND,
    grown: !isRenewed,
    halfSeconds: await secondsUntil(0.5),
    mostSeconds: await secondsUntil(0.99),
    allSeconds: await secondsUntil(1),
  };
  process.stdout.write(`${JSON.stringify(measured)}\n`);
  for (const { said } of parts) process.stderr.write(`${JSON.stringify(said)}\n`);
  tell(() => "stop");
  if (parts.some(({ said }) => Object.keys(said.ends).some((end) => !EXPECTED.has(end))))
    throw new Error("the agents' own processes were late: this machine is too busy");
  // as: this program wrote it
  const others = (JSON.parse(await readFile(FILE, "utf8")) as (typeof measured)[]).filter(({ agents }) => agents !== AGENTS);
  await writeFile(FILE, `${JSON.stringify([...others, measured], null, 2)}\n`);
});
