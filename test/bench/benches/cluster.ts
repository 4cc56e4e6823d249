// A cluster under a load of commands: nodes with their agents, callers that create commands, and one burst of it with its checks.
import type { PairedDevice } from "../../../agent-sim/agent/index.ts";
import { type BenchGateway, type BenchTenant, createTenant, provision, startBenchGateway, waitUntil, writeIdentities } from "../gateway.ts";
import { type Loader, type LoaderOptions, type LoaderReply, serverNs, startLoader } from "../loader.ts";
import { LOAD_CPU, pin } from "../machine.ts";
import { type Parts, treeOf } from "../processor-time.ts";
import { type PreparedRequest, writeRequests } from "../requests.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

const CALLERS = 64;
/** A caller that waits for its command holds a connection; this many keep the rate at a quarter of a second each. */
const WAITING_CALLERS = 250;
const WIDTH = 128;
const DRAIN_MS = 60_000;

export interface BenchCluster {
  readonly tenant: BenchTenant;
  readonly members: readonly PairedDevice[];
  readonly nodes: readonly BenchGateway[];
  readonly agents: readonly Loader[];
  readonly callers: readonly Loader[];
  /** Connections per caller, opened again before each burst because the gateway closes idle ones. */
  readonly width: number;
  /** The processes of everything that a command passes through. */
  readonly parts: Parts;
  /** The number of commands so far. */
  created: number;
}

