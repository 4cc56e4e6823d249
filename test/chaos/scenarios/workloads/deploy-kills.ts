// Gateways and agents that are killed in the middle of deployments, updates and rollbacks: nothing hangs, and no process is left behind.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { callWithRetry, createRandom, pause, type Random, systemTime as time, until } from "../../../../agent-sim/agent/index.ts";
import { type DeploymentOrder, type DeploymentVerb, deployAll, ordersFor } from "../../../../agent-sim/fleet/deployments.ts";
import { freePort } from "../../../kit/net/free-port.ts";
import { makeFolder } from "../../../kit/setup/workspace.ts";
import type { OnDevice } from "../../check/deploy-checker.ts";
import { readCounters } from "../../check/deploy-truth.ts";
import { headersOf, inLanes, isSuccess, patience, tally } from "../../rig/calls.ts";
import { countsOf, type DeployFleet, notesOn, withDeployFleet } from "../../rig/deploy-fleet.ts";
import { type ProcessAgent, withProcessAgents } from "../../rig/process-agents.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { type Context, hurried, type Scenario, type ScenarioOutcome } from "../../scenario.ts";

const FULL = { devices: 60, agents: 4, perDevice: 3, everyMs: 2_000, restMs: 180_000 };
const SHORT = { devices: 6, agents: 2, perDevice: 1, everyMs: 1_500, restMs: 60_000 };
const IMPATIENT_MS = 8_000;
const TIMEOUT_SECONDS = 60;
const CALLS_MS = 180_000;
/** Of the simulated devices, whose updates then roll back by themselves. */
const FAILURES = { health: 0.2 };
/** Between an order and the first kill: somewhere in the middle of it. */
const SOON_MS = 400;

interface Stage {
  readonly rig: Rig;
  readonly fleet: DeployFleet;
  readonly agents: readonly ProcessAgent[];
  readonly random: Random;
  readonly size: typeof FULL;
  readonly restMs: number;
}

interface Placed {
  readonly deploymentId: string;
  readonly port: number;
}

/** Until the work is done, kills a gateway, then an agent, then cuts connections, again and again; counts the faults. */
const killing = async ({ rig, agents, random, size }: Stage, work: Promise<unknown>): Promise<number> => {
  const state = { over: false, faults: 0 };
  const done = work.finally(() => {
    state.over = true;
  });
  const trouble = async (): Promise<void> => {
    await pause(time, random() * SOON_MS);
    for (let turn = 0; !state.over || turn === 0; turn += 1) {
      const [node, agent] = [rig.nodes[turn % rig.nodes.length], agents[turn % agents.length]];
      await node?.kill();
      await agent?.kill();
      state.faults += 2 + rig.agentProxy.reset(0.3);
      await node?.start();
      const untilMs = time.elapsedMs() + size.everyMs * (0.5 + random());
      await until(time, () => state.over || time.elapsedMs() > untilMs, { everyMs: 50, withinMs: size.everyMs * 2 });
    }
  };
  await Promise.all([done, trouble()]);
  return state.faults;
};

const ordersOf = async ({ agents, size }: Stage): Promise<readonly DeploymentOrder[]> =>
  Promise.all(
    ordersFor(agents, size.perDevice, TIMEOUT_SECONDS).map(async (order) => ({ ...order, configuration: { ...order.configuration, port: await freePort() } })),
  );

/** Changes each, under fire, and waits until everything has come to rest under fire too. Returns how the gateway answered. */
const changeAll = async (stage: Stage, placed: readonly Placed[], verb: DeploymentVerb, bodyOf: (one: Placed, index: number) => object) => {
  const answers = new Map<string, number>();
  const { fleet, restMs } = stage;
  const work = inLanes(placed, 16, async (one, index) => {
    const answer = await fleet.portal.change(one.deploymentId, verb, { key: randomUUID(), body: bodyOf(one, index), retry: patience(CALLS_MS) });
    tally(answers, isSuccess(answer) ? "accepted" : String(answer.status));
  });
  const faults = await killing(stage, work);
  await fleet.untilSettled(restMs);
  return { faults, accepted: answers.get("accepted") ?? 0, answers };
};

const removeAll = ({ rig }: Stage, placed: readonly Placed[]): Promise<void> =>
  inLanes(placed, 16, async ({ deploymentId }) => {
    const headers = { ...headersOf(rig.credentials), "idempotency-key": randomUUID() };
    const answer = await callWithRetry(() => rig.http.call({ method: "DELETE", path: `/v1/deployments/${deploymentId}`, headers }), patience(CALLS_MS));
    if (answer.status !== 204) throw new Error(`a deployment could not be removed: ${answer.status} ${JSON.stringify(answer.body)}`);
  });

