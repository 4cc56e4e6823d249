// `npx tsx test/bench/simulation/real.ts 6000`: a real storm for the simulation to be held against. It connects agents to a real gateway, cuts all sockets at once, and writes how they came back.
import { writeFile } from "node:fs/promises";
import { createRandom, pause, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import { urlOf, withRig } from "../../chaos/rig/rig.ts";

const AGENTS = Number(process.argv[2] ?? 6_000);
const ACCEPT_PER_SECOND = 200;
const CONNECT_MS = 400_000;
const LOOK_MS = 50;
const FILE = new URL("real-storm.json", import.meta.url);

await withRig({ nodes: 1, seed: 1, env: { ACCEPT_PER_SECOND: String(ACCEPT_PER_SECOND), MAX_CONNECTIONS: "20000" } }, async (rig) => {
  const members = await rig.provision(AGENTS);
  const seed = 1;
  const group = createAgentGroup({
    url: urlOf(rig.agentProxy),
    members,
    tracker: createCommandTracker(time.elapsedMs),
    time,
    random: createRandom(seed),
    seed,
    heartbeatSec: null,
    pollOnlyPct: 0,
    rampPerSecond: ACCEPT_PER_SECOND - 10,
    onAlarm: () => undefined,
  });
  group.start();
  if (!(await until(time, () => group.connected === AGENTS, { everyMs: LOOK_MS, withinMs: CONNECT_MS })))
    throw new Error(`only ${group.connected} agents connected`);
  process.stderr.write("all agents are connected\n");
  // The last of them get the window for the whole fleet with the next tick, the others with their next session.
  await pause(time, 5_000);
  const startMs = time.elapsedMs();
  rig.agentProxy.reset();
  await until(time, () => group.connected === 0, { everyMs: 1, withinMs: 10_000 });
  const secondsUntil = async (share: number): Promise<number> => {
    if (!(await until(time, () => group.connected >= AGENTS * share, { everyMs: LOOK_MS, withinMs: CONNECT_MS }))) throw new Error("they did not come back");
    return Number(((time.elapsedMs() - startMs) / 1_000).toFixed(1));
  };
  const measured = {
    agents: AGENTS,
    acceptPerSecond: ACCEPT_PER_SECOND,
    halfSeconds: await secondsUntil(0.5),
    mostSeconds: await secondsUntil(0.99),
    allSeconds: await secondsUntil(1),
  };
  await group.stop();
  await writeFile(FILE, `${JSON.stringify(measured, null, 2)}\n`);
  process.stdout.write(`${JSON.stringify(measured)}\n`);
});
