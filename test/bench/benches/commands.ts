// Commands through a cluster: created at one node, pushed by another, acknowledged, committed. Measures how many per second and how long one takes.

import { once } from "node:events";
import { connect } from "node:net";
import type { PairedDevice } from "../../../agent-sim/agent/index.ts";
import { quantile, summarise } from "../arithmetic.ts";
import { type BenchGateway, type BenchTenant, createTenant, provision, startBenchGateway, waitUntil, writeIdentities } from "../gateway.ts";
import { type Loader, type LoaderReply, serverNs, startLoader } from "../loader.ts";
import { LOAD_CPU, SERVER_CPU } from "../machine.ts";
import { checkCommands } from "../read-back.ts";
import type { Finding } from "../report.ts";
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
  readonly agents: readonly Loader[];
  readonly callers: readonly Loader[];
  /** Connections per caller, opened again before each burst because the gateway closes idle ones. */
  readonly width: number;
  /** The number of commands so far. */
  created: number;
}

const toRequest =
  ({ apiKey, tenantId }: BenchTenant, wait: number) =>
  ({ deviceId }: PairedDevice): PreparedRequest => ({
    method: "POST",
    path: `/v1/devices/${deviceId}/commands`,
    headers: { "x-api-key": apiKey, "x-svc-tenant-id": tenantId },
    body: { type: "ping", payload: {}, ...(wait > 0 ? { wait } : {}) },
    expected: wait > 0 ? `"status":"succeeded"` : `"deviceId":"${deviceId}"`,
  });

export interface ClusterOptions {
  readonly nodes: number;
  readonly agents: number;
  /** Seconds that a caller waits for its command's outcome; 0 for no wait. */
  readonly wait?: number;
}

/** Opens a cluster with agents spread over its nodes. The callers of a node command the next node's devices. */
export const openCluster = async (stage: BenchStage, { nodes: count, agents: size, wait = 0 }: ClusterOptions): Promise<BenchCluster> => {
  const nodes: BenchGateway[] = [];
  for (let n = 0; n < count; n += 1) nodes.push(await startBenchGateway(stage, { cpu: count === 1 ? null : n % 2 === 0 ? SERVER_CPU : LOAD_CPU }));
  const [first] = nodes;
  if (first === undefined) throw new Error("a cluster has at least one node");
  const tenant = await createTenant(stage);
  const members = await provision(first, tenant, size);
  const serverPids = nodes.map(({ pid }) => pid);
  const width = wait > 0 ? WAITING_CALLERS : CALLERS;
  const shares = nodes.map((_, at) => members.filter((_member, index) => index % count === at));
  const agents: Loader[] = [];
  const callers: Loader[] = [];
  for (const [at, { port }] of nodes.entries()) {
    const own = shares[at] ?? [];
    const loader = await startLoader(stage, { protocol: "agent", port, connections: own.length, identities: writeIdentities(stage, own), serverPids });
    const { ready } = await loader.connect(own.length, WIDTH);
    if (ready !== own.length) throw new InvalidRun(`${ready} of ${own.length} agents are ready`);
    agents.push(loader);
    const caller = await startLoader(stage, { protocol: "http", port, connections: width, serverPids });
    await caller.requests(writeRequests(stage, (shares[(at + 1) % count] ?? own).map(toRequest(tenant, wait))));
    callers.push(caller);
  }
  return { tenant, agents, callers, width, created: 0 };
};

const total = (replies: readonly LoaderReply[], of: (reply: LoaderReply) => number): number => replies.reduce((sum, reply) => sum + of(reply), 0);
const tally = (loaders: readonly Loader[]): Promise<LoaderReply[]> => Promise.all(loaders.map((loader) => loader.tally()));

const check = (replies: readonly LoaderReply[]): void => {
  const bad = total(replies, ({ wrong, lost, errors, missing, refused }) => wrong + lost + errors + missing + refused);
  if (bad > 0) throw new InvalidRun(`${bad} wrong, lost, failed, missing or refused among ${total(replies, ({ answers }) => answers)} calls`);
};

export interface Burst {
  readonly perSecond: number;
  /** Server time of all nodes per command during its creation. */
  readonly microsecondsEach: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Creates commands for that long, waits for the last ack, and counts the whole time. Throws InvalidRun. */
export const burst = async (cluster: BenchCluster, { windowMs, rate = 0 }: { readonly windowMs: number; readonly rate?: number }): Promise<Burst> => {
  const before = total(await tally(cluster.agents), ({ applied }) => applied);
  const createdBefore = total(await tally(cluster.callers), ({ answers }) => answers);
  for (const caller of cluster.callers) await caller.connect(cluster.width, cluster.width);
  const startMs = performance.now();
  const ran = await Promise.all(
    cluster.callers.map((caller) => caller.run({ warmMs: 0, windowMs, connections: cluster.width, rate: rate / cluster.callers.length })),
  );
  check(ran);
  const created = total(ran, ({ answers }) => answers) - createdBefore;
  const done = async (): Promise<true | undefined> => (total(await tally(cluster.agents), ({ applied }) => applied) - before >= created ? true : undefined);
  await waitUntil(done, { withinMs: DRAIN_MS }).catch(() => {
    throw new InvalidRun("some commands were not acknowledged");
  });
  const seconds = (performance.now() - startMs) / 1_000;
  const agents = await tally(cluster.agents);
  check(agents);
  if (total(agents, ({ duplicates }) => duplicates) > 0) throw new InvalidRun("a command was acknowledged twice");
  cluster.created += created;
  const [one] = ran;
  return {
    perSecond: created / seconds,
    microsecondsEach: (one === undefined ? Number.NaN : serverNs(one)) / 1_000 / total(ran, ({ windowAnswers }) => windowAnswers),
    p50Ms: Math.max(...ran.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...ran.map(({ p99Ms }) => p99Ms)),
  };
};

const show = (round: number, { perSecond, microsecondsEach, p50Ms, p99Ms }: Burst): void =>
  void process.stderr.write(
    `  ${String(round).padStart(2)}  ${Math.round(perSecond).toString().padStart(9)}/s  ${microsecondsEach.toFixed(0)} us of all nodes each  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms\n`,
  );

export interface CommandPlan {
  readonly rounds: number;
  readonly windowMs: number;
  readonly agents: number;
}

export const ackedCommands = (stage: BenchStage, { rounds, windowMs, agents }: CommandPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const cluster = await openCluster(scope, { nodes: 2, agents });
    const bursts: Burst[] = [];
    for (let round = 0; round <= rounds; round += 1) {
      const found = await burst(cluster, { windowMs });
      show(round, found);
      if (round > 0) bursts.push(found);
    }
    await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
    const { value, min, max } = summarise(bursts.map(({ perSecond }) => perSecond));
    return [{ id: "acked-commands", value, span: [min, max], rounds: bursts, note: `${agents} agents` }];
  });

