// One node with as many agents as its file descriptors allow: the cost of an idle fleet, and how soon all agents are back after a cut.

import { waitUntil } from "../gateway.ts";
import { type GatewayWithAgents, startGatewayWithAgents } from "../gateway-with-agents.ts";
import { serverNs, startLoader } from "../loader.ts";
import { socketLimit } from "../machine.ts";
import { checkCommands } from "../read-back.ts";
import type { Finding } from "../report.ts";
import { writeRequests } from "../requests.ts";
import { checkReply, InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const WANTED = 19_000;
const WIDTH = 512;
/** As many connects at once as the listener's queue holds. The kernel would drop the SYN of any more, and they would wait seconds for a retry. */
const STORM_WIDTH = 500;
const HEARTBEAT_SECONDS = 30;
const CALLERS = 32;
const WAITING_COMMANDS = 2_000;

interface Fleet extends GatewayWithAgents {
  readonly agents: number;
}

/** The wanted size, or fewer if the limit of open files is lower; the results say which. */
export const fleetSize = (): number => Math.min(WANTED, Math.floor(socketLimit()));

const startFleet = async (stage: BenchStage, agents: number): Promise<Fleet> => {
  const running = await startGatewayWithAgents(stage, agents);
  const { ready, refused } = await running.loader.connect(agents, WIDTH);
  if (ready !== agents) throw new InvalidRun(`${ready} of ${agents} agents are ready, ${refused} were refused`);
  return { ...running, agents };
};

const idle = async ({ loader, agents }: Fleet): Promise<Finding> => {
  const rate = agents / HEARTBEAT_SECONDS;
  const reply = await loader.run({ warmMs: 3_000, windowMs: 15_000, connections: agents, rate });
  checkReply("gateway", reply);
  const share = (serverNs(reply) / reply.windowNs) * 100;
  return {
    id: "idle-fleet",
    value: share * (WANTED / agents),
    note: `${agents} agents, ${Math.round(rate)} heartbeats/s`,
    rounds: [{ agents, share, heartbeats: reply.windowAnswers }],
  };
};

/** Queues commands while no agent is connected. */
const queueCommands = async (stage: BenchStage, { gateway, tenant, members }: Fleet): Promise<number> => {
  const caller = await startLoader(stage, { protocol: "http", port: gateway.port, connections: CALLERS, serverPids: [gateway.pid] });
  const headers = { "x-api-key": tenant.apiKey, "x-svc-tenant-id": tenant.tenantId };
  const requests = members.map(({ deviceId }) => ({
    method: "POST" as const,
    path: `/v1/devices/${deviceId}/commands`,
    headers,
    body: { type: "ping" },
    expected: deviceId,
  }));
  await caller.requests(writeRequests(stage, requests));
  await caller.connect(CALLERS, CALLERS);
  const reply = await caller.run({ warmMs: 0, windowMs: 3_000, connections: CALLERS, rate: WAITING_COMMANDS / 3 });
  checkReply("caller", reply);
  return reply.answers;
};

const storm = async (stage: BenchStage, fleet: Fleet): Promise<readonly Finding[]> => {
  const { loader, agents, tenant } = fleet;
  await loader.cut();
  const queued = await queueCommands(stage, fleet);
  const startMs = performance.now();
  const { ready, windowNs } = await loader.connect(agents, STORM_WIDTH);
  if (ready !== agents) throw new InvalidRun(`${ready} of ${agents} agents came back`);
  const last = { applied: 0, duplicates: 0 };
  await waitUntil(
    async () => {
      Object.assign(last, await loader.tally());
      return last.applied >= queued ? true : undefined;
    },
    { withinMs: 60_000 },
  ).catch(() => undefined);
  const seconds = (performance.now() - startMs) / 1_000;
  const lost = Math.max(0, queued - last.applied);
  if (lost === 0) await checkCommands(stage, tenant.tenantId, queued);
  return [
    {
      id: "storm",
      value: seconds,
      unsound: agents < WANTED,
      note: `${agents} agents, ready after ${(windowNs / 1e9).toFixed(1)} s, ${queued} commands`,
      rounds: [{ agents, readySeconds: windowNs / 1e9, seconds, queued }],
    },
    { id: "storm-lost", value: lost },
    { id: "storm-duplicated", value: last.duplicates },
  ];
};

export const fleet = (stage: BenchStage, wants: { readonly idle: boolean; readonly storm: boolean }, agents = fleetSize()): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const started = await startFleet(scope, agents);
    return [...(wants.idle ? [await idle(started)] : []), ...(wants.storm ? await storm(scope, started) : [])];
  });