/** Asks each app of the real agents for its page. */
const silentPages = async (ports: readonly number[]): Promise<number> => {
  const answers = await Promise.all(
    ports.map((port) =>
      fetch(`http://127.0.0.1:${port}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    ),
  );
  return answers.filter((ok) => !ok).length;
};

/** The port of somebody else, which makes an update of a real app fail before it stops what runs. */
const withTakenPort = async <T>(use: (port: number) => Promise<T>): Promise<T> => {
  const port = await freePort();
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  try {
    return await use(port);
  } finally {
    server.close();
  }
};

const everywhere = ({ fleet, agents }: Stage): OnDevice => new Map([...fleet.onDevices(), ...agents.flatMap((agent) => [...agent.onDevice()])]);
const orphansOf = ({ agents }: Stage): number => agents.reduce((sum, agent) => sum + agent.orphans().length, 0);

const drill = async (stage: Stage, takenPort: number, control: boolean): Promise<ScenarioOutcome> => {
  const { fleet, size, restMs, agents } = stage;
  const state = { placed: [] as readonly Placed[], changes: 0, faults: 0 };
  const real = await ordersOf(stage);
  const orders = [...real, ...ordersFor(fleet.members, size.perDevice, TIMEOUT_SECONDS)];
  state.faults += await killing(
    stage,
    deployAll(fleet.portal, orders, patience(CALLS_MS)).then((deployed) => {
      state.placed = deployed.map(({ deploymentId, order }) => ({ deploymentId, port: Number(order.configuration["port"]) }));
    }),
  );
  await fleet.untilSettled(restMs);
  const change = async (verb: DeploymentVerb, bodyOf: (one: Placed, index: number) => object): Promise<void> => {
    const { faults, accepted } = await changeAll(stage, state.placed, verb, bodyOf);
    state.faults += faults;
    state.changes += accepted;
  };
  // Each app stays at its port. The first real one wants the port of somebody else, which it cannot have.
  await change("redeploy", ({ port }, index) => ({ configuration: { port: index === 0 ? takenPort : port } }));
  if (!control) await change("redeploy", ({ port }) => ({ configuration: { port } }));
  if (!control) await change("rollback", () => ({}));
  const ids = state.placed.map(({ deploymentId }) => deploymentId);
  const { verdict } = await fleet.judge(ids, { withinMs: control ? IMPATIENT_MS : restMs, onDevice: () => everywhere(stage) });
  await until(time, () => orphansOf(stage) === 0, { everyMs: 200, withinMs: control ? 1_000 : 20_000 });
  const orphans = orphansOf(stage);
  const silent = control ? 0 : await silentPages(real.map(({ configuration }) => Number(configuration["port"])));
  if (!control) await removeAll(stage, state.placed);
  await fleet.untilSettled(control ? 0 : restMs);
  const gone = await fleet.judge(ids, { withinMs: control ? 0 : restMs, onDevice: () => everywhere(stage) });
  const left = agents.reduce((sum, agent) => sum + agent.processes().length - 1, 0);
  return {
    n: state.placed.length + state.changes,
    faults: state.faults,
    violations: {
      ...countsOf(verdict),
      orphans,
      silent,
      "left-behind": control ? 0 : Math.max(0, left),
      unremoved: control ? 0 : gone.facts.filter(({ status }) => status !== "deleted").length,
    },
    latencyMs: { p50: null, p99: null },
    notes: [
      `n counts revisions of ${ids.length} deployments on ${fleet.members.length} simulated devices and ${agents.length} real agents with ${real.length} processes: deployed, updated twice, rolled back and removed`,
      `${agents.reduce((sum, { deaths }) => sum + deaths, 0)} kills of an agent, ${stage.rig.nodes.reduce((sum, { lives }) => sum + lives - 1, 0)} of a gateway; ${verdict.outcomes} outcomes, ${verdict.rolledBack} automatic rollbacks, ${(await readCounters(fleet.sql)).deadlocks} deadlocks`,
      ...notesOn(verdict),
    ],
  };
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed, redis: true }, async (rig) => {
    const size = scale.agents > 50 ? FULL : SHORT;
    const folder = makeFolder("process-agents");
    const options = { members: await rig.provision(size.devices), seed, clock: hurried(scale.haste), failures: FAILURES };
    try {
      return await withDeployFleet(rig, options, (fleet) =>
        withProcessAgents(rig, size.agents, {
          folder,
          leavesStrays: control,
          use: (agents) =>
            withTakenPort((port) =>
              drill({ rig, fleet, agents, random: createRandom(seed), size, restMs: control ? IMPATIENT_MS : size.restMs }, port, control),
            ),
        }),
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

export const deployKillScenarios: readonly Scenario[] = [
  {
    name: "deploy-kills",
    promise: "D3",
    claim:
      "across kill -9 of gateways and agents in deployments, updates and rollbacks nothing hangs, no process is left, and each device runs what its records say",
    needsRedis: true,
    control: { how: "a killed agent leaves a process in each app's folder that carries no mark", red: "orphans" },
    run,
  },
];