/** The median round trip of a PING, in milliseconds. */
const redisRoundTrip = async (port: number): Promise<number> => {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  const times: number[] = [];
  for (let n = 0; n < 2_000; n += 1) {
    const startMs = performance.now();
    socket.write("*1\r\n$4\r\nPING\r\n");
    await once(socket, "data");
    times.push(performance.now() - startMs);
  }
  socket.destroy();
  return quantile(times, 0.5);
};

const RATE = 2_000;
const WAIT_SECONDS = 10;
/** The time includes the wait for the last ack, so a rate slightly below the target counts as kept. */
const MIN_RATE = 0.8;

/** Measures at 2,000 per second, first with durable commits, then with a database that does not wait for its disk. */
export const roundTrip = (stage: BenchStage, { rounds, windowMs, agents }: CommandPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const measure = (durable: boolean): Promise<{ readonly bursts: readonly Burst[]; readonly redisMs: number }> =>
      scope.scope(async (inner) => {
        await scope.query(`alter role current_user set synchronous_commit = ${durable ? "on" : "off"}`);
        const cluster = await openCluster(inner, { nodes: 2, agents, wait: WAIT_SECONDS });
        const bursts: Burst[] = [];
        for (let round = 0; round <= rounds; round += 1) {
          const found = await burst(cluster, { windowMs, rate: RATE });
          show(round, found);
          if (round > 0) bursts.push(found);
        }
        await checkCommands(inner, cluster.tenant.tenantId, cluster.created);
        return { bursts, redisMs: await redisRoundTrip(scope.redis.port) };
      });
    const durable = await measure(true);
    const relaxed = await measure(false).finally(() => scope.query("alter role current_user set synchronous_commit = on"));
    const [p50, p99] = [summarise(durable.bursts.map(({ p50Ms }) => p50Ms)), summarise(durable.bursts.map(({ p99Ms }) => p99Ms))];
    // Callers that wait too long cannot keep the rate, and the figures would describe another load.
    const kept = Math.min(...durable.bursts.map(({ perSecond }) => perSecond));
    const strained = kept < RATE * MIN_RATE ? { unsound: true, note: `the callers kept only ${Math.round(kept)}/s` } : {};
    const multiple = summarise(relaxed.bursts.map(({ p50Ms }) => p50Ms / relaxed.redisMs));
    return [
      {
        id: "command-roundtrip",
        value: multiple.value,
        span: [multiple.min, multiple.max],
        rounds: relaxed.bursts,
        note: `Redis answers in ${relaxed.redisMs.toFixed(3)} ms`,
      },
      { id: "command-roundtrip-p50", value: p50.value, span: [p50.min, p50.max], rounds: durable.bursts, ...strained },
      { id: "command-roundtrip-p99", value: p99.value, span: [p99.min, p99.max], rounds: durable.bursts, ...strained },
    ];
  });

/** Measures the same work on more nodes and for a larger fleet. */
export const nodes = (stage: BenchStage, { rounds, windowMs, agents }: CommandPlan): Promise<readonly Finding[]> => {
  const cost = (
    options: ClusterOptions,
  ): Promise<{ readonly nodes: number; readonly agents: number; readonly microsecondsEach: number; readonly perSecond: number }> =>
    stage.scope(async (scope) => {
      const cluster = await openCluster(scope, options);
      const bursts: Burst[] = [];
      for (let round = 0; round <= rounds; round += 1) {
        const found = await burst(cluster, { windowMs });
        show(round, found);
        if (round > 0) bursts.push(found);
      }
      await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
      return {
        nodes: options.nodes,
        agents: options.agents,
        microsecondsEach: summarise(bursts.map(({ microsecondsEach }) => microsecondsEach)).value,
        perSecond: summarise(bursts.map(({ perSecond }) => perSecond)).value,
      };
    });
  return (async () => {
    const rows = [];
    for (const options of [1, 2, 3].map((count) => ({ nodes: count, agents: 1_000 })).concat({ nodes: 1, agents })) rows.push(await cost(options));
    const costs = rows.map(({ microsecondsEach }) => microsecondsEach);
    return [
      {
        id: "nodes",
        value: Math.max(...costs) / Math.min(...costs),
        rounds: rows,
        note: rows.map((row) => `${row.nodes}n/${row.agents}: ${Math.round(row.perSecond)}/s`).join(", "),
      },
    ];
  })();
};
