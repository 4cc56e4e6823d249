// Operations on many devices beside calls that do the same: processor time for each device, and what a live or a waiting rollout costs everything else.
import { createHttp } from "../../../agent-sim/agent/index.ts";
import { summarise } from "../arithmetic.ts";
import { type Caller, createCaller } from "../caller.ts";
import { waitUntil } from "../gateway.ts";
import type { MetricId } from "../metrics.ts";
import { type ProcessorUse, sampleParts, useBetween } from "../processor-time.ts";
import { checkCommands } from "../read-back.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";
import { type BenchCluster, burst, openCluster, untilAcknowledged, warmUp } from "./cluster.ts";
import { queueAll } from "./one-each.ts";

export interface ManyPlan {
  readonly agents: number;
  readonly rounds: number;
  readonly idleMs: number;
  readonly waiting: number;
}

const WITHIN_MS = 240_000;
const LOOK_MS = 500;
const BURST_MS = 2_000;
/** An idle session tells what it has changed ten seconds later. */
const STATISTICS_MS = 12_000;
const EVERYONE = { tags: ["everyone"] };

interface Subject {
  readonly stage: BenchStage;
  readonly cluster: BenchCluster;
  readonly caller: Caller;
  readonly fleetId: string;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Shows each version as its agent's next hello would. */
const REPORT_VERSION = `update devices d set agent_version = $2 where d.agent_version is distinct from $2 and d.device_id = any(array(
  select m.device_id from rollout_devices m where m.rollout_id = $1 and m.status = 'verifying'))`;
const ROLLOUT = "select status, total, succeeded from rollouts where rollout_id = $1";

const rolloutOf = (targetVersion: string) => ({
  subject: { kind: "agent" },
  targetVersion,
  phases: [{ percent: 100, soakMinutes: 0 }],
  maxParallel: 500,
});

/** A rollout to all agents, up to its end. */
const rollOut = async ({ stage, cluster, caller, fleetId }: Subject): Promise<number> => {
  const version = `1.0.${Date.now()}`;
  const { rolloutId } = await caller.post("/rollouts", { fleetId, settings: rolloutOf(version), start: true });
  return waitUntil(
    async () => {
      await stage.query(REPORT_VERSION, [rolloutId, version]);
      const [row] = await stage.query<{ status: string; total: number; succeeded: number }>(ROLLOUT, [rolloutId]);
      if (row === undefined || ["scheduled", "running"].includes(row.status)) return pause(LOOK_MS).then(() => undefined);
      if (row.status !== "completed" || row.succeeded !== cluster.members.length)
        throw new InvalidRun(`the rollout ended as ${row.status} with ${row.succeeded} of ${cluster.members.length} devices`);
      return row.succeeded;
    },
    { withinMs: WITHIN_MS },
  );
};

const BULK = "select status, total, succeeded from bulk_operations where operation_id = $1 and completed_at is not null";
const inBulk = async ({ stage, cluster, caller }: Subject, operation: string, params: object): Promise<number> => {
  const { operationId } = await caller.post("/bulk-operations", { operation, target: { selector: EVERYONE }, params, maxParallel: 1_000 });
  return waitUntil(
    async () => {
      const [row] = await stage.query<{ status: string; total: number; succeeded: number }>(BULK, [operationId]);
      if (row === undefined) return pause(LOOK_MS).then(() => undefined);
      if (row.succeeded !== cluster.members.length) throw new InvalidRun(`${operation} ended as ${row.status} with ${row.succeeded} of ${row.total} devices`);
      return row.succeeded;
    },
    { withinMs: WITHIN_MS },
  );
};

/** Microseconds of processor time for each device, without what the cluster takes while nothing happens. */
interface Cost {
  readonly us: number;
  readonly postgresUs: number;
  readonly seconds: number;
}
type Idle = ProcessorUse;

const idleOf = async ({ parts }: BenchCluster, idleMs: number): Promise<Idle> => {
  const before = sampleParts(parts);
  await pause(idleMs);
  return useBetween(before, sampleParts(parts), idleMs / 1_000);
};

const costOf = async ({ parts }: BenchCluster, idle: Idle, run: () => Promise<number>): Promise<Cost> => {
  const before = sampleParts(parts);
  const units = await run();
  const after = sampleParts(parts);
  const seconds = (after.atMs - before.atMs) / 1_000;
  const use = useBetween(before, after, units);
  const ours = ({ totalUs, partUs }: ProcessorUse): number => totalUs - (partUs["bench"] ?? 0);
  const without = (spent: number, idleUs: number): number => spent - (idleUs * seconds) / units;
  return { us: without(ours(use), ours(idle)), postgresUs: without(use.partUs["postgres"] ?? 0, idle.partUs["postgres"] ?? 0), seconds };
};

const show = (what: string, { us, postgresUs, seconds }: Cost): void =>
  void process.stderr.write(`  ${what.padEnd(16)} ${us.toFixed(0).padStart(6)} us each, ${postgresUs.toFixed(0)} of PostgreSQL, in ${seconds.toFixed(1)} s\n`);

const finding = (id: MetricId, values: readonly number[], note = ""): Finding => {
  const { value, min, max } = summarise(values);
  return { id, value, span: [min, max], rounds: values, note };
};

/** One round of everything that reaches each device once. */
const round = async (subject: Subject, idle: Idle, number: number) => {
  const { cluster } = subject;
  const measure = async (what: string, run: () => Promise<number>): Promise<Cost> => {
    const cost = await costOf(cluster, idle, run);
    show(what, cost);
    return cost;
  };
  const commands = (run: () => Promise<number>) => async (): Promise<number> => (await untilAcknowledged(cluster, run)).commands;
  return {
    calls: await measure(
      "calls",
      commands(() => queueAll(cluster)),
    ),
    bulk: await measure(
      "device.command",
      commands(() => inBulk(subject, "device.command", { type: "ping", payload: {} })),
    ),
    tag: await measure("device.tag", () => inBulk(subject, "device.tag", { add: [`round-${number}`] })),
    rollout: await measure(
      "rollout",
      commands(() => rollOut(subject)),
    ),
  };
};

/** A rollout that is live and gets nowhere: the first devices have their orders, and none shows the version. */
const besideRollout = async ({ cluster, caller, fleetId }: Subject, rounds: number): Promise<readonly number[]> => {
  const ratios: number[] = [];
  const cost = async (): Promise<number> => (await burst(cluster, { windowMs: BURST_MS })).microsecondsEach;
  await warmUp(cluster, { windowMs: BURST_MS });
  for (let at = 0; at < rounds; at += 1) {
    const alone = await cost();
    const { rolloutId } = await caller.post("/rollouts", { fleetId, settings: rolloutOf(`2.0.${at}`), conflicts: "skip", start: true });
    await pause(BURST_MS);
    ratios.push((await cost()) / alone);
    await caller.post(`/rollouts/${String(rolloutId)}/abort`, { reason: "measured" });
  }
  return ratios;
};

const groupOf = (at: number): string => `group:${at}`;

const STEPS = "select n_tup_upd::int as steps from pg_stat_user_tables where relname = 'many_work'";

/** The steps that rollouts take which wait for their windows, each with a part of the devices. A step that has nothing to do is what they would cost. */
const stepsOfWaiting = async ({ stage, caller }: Subject, { waiting, idleMs }: ManyPlan): Promise<number> => {
  const hour = (new Date().getUTCHours() + 3) % 24;
  const maintenanceWindows = [{ cron: `0 ${hour} * * *`, durationMinutes: 15, timezone: "UTC" }];
  const rolloutIds: string[] = [];
  for (let at = 0; at < waiting; at += 1) {
    const { fleetId } = await caller.post("/fleets", { name: groupOf(at), selector: { tags: [groupOf(at)] } });
    const { rolloutId } = await caller.post("/rollouts", { fleetId, settings: { ...rolloutOf("3.0.0"), maintenanceWindows }, start: true });
    rolloutIds.push(String(rolloutId));
  }
  const areWaiting = async (): Promise<true | undefined> => {
    const [row] = await stage.query<{ count: number }>("select count(*)::int as count from rollouts where status = 'waiting_window'");
    return row?.count === waiting ? true : pause(LOOK_MS).then(() => undefined);
  };
  await waitUntil(areWaiting, { withinMs: WITHIN_MS });
  await pause(STATISTICS_MS);
  const steps = async (): Promise<number> => (await stage.admin<{ steps: number }>(STEPS))[0]?.steps ?? 0;
  const before = await steps();
  await pause(idleMs);
  const taken = (await steps()) - before;
  for (const rolloutId of rolloutIds) await caller.post(`/rollouts/${rolloutId}/abort`, { reason: "measured" });
  return taken;
};

const TAG = `update devices d set tags = $2::text[] || ('group:' || n.at % $3::int) from (select device_id, row_number() over () as at from devices where tenant_id = $1) n
  where d.device_id = n.device_id`;
const LIMITS = { bulkTargets: null, hosts: null, liveRollouts: null, fleets: null };

export const many = (stage: BenchStage, plan: ManyPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    // The loader's agents that get commands send no heartbeats, and a round takes minutes.
    const cluster = await openCluster(scope, { nodes: 1, agents: plan.agents, env: { HEARTBEAT_SECONDS: "300" } });
    await scope.query("update tenants set limit_overrides = $2 where tenant_id = $1", [cluster.tenant.tenantId, JSON.stringify(LIMITS)]);
    await scope.query(TAG, [cluster.tenant.tenantId, EVERYONE.tags, plan.waiting]);
    const http = createHttp(cluster.nodes[0]?.url ?? "", 1);
    try {
      const caller = createCaller(http, cluster.tenant);
      const { fleetId } = await caller.post("/fleets", { name: "all", selector: EVERYONE });
      const subject: Subject = { stage: scope, cluster, caller, fleetId: String(fleetId) };
      const idle = await idleOf(cluster, plan.idleMs);
      const rounds: Awaited<ReturnType<typeof round>>[] = [];
      for (let number = 1; number <= plan.rounds; number += 1) rounds.push(await round(subject, idle, number));
      await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
      const waiting = await stepsOfWaiting(subject, plan);
      const beside = await besideRollout(subject, plan.rounds);
      const note = `${plan.agents} agents`;
      return [
        finding(
          "rollout-agents",
          rounds.map(({ rollout, calls }) => rollout.us / calls.us),
          note,
        ),
        finding(
          "rollout-step",
          rounds.map(({ rollout, calls }) => rollout.postgresUs - calls.postgresUs),
          note,
        ),
        finding("rollout-beside", beside, note),
        finding("rollouts-waiting", [waiting], `${plan.waiting} rollouts`),
        finding(
          "bulk-command",
          rounds.map(({ bulk, calls }) => bulk.us / calls.us),
          note,
        ),
        finding(
          "bulk-tag",
          rounds.map(({ tag }) => tag.us),
          note,
        ),
      ];
    } finally {
      http.close();
    }
  });
