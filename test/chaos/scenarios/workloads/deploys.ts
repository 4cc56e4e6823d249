// Deployments to many devices at once, with and without injected failures: every record ends, once, with its reason, and as the device runs it.
import { randomUUID } from "node:crypto";
import { type AgentOptions, type CommandHandler, createRandom, errorOf, systemTime, systemTime as time, until } from "../../../../agent-sim/agent/index.ts";
import { deployAll, ordersFor } from "../../../../agent-sim/fleet/deployments.ts";
import { failingIn } from "../../../../agent-sim/fleet/fleet-apps.ts";
import { checkViewed } from "../../check/deploy-checker.ts";
import { readCounters, readEvents } from "../../check/deploy-truth.ts";
import { inLanes, isSuccess, patience, tally } from "../../rig/calls.ts";
import { countsOf, type DeployFleet, notesOn, toActive, withDeployFleet } from "../../rig/deploy-fleet.ts";
import { watchFeed } from "../../rig/feed.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { SOME_FAILURES_ARE_LOST } from "../../rig/sabotage.ts";
import { type Context, hurried, type Scenario, type ScenarioOutcome } from "../../scenario.ts";

const PER_DEVICE = 3;
/** The shortest that the gateway takes. */
const TIMEOUT_SECONDS = 60;
const REST_MS = 180_000;
const IMPATIENT_MS = 5_000;
const CALLS_MS = 120_000;
const ENV = { COMMAND_QUEUE_PER_DEVICE: "2000" };

/** Control: every fifth order is carried out, and never acked. */
const silentAfterWork = (_: unknown, base: AgentOptions, index: number): AgentOptions => {
  if (index % 5 > 0) return base;
  const silent = (handler: CommandHandler): CommandHandler => ({
    ...handler,
    run: async (payload, context) => {
      await handler.run(payload, context);
      return new Promise<never>(() => undefined);
    },
  });
  return {
    ...base,
    handlers: Object.fromEntries(Object.entries(base.handlers).map(([type, handler]) => [type, type === "app.deploy" ? silent(handler) : handler])),
  };
};

const runMany = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed, env: ENV }, async (rig) => {
    const members = await rig.provision(scale.agents > 50 ? 500 : 24);
    // The devices take as long as they say: the figures are of use only in real time.
    const options = { members, seed, clock: systemTime, ...(control ? { tune: silentAfterWork } : {}) };
    return withDeployFleet(rig, options, async (fleet) => {
      const before = await readCounters(fleet.sql);
      const deployed = await deployAll(fleet.portal, ordersFor(members, PER_DEVICE, TIMEOUT_SECONDS), patience(CALLS_MS));
      const acceptedMs = time.wallMs() - (deployed[0]?.askedAtMs ?? 0);
      await fleet.untilSettled(control ? IMPATIENT_MS : REST_MS);
      const after = await readCounters(fleet.sql);
      const ids = deployed.map(({ deploymentId }) => deploymentId);
      const { verdict, facts } = await fleet.judge(ids, { withinMs: control ? IMPATIENT_MS : REST_MS });
      const { p50, p99, slowestMs } = await toActive(fleet.sql, new Map(deployed.map(({ deploymentId, askedAtMs }) => [deploymentId, askedAtMs])));
      return {
        n: deployed.length,
        faults: 0,
        violations: { ...countsOf(verdict), "not-active": facts.filter(({ status }) => status !== "active").length },
        latencyMs: { p50, p99 },
        notes: [
          `${members.length} devices x ${PER_DEVICE} deployments, all ordered at once: answered after ${Math.round(acceptedMs)} ms, all active after ${Math.round(slowestMs)} ms; ms are from the order of all to active`,
          `${((after.transactions - before.transactions) / deployed.length).toFixed(1)} transactions of the whole database for each deployment, ${after.deadlocks - before.deadlocks} deadlocks`,
          ...notesOn(verdict),
          ...facts.flatMap(({ status, reason, message }) => (status === "failed" ? [`${reason}: ${message}`] : [])).slice(0, 3),
        ],
      };
    });
  });

/** Orders the next revision of each, and returns how the gateway answered. */
const updateAll = async ({ portal }: DeployFleet, ids: readonly string[], configuration: (index: number) => object): Promise<ReadonlyMap<string, number>> => {
  const answers = new Map<string, number>();
  await inLanes(ids, 32, async (id, index) => {
    const answer = await portal.change(id, "redeploy", { key: randomUUID(), body: { configuration: configuration(index) }, retry: patience(CALLS_MS) });
    const { code, details } = errorOf(answer);
    tally(answers, isSuccess(answer) ? "accepted" : `${answer.status} ${code} ${JSON.stringify(details ?? null)}`);
  });
  return answers;
};