export interface ClusterOptions {
  readonly nodes: number;
  readonly agents: number;
  /** Seconds that a caller waits for its command's outcome; 0 for no wait. */
  readonly wait?: number;
  /** Commands carry the time for which their request was planned. */
  readonly stamped?: boolean;
  /** The nodes' inspectors can be opened. */
  readonly inspected?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

const bodyOf = ({ wait = 0, stamped = false }: ClusterOptions): object => ({
  ...(stamped ? { type: "echo", payload: { text: "@00000000000000000000" } } : { type: "ping", payload: {} }),
  ...(wait > 0 ? { wait } : {}),
});

const toRequest =
  ({ apiKey, tenantId }: BenchTenant, options: ClusterOptions) =>
  ({ deviceId }: PairedDevice): PreparedRequest => ({
    method: "POST",
    path: `/v1/devices/${deviceId}/commands`,
    headers: { "x-api-key": apiKey, "x-svc-tenant-id": tenantId },
    body: bodyOf(options),
    expected: (options.wait ?? 0) > 0 ? `"status":"succeeded"` : `"deviceId":"${deviceId}"`,
  });

/** A command passes through everything, so everything may use all processors. A comparison of servers pins PostgreSQL and Redis to the load's. */
const freeServers = (stage: BenchStage): void => {
  const pids = (): readonly number[] => [stage.postgresPid, stage.redis.pid].flatMap(treeOf);
  for (const pid of pids()) pin(pid, null);
  stage.add(() => {
    for (const pid of pids()) pin(pid, LOAD_CPU);
  });
};

const startFreeLoader = async (stage: BenchStage, options: LoaderOptions): Promise<Loader> => {
  const loader = await startLoader(stage, options);
  pin(loader.pid, null);
  return loader;
};

const startNodes = async (stage: BenchStage, { nodes: count, inspected = false, env = {} }: ClusterOptions): Promise<readonly BenchGateway[]> => {
  const nodes: BenchGateway[] = [];
  for (let n = 0; n < count; n += 1) nodes.push(await startBenchGateway(stage, { inspected, cpu: null, env }));
  return nodes;
};

/** Opens a cluster with agents spread over its nodes. The callers of a node command the next node's devices. */
export const openCluster = async (stage: BenchStage, options: ClusterOptions): Promise<BenchCluster> => {
  freeServers(stage);
  const nodes = await startNodes(stage, options);
  const [first] = nodes;
  if (first === undefined) throw new Error("a cluster has at least one node");
  const tenant = await createTenant(stage);
  const members = await provision(first, tenant, options.agents);
  const serverPids = nodes.map(({ pid }) => pid);
  const width = (options.wait ?? 0) > 0 ? WAITING_CALLERS : CALLERS;
  const shares = nodes.map((_, at) => members.filter((_member, index) => index % nodes.length === at));
  const agents: Loader[] = [];
  const callers: Loader[] = [];
  for (const [at, { port }] of nodes.entries()) {
    const own = shares[at] ?? [];
    const loader = await startFreeLoader(stage, { protocol: "agent", port, connections: own.length, identities: writeIdentities(stage, own), serverPids });
    const { ready } = await loader.connect(own.length, WIDTH);
    if (ready !== own.length) throw new InvalidRun(`${ready} of ${own.length} agents are ready`);
    agents.push(loader);
    const caller = await startFreeLoader(stage, { protocol: "http", port, connections: width, serverPids });
    await caller.requests(writeRequests(stage, (shares[(at + 1) % nodes.length] ?? own).map(toRequest(tenant, options))));
    callers.push(caller);
  }
  const load = [...agents, ...callers].map(({ pid }) => pid);
  const parts = { gateway: serverPids, postgres: [stage.postgresPid], redis: [stage.redis.pid], load };
  return { tenant, members, nodes, agents, callers, width, parts, created: 0 };
};

export const total = (replies: readonly LoaderReply[], of: (reply: LoaderReply) => number): number => replies.reduce((sum, reply) => sum + of(reply), 0);
const tally = (loaders: readonly Loader[]): Promise<LoaderReply[]> => Promise.all(loaders.map((loader) => loader.tally()));

const check = (replies: readonly LoaderReply[]): void => {
  const bad = total(replies, ({ wrong, lost, errors, missing, refused }) => wrong + lost + errors + missing + refused);
  if (bad > 0) throw new InvalidRun(`${bad} wrong, lost, failed, missing or refused among ${total(replies, ({ answers }) => answers)} calls`);
};

export interface Acknowledged {
  readonly commands: number;
  /** From the first request to the last ack. */
  readonly seconds: number;
}

/** Creates commands, waits until the agents have got the answer to the ack of each, and checks that none was lost or acknowledged twice. Throws InvalidRun. */
export const untilAcknowledged = async (cluster: BenchCluster, create: () => Promise<number>): Promise<Acknowledged> => {
  const before = total(await tally(cluster.agents), ({ applied }) => applied);
  const startMs = performance.now();
  const commands = await create();
  const done = async (): Promise<true | undefined> => (total(await tally(cluster.agents), ({ applied }) => applied) - before >= commands ? true : undefined);
  await waitUntil(done, { withinMs: DRAIN_MS }).catch(() => {
    throw new InvalidRun("some commands were not acknowledged");
  });
  const seconds = (performance.now() - startMs) / 1_000;
  const agents = await tally(cluster.agents);
  check(agents);
  if (total(agents, ({ duplicates }) => duplicates) > 0) throw new InvalidRun("a command was acknowledged twice");
  if (total(agents, ({ applied }) => applied) - before !== commands) throw new InvalidRun(`more than the ${commands} commands were acknowledged`);
  cluster.created += commands;
  return { commands, seconds };
};

export interface Burst {
  readonly commands: number;
  /** Acknowledged commands, including the time until the last ack. */
  readonly perSecond: number;
  /** Answers to the callers within the window: an offered rate is kept if this reaches it. */
  readonly answeredPerSecond: number;
  /** Server time of all nodes per command during its creation. */
  readonly microsecondsEach: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Load {
  readonly windowMs: number;
  readonly rate?: number;
}

/** Creates commands for that long, waits for the last ack, and counts the whole time. Throws InvalidRun. */
export const burst = async (cluster: BenchCluster, { windowMs, rate = 0 }: Load): Promise<Burst> => {
  const createdBefore = total(await tally(cluster.callers), ({ answers }) => answers);
  for (const caller of cluster.callers) await caller.connect(cluster.width, cluster.width);
  const ran: LoaderReply[] = [];
  const { commands, seconds } = await untilAcknowledged(cluster, async () => {
    const order = { warmMs: 0, windowMs, connections: cluster.width, rate: rate / cluster.callers.length };
    ran.push(...(await Promise.all(cluster.callers.map((caller) => caller.run(order)))));
    check(ran);
    return total(ran, ({ answers }) => answers) - createdBefore;
  });
  const [one] = ran;
  const answered = total(ran, ({ windowAnswers }) => windowAnswers);
  return {
    commands,
    perSecond: commands / seconds,
    answeredPerSecond: (answered * 1e9) / (one?.windowNs ?? Number.NaN),
    microsecondsEach: (one === undefined ? Number.NaN : serverNs(one)) / 1_000 / answered,
    p50Ms: Math.max(...ran.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...ran.map(({ p99Ms }) => p99Ms)),
  };
};

export const show = (round: number, { perSecond, microsecondsEach, p50Ms, p99Ms }: Burst): void =>
  void process.stderr.write(
    `  ${String(round).padStart(2)}  ${Math.round(perSecond).toString().padStart(9)}/s  ${microsecondsEach.toFixed(0)} us of all nodes each  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms\n`,
  );

export interface CommandPlan {
  readonly rounds: number;
  readonly windowMs: number;
  readonly agents: number;
}

/** Visits once for each number, and shows each round. */
export const visits = async <T extends Burst>(first: number, last: number, visit: () => Promise<T>): Promise<readonly T[]> => {
  const found: T[] = [];
  for (let round = first; round <= last; round += 1) {
    const one = await visit();
    show(round, one);
    found.push(one);
  }
  return found;
};

/** A gateway runs for weeks; for its first ten seconds under load most of its code is compiled and slower. */
const WARM_UP_ROUNDS = 5;

export const warmUp = (cluster: BenchCluster, load: Load): Promise<unknown> => visits(1 - WARM_UP_ROUNDS, 0, () => burst(cluster, load));

/** Bursts in rounds after those that warm up. */
export const bursts = async (cluster: BenchCluster, rounds: number, load: Load): Promise<readonly Burst[]> => {
  await warmUp(cluster, load);
  return visits(1, rounds, () => burst(cluster, load));
};

/** Callers that wait too long cannot keep an offered rate, and the figures would describe another load. */
const MIN_RATE = 0.95;

/** What a finding says about a rate that the callers were to offer. */
export const keptRate = (found: readonly Pick<Burst, "answeredPerSecond">[], rate: number): { readonly unsound?: boolean; readonly note: string } => {
  const kept = Math.round(Math.min(...found.map(({ answeredPerSecond }) => answeredPerSecond)));
  return kept < rate * MIN_RATE ? { unsound: true, note: `the callers kept only ${kept}/s` } : { note: `${kept}/s kept` };
};
