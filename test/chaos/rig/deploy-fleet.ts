// A fleet whose simulated devices run apps: connects it, follows its deployments, and checks them against what the devices run.
import { createRandom, type PairedDevice, pause, type Time, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { type AgentGroup, createAgentGroup } from "../../../agent-sim/fleet/agent-group.ts";
import { type CommandTracker, createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import { createDeploymentPortal, type DeploymentPortal } from "../../../agent-sim/fleet/deployments.ts";
import type { AgentGroupOptions } from "../../../agent-sim/fleet/fleet-member.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { checkDeployments, DEPLOY_VIOLATIONS, type DeploymentFact, type DeployVerdict, type OnDevice } from "../check/deploy-checker.ts";
import { countChanging, readDeployments } from "../check/deploy-truth.ts";
import { patience } from "./calls.ts";
import { type Rig, urlOf } from "./rig.ts";
import { openSql, type SqlConnection } from "./sql.ts";

const CONNECT_MS = 60_000;
const CONNECT_PER_DEVICE_MS = 20;
const LOOK_MS = 250;

export interface DeployFleetOptions {
  readonly members: readonly PairedDevice[];
  readonly seed: number;
  /** Of the agents. */
  readonly clock: Time;
  readonly failures?: AgentGroupOptions["appFailures"];
  readonly tune?: AgentGroupOptions["tune"];
  readonly backupsOf?: AgentGroupOptions["backupsOf"];
}

export interface DeployFleet {
  readonly group: AgentGroup;
  readonly tracker: CommandTracker;
  readonly portal: DeploymentPortal;
  readonly sql: SqlConnection;
  readonly members: readonly PairedDevice[];
  /** What the simulated devices run. */
  onDevices(): OnDevice;
  /** False if something still changes after this time. */
  untilSettled(withinMs: number): Promise<boolean>;
  /** Judges again and again until nothing is wrong or the time is over: the last reports are on their way when the last command ends. */
  judge(accepted: readonly string[], options: { readonly withinMs: number; readonly onDevice?: () => OnDevice }): Promise<Judged>;
}

export interface Judged {
  readonly verdict: DeployVerdict;
  readonly facts: readonly DeploymentFact[];
}

const create = (rig: Rig, sql: SqlConnection, options: DeployFleetOptions): DeployFleet => {
  const { members, seed, clock, failures, tune, backupsOf } = options;
  const tracker = createCommandTracker(time.elapsedMs);
  const group = createAgentGroup({
    url: urlOf(rig.agentProxy),
    members,
    tracker,
    backupsOf,
    time: clock,
    random: createRandom(seed),
    seed,
    heartbeatSec: null,
    pollOnlyPct: 0,
    rampPerSecond: 200,
    onAlarm: () => undefined,
    appFailures: failures,
    ...(tune === undefined ? {} : { tune }),
  });
  const onDevices = (): OnDevice => new Map([...group.apps.values()].flatMap((apps) => apps.report().map((app) => [app.appId, app] as const)));
  return {
    group,
    tracker,
    sql,
    members,
    portal: createDeploymentPortal(rig.http, rig.credentials),
    onDevices,
    untilSettled: async (withinMs) => {
      const endMs = time.elapsedMs() + withinMs;
      while ((await countChanging(sql)) > 0) {
        if (time.elapsedMs() > endMs) return false;
        await pause(time, LOOK_MS);
      }
      return true;
    },
    judge: async (accepted, { withinMs, onDevice = onDevices }) => {
      const { untilMs } = patience(withinMs);
      for (;;) {
        const facts = await readDeployments(sql);
        const verdict = checkDeployments(accepted, facts, onDevice());
        if (DEPLOY_VIOLATIONS.every((kind) => verdict.violations[kind].length === 0) || time.elapsedMs() > untilMs) return { verdict, facts };
        await pause(time, LOOK_MS);
      }
    },
  };
};

export const withDeployFleet = async <T>(rig: Rig, options: DeployFleetOptions, use: (fleet: DeployFleet) => Promise<T>): Promise<T> => {
  const sql = await openSql(rig.postgres);
  const fleet = create(rig, sql, options);
  try {
    fleet.group.start();
    if (
      !(await until(time, () => fleet.group.connected === fleet.group.size, { everyMs: 50, withinMs: CONNECT_MS + fleet.group.size * CONNECT_PER_DEVICE_MS }))
    )
      throw new Error(`only ${fleet.group.connected} of ${fleet.group.size} agents connected`);
    return await use(fleet);
  } finally {
    await fleet.group.stop();
    await sql.close();
  }
};

export const countsOf = ({ violations }: DeployVerdict): Readonly<Record<string, number>> =>
  Object.fromEntries(DEPLOY_VIOLATIONS.map((kind) => [kind, violations[kind].length]));

/** How the deployments ended, and examples of each violation. */
export const notesOn = ({ byStatus, violations }: DeployVerdict): readonly string[] => [
  `ended as ${Object.entries(byStatus)
    .map(([status, count]) => `${count} ${status}`)
    .join(", ")}`,
  ...DEPLOY_VIOLATIONS.flatMap((kind) => (violations[kind].length > 0 ? [`${kind}: ${violations[kind].slice(0, 3).join(" ")}`] : [])),
];

const ACTIVE_AT = `
  select d.deployment_id as id, extract(epoch from max((step->>'at')::timestamptz)) * 1000 as at_ms
    from deployments d, json_array_elements(d.timeline) step where step->>'to' = 'active' group by d.deployment_id`;
/** From these moments of the wall clock to the step to active. */
export const toActive = async (sql: SqlConnection, askedAtMs: ReadonlyMap<string, number>) => {
  const latency = createLatency();
  let slowestMs = 0;
  for (const { id, at_ms } of await sql.query<{ id: string; at_ms: string }>(ACTIVE_AT)) {
    const askedMs = askedAtMs.get(id);
    if (askedMs === undefined) continue;
    latency.add(Number(at_ms) - askedMs);
    slowestMs = Math.max(slowestMs, Number(at_ms) - askedMs);
  }
  return { ...latency.percentiles(), slowestMs };
};
