// Tunnels of two tenants while agents, nodes and PostgreSQL are killed in the middle of opening, moving, stopping and serving them: a visitor reaches the service
// of the tunnel's own name or none, and in the end each active tunnel is served by every node, and no stopped one by any.
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createRandom, pause, type Random, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { makeFolder } from "../../../kit/setup/workspace.ts";
import { send, tally } from "../../rig/calls.ts";
import { type ProcessAgent, withProcessAgents } from "../../rig/process-agents.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { ask } from "../../rig/sql.ts";
import { killNode, killPostgres } from "../../rig/troubles.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";

const NODES = 2;
/** Real agents take more of a machine than simulated ones. */
const AGENTS_PER_REAL_ONE = 20;
const SECONDS_PER_ROUND = 1;
const MIN_ROUNDS = 6;
const VISITS_AT_ONCE = 4;
const ANSWER_MS = 10_000;
const CALLS_MS = 90_000;
/** An agent that was cut off again and again waits up to five minutes. */
const REST_MS = 360_000;
const QUIET_MS = 4_000;
const LOOK_MS = 500;

interface Service {
  readonly name: string;
  readonly port: number;
  readonly server: Server;
}
const openService = async (name: string): Promise<Service> => {
  const server = createServer((_request, response) => void response.end(name)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { name, server, port: (server.address() as AddressInfo).port };
};

const endService = (service: Service | undefined): void => {
  service?.server.close();
  service?.server.closeAllConnections();
};

interface Tunnel {
  readonly tunnelId: string;
  readonly hostname: string;
  /** What its service says; after moves also what those before say, until it is quiet. */
  services: readonly string[];
  readonly side: Side;
  readonly deviceId: string;
  wanted: "active" | "stopped";
}
/** The devices of a tenant, each with two services. */
interface Side {
  readonly credentials: Rig["credentials"];
  readonly agents: readonly ProcessAgent[];
  readonly services: ReadonlyMap<string, readonly Service[]>;
}
interface Stage {
  readonly rig: Rig;
  readonly sides: readonly Side[];
  readonly random: Random;
  readonly tunnels: Tunnel[];
  /** Control: where a tunnel leads instead of its own service, and that service ends before the last check. */
  readonly detour: ((side: Side) => Service) | null;
}

const pick = <T>(items: readonly T[], random: Random): T => items[Math.floor(random() * items.length)] as T; // as: never empty here
const asSide = ({ rig }: Stage, { credentials }: Side) => ({ http: rig.http, credentials });

const openTunnel = async (stage: Stage, side: Side): Promise<void> => {
  const { deviceId } = pick(side.agents, stage.random);
  const own = pick(side.services.get(deviceId) ?? [], stage.random);
  const { port } = stage.detour?.(side) ?? own;
  const made = await send(asSide(stage, side), "POST", `/devices/${deviceId}/tunnels`, { targetPort: port, access: { mode: "public" } }, CALLS_MS);
  stage.tunnels.push({
    ...{ tunnelId: String(made["tunnelId"]), hostname: String(made["hostname"]) },
    ...{ side, deviceId, services: [own.name], wanted: "active" },
  });
};

const change = (stage: Stage, { side, tunnelId }: Tunnel, to: object): Promise<unknown> =>
  send(asSide(stage, side), "PATCH", `/tunnels/${tunnelId}`, to, CALLS_MS);

/** To the other service of its device. */
const moveTunnel = async (stage: Stage, tunnel: Tunnel): Promise<void> => {
  const other = tunnel.side.services.get(tunnel.deviceId)?.find(({ name }) => name !== tunnel.services[0]);
  if (other === undefined || tunnel.wanted === "stopped") return;
  tunnel.services = [other.name, ...tunnel.services];
  await change(stage, tunnel, { service: `http://127.0.0.1:${other.port}` });
};

const turnTunnel = async (stage: Stage, tunnel: Tunnel): Promise<void> => {
  tunnel.wanted = tunnel.wanted === "active" ? "stopped" : "active";
  await change(stage, tunnel, { status: tunnel.wanted });
};

/** What a visitor of this node gets: the name of a service, or why not. */
const visit = async ({ hostname }: Tunnel, port: number): Promise<{ readonly status: number; readonly said: string }> => {
  const request = get({ host: "127.0.0.1", port, path: "/", agent: false, headers: { host: hostname }, timeout: ANSWER_MS });
  request.on("timeout", () => request.destroy());
  try {
    const [response] = (await once(request, "response")) as [IncomingMessage];
    return { status: response.statusCode ?? 0, said: await text(response) };
  } catch {
    return { status: 0, said: "" };
  }
};

type Trouble = (stage: Stage, turn: number) => Promise<void>;
const TROUBLES: readonly Trouble[] = [
  ({ sides, random }) => pick(pick(sides, random).agents, random).kill(),
  ({ rig }, turn) => killNode(rig, turn),
  ({ rig }) => killPostgres(rig),
  async ({ rig }) => void rig.agentProxy.reset(0.5),
];

interface Figures {
  visits: number;
  served: number;
  foreign: number;
  readonly refused: Map<string, number>;
}

/** Visitors come to every node without a pause until it is over. */
const visitAll = async (stage: Stage, figures: Figures, isOver: () => boolean): Promise<void> => {
  const lane = async (): Promise<void> => {
    while (!isOver()) {
      const [tunnel, node] = [pick(stage.tunnels, stage.random), pick(stage.rig.nodes, stage.random)];
      const allowed = tunnel.services;
      const { status, said } = await visit(tunnel, node.edgePort);
      figures.visits += 1;
      if (status !== 200) tally(figures.refused, String(status));
      else if ([...allowed, ...tunnel.services].includes(said)) figures.served += 1;
      else figures.foreign += 1;
      // Where nothing listens, a visit takes no time.
      if (status === 0) await pause(time, 50);
    }
  };
  await Promise.all(Array.from({ length: VISITS_AT_ONCE }, lane));
};

const roundOf = async (stage: Stage, turn: number, trouble: Trouble | undefined): Promise<void> => {
  const { random, tunnels } = stage;
  const hit = trouble === undefined ? undefined : pause(time, random() * 300).then(() => trouble(stage, turn));
  const steps = [
    () => openTunnel(stage, pick(stage.sides, random)),
    () => moveTunnel(stage, pick(tunnels, random)),
    () => turnTunnel(stage, pick(tunnels, random)),
  ];
  for (const step of steps) await step();
  await hit;
};

/** What is still not as people want it, by kind; empty once all is well. */
const wrong = async ({ rig, tunnels }: Stage): Promise<ReadonlyMap<string, number>> => {
  const rows = await ask<{ tunnel_id: string; status: string }>(rig.postgres, "select tunnel_id, status from tunnels");
  const statusOf = new Map(rows.map(({ tunnel_id, status }) => [tunnel_id, status]));
  const found = new Map<string, number>();
  for (const tunnel of tunnels) {
    const status = statusOf.get(tunnel.tunnelId);
    if (status !== tunnel.wanted) tally(found, "stuck");
    for (const { edgePort } of rig.nodes) {
      const answer = await visit(tunnel, edgePort);
      if (tunnel.wanted === "active" && answer.status !== 200) tally(found, status === "active" ? "active-but-dead" : "unserved");
      if (tunnel.wanted === "active" && answer.status === 200 && answer.said !== tunnel.services[0]) tally(found, "foreign");
      if (tunnel.wanted === "stopped" && answer.status === 200) tally(found, "served-though-stopped");
    }
  }
  return found;
};

const drill = async (stage: Stage, rounds: number): Promise<ScenarioOutcome> => {
  for (const side of stage.sides) for (let n = 0; n < side.agents.length; n += 1) await openTunnel(stage, side);
  const figures: Figures = { visits: 0, served: 0, foreign: 0, refused: new Map() };
  let [isOver, faults] = [false, 0];
  const visits = visitAll(stage, figures, () => isOver);
  try {
    for (let turn = 0; turn < rounds; turn += 1) {
      const trouble = stage.detour === null ? TROUBLES[turn % TROUBLES.length] : undefined;
      await roundOf(stage, turn, trouble);
      faults += 1;
      await pause(time, stage.random() * 2_000);
    }
    await pause(time, QUIET_MS);
  } finally {
    isOver = true;
    await visits;
  }
  for (const side of stage.sides) endService(stage.detour?.(side));
  let left = await wrong(stage);
  for (const endMs = time.elapsedMs() + (stage.detour === null ? REST_MS : 0); left.size > 0 && time.elapsedMs() < endMs; left = await wrong(stage))
    await pause(time, LOOK_MS);
  const kinds = ["stuck", "active-but-dead", "unserved", "served-though-stopped"];
  return {
    n: figures.visits + stage.tunnels.length,
    faults,
    violations: { foreign: figures.foreign + (left.get("foreign") ?? 0), ...Object.fromEntries(kinds.map((kind) => [kind, left.get(kind) ?? 0])) },
    latencyMs: { p50: null, p99: null },
    notes: [
      `n counts visits and tunnels: ${figures.served} visits were served, ${[...figures.refused].map(([status, count]) => `${count} got ${status === "0" ? "no answer" : status}`).join(", ")}; ${stage.tunnels.length} tunnels of ${stage.sides.reduce((sum, { agents }) => sum + agents.length, 0)} devices`,
    ],
  };
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const perSide = control ? 1 : Math.max(1, Math.ceil(scale.agents / AGENTS_PER_REAL_ONE / 2));
  const rounds = control ? 1 : Math.max(MIN_ROUNDS, Math.ceil(scale.seconds / SECONDS_PER_ROUND));
  return withRig({ nodes: NODES, seed, redis: true }, async (rig) => {
    const folder = makeFolder("tunnel-agents");
    const all: Service[] = [];
    const sideOf = async (credentials: Rig["credentials"], agents: readonly ProcessAgent[]): Promise<Side> => {
      const services = new Map<string, readonly Service[]>();
      for (const { deviceId } of agents) services.set(deviceId, [await openService(`first of ${deviceId}`), await openService(`second of ${deviceId}`)]);
      all.push(...[...services.values()].flat());
      return { credentials, agents, services };
    };
    try {
      const [one, other] = [await rig.tenant(), await rig.tenant()];
      const options = { folder, leavesStrays: false };
      const use = async (first: readonly ProcessAgent[], second: readonly ProcessAgent[]): Promise<ScenarioOutcome> => {
        const sides = [await sideOf(one, first), await sideOf(other, second)];
        const detour = control ? (side: Side): Service => [...(sides.find((each) => each !== side)?.services.values() ?? [])][0]?.[0] as Service : null; // as: each side has a device
        return drill({ rig, sides, random: createRandom(seed), tunnels: [], detour }, rounds);
      };
      return await withProcessAgents({ ...rig, credentials: one }, perSide, {
        ...options,
        use: (first) => withProcessAgents({ ...rig, credentials: other }, perSide, { ...options, use: (second) => use(first, second) }),
      });
    } finally {
      all.forEach(endService);
      await rm(folder, { recursive: true, force: true });
    }
  });
};

export const tunnelKillScenarios: readonly Scenario[] = [
  {
    name: "tunnel-kills",
    promise: "D4",
    claim:
      "across kill -9 of agents, nodes and PostgreSQL while tunnels are opened, moved and stopped no visitor reaches another service than that of the tunnel's name, each active tunnel is served by every node, and no stopped one by any",
    needsRedis: true,
    control: { how: "tunnels that lead to a service of the other tenant, which ends before the last check", red: ["foreign", "active-but-dead"] },
    run,
  },
];