/** An event before all others, so that even the first visit of a viewer misses none. */
const firstEvent = async ({ sql }: DeployFleet, { credentials }: Rig): Promise<string> => {
  const id = `evt_rig_${randomUUID()}`;
  await sql.query("insert into outbox_events (event_id, tenant_id, type, subject_id, data) values ($1, $2, 'chaos.written', 'before-all', '{}')", [
    id,
    credentials.tenantId,
  ]);
  const dispatched = async (): Promise<boolean> =>
    (await sql.query("select 1 from outbox_events e join outbox_dispatches d on e.position = any(d.positions) where e.event_id = $1", [id])).length > 0;
  while (!(await dispatched())) await new Promise((resolve) => time.after(50, () => resolve(undefined)));
  return id;
};

const FAILING = 0.15;
const runFailures = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed, env: ENV, sabotage: control ? SOME_FAILURES_ARE_LOST : undefined }, async (rig) => {
    const members = await rig.provision(scale.agents);
    const options = { members, seed, clock: hurried(scale.haste), failures: failingIn(FAILING) };
    return withDeployFleet(rig, options, async (fleet) => {
      const feed = watchFeed({ port: rig.apiProxy.port, credentials: rig.credentials, types: ["deployment.*", "app.*"], after: await firstEvent(fleet, rig) });
      try {
        const restMs = control ? IMPATIENT_MS * 2 : REST_MS;
        const random = createRandom(seed);
        const orders = ordersFor(members, PER_DEVICE, TIMEOUT_SECONDS);
        const deployed = await deployAll(fleet.portal, orders, patience(CALLS_MS));
        const ids = deployed.map(({ deploymentId }) => deploymentId);
        if (!(await fleet.untilSettled(restMs)) && !control) throw new Error("the deployments did not end in time");
        const answers = await updateAll(fleet, ids, (index) => ({ port: 30_000 + Math.floor(random() * 30) * 100 + (index % PER_DEVICE) }));
        await fleet.untilSettled(restMs);
        const { verdict } = await fleet.judge(ids, { withinMs: control ? IMPATIENT_MS : REST_MS });
        const [written, { deadlocks }] = [await readEvents(fleet.sql), await readCounters(fleet.sql)];
        await until(time, () => feed.events.length >= written.length, { everyMs: 100, withinMs: control ? IMPATIENT_MS : REST_MS });
        const failed = Object.entries(verdict.byStatus).reduce((sum, [status, count]) => sum + (status.startsWith("failed") ? count : 0), 0);
        const refused = [...answers].reduce((sum, [answer, count]) => sum + (answer === "accepted" ? 0 : count), 0);
        return {
          n: deployed.length * 2 - refused,
          faults: failed + verdict.rolledBack,
          violations: { ...countsOf(verdict), ...checkViewed(written, feed.events), refused },
          latencyMs: { p50: null, p99: null },
          notes: [
            `n counts revisions of ${deployed.length} deployments on ${members.length} devices, ${FAILING * 100} % with an injected failure: to start, in the health check, by hanging until the deadline, by a crash later`,
            `${verdict.outcomes} outcomes, ${verdict.rolledBack} automatic rollbacks, ${written.length} events, all in order for a viewer; ${deadlocks} deadlocks`,
            ...[...answers].flatMap(([answer, count]) => (answer === "accepted" ? [] : [`${count} updates refused: ${answer}`])),
            ...notesOn(verdict),
          ],
        };
      } finally {
        await feed.stop();
      }
    });
  });

export const deployScenarios: readonly Scenario[] = [
  {
    name: "deploy-many",
    promise: "D1",
    claim: "1,500 deployments ordered at once all become active, and each device runs what its records say",
    control: { how: "every fifth agent carries its orders out and never acks", red: "hanging" },
    run: runMany,
  },
  {
    name: "deploy-failures",
    promise: "D2",
    claim: "with 15 % failing every deployment ends once per revision, with a reason, its events in order, and rolled back to what ran before",
    control: { how: "the database drops some events that tell of a failed deployment", red: "no-outcome" },
    run: runFailures,
  },
];
