// Rollouts over three nodes that are killed, frozen and cut off from their stores: nothing is ordered twice or forgotten, and the figures equal the rows.
import { createRandom, type PairedDevice, pause, type Random, systemTime as time, until } from "../../../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../../../agent-sim/fleet/agent-group.ts";
import { type CommandTracker, createCommandTracker } from "../../../../agent-sim/fleet/command-tracker.ts";
import { send } from "../../rig/calls.ts";
import type { ByteFilter } from "../../rig/proxy.ts";
import { type Rig, urlOf, withRig } from "../../rig/rig.ts";
import { COUNTERS_ARE_WRITTEN_BESIDE, ORDERS_COME_AFTER_THE_COMMIT, RAMP_IS_OPEN, STEPS_TAKE_LONG } from "../../rig/sabotage.ts";
import { ask } from "../../rig/sql.ts";
import { type Context, hurried, type Scenario, type ScenarioOutcome } from "../../scenario.ts";

const NODES = 3;
const FIRST_DEVICES = 100;
const CONNECT_MS = 60_000;
const REST_MS = 240_000;
/** What a broken rollout gets, since it may never end. */
const IMPATIENT_MS = 25_000;
const LOOK_MS = 150;
/** Longer than PostgreSQL lets a silent session of a step live. */
const FROZEN_MS = 12_000;

const LOCKS = [
  ["order by w.priority, w.step_at limit 1 for no key update skip locked", "order by w.priority, w.step_at limit 1"],
  ["where r.tenant_id = $1 and r.rollout_id = $2 for no key update", "where r.tenant_id = $1 and r.rollout_id = $2"],
] as const;

/** Takes the row locks out of the statements of a step, on connections that open while `broken` holds. */
const unlocking = (state: { broken: boolean }) => (): ByteFilter => {
  const { broken } = state;
  return (direction, chunk) => {
    if (!broken || direction === "down") return chunk;
    const replaced = LOCKS.reduce((text, [locked, open]) => text.replaceAll(locked, open.padEnd(locked.length)), chunk.toString("latin1"));
    return Buffer.from(replaced, "latin1");
  };
};

interface Stage {
  readonly rig: Rig;
  readonly random: Random;
  readonly members: readonly PairedDevice[];
  readonly fleetId: string;
  readonly tracker: CommandTracker;
}

/** A fleet of these devices. One call takes the first of them. */
const createFleet = async (rig: Rig, deviceIds: readonly string[]): Promise<string> => {
  const { fleetId } = await send(rig, "POST", "/fleets", { name: "all", deviceIds: deviceIds.slice(0, FIRST_DEVICES) });
  for (const deviceId of deviceIds.slice(FIRST_DEVICES)) await send(rig, "PUT", `/fleets/${String(fleetId)}/devices/${deviceId}`, {});
  return String(fleetId);
};

const FACTS = `
  with rows as (select * from rollout_devices where rollout_id = $1),
  sent as (select device_id, count(*)::int as times from commands where idempotency_key like 'system:rlt:' || $1 || ':%' group by device_id)
  select r.status, $2::int - r.total as missing,
    (select count(*) from rows m join sent s using (device_id) where s.times > m.attempt)::int as twice,
    (select count(*) from rows m where m.status in ('ordered', 'verifying') and not exists (select from commands c where c.command_id = m.command_id))::int as forgotten,
    (select count(*) from rows where status not in ('succeeded', 'failed', 'timed_out', 'skipped'))::int as unfinished,
    (r.pending + r.ordered + r.verifying + r.succeeded + r.failed + r.timed_out + r.skipped + r.aborted <> r.total
      or r.succeeded <> (select count(*) from rows where status = 'succeeded') or r.pending <> (select count(*) from rows where status = 'pending')
      or r.ordered + r.verifying <> (select count(*) from rows where status in ('ordered', 'verifying')))::int as miscounted,
    (select (count(*) filter (where status in ('ordered', 'verifying')) > greatest(5, count(*) filter (where status = 'succeeded')))::int from rows) as beyond
  from rollouts r where r.rollout_id = $1`;
interface Facts {
  readonly status: string;
  readonly missing: number;
  readonly twice: number;
  readonly forgotten: number;
  readonly unfinished: number;
  readonly miscounted: number;
  readonly beyond: number;
}
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "aborted", "paused"]);

/** Null while the database is away. */
const look = ({ rig, members }: Stage, rolloutId: string): Promise<Facts | null> =>
  ask<Facts & Record<string, unknown>>(rig.postgres, FACTS, [rolloutId, members.length]).then(
    ([facts]) => facts ?? null,
    () => null,
  );

type Trouble = (stage: Stage, turn: number) => Promise<void>;
const restart = async (rig: Rig, at: number): Promise<void> => {
  const node = rig.nodes[at % NODES];
  await node?.kill();
  await node?.start();
};
const TROUBLES: readonly Trouble[] = [
  ({ rig, random }) => restart(rig, Math.floor(random() * NODES)),
  async ({ rig, random }) => {
    const node = rig.nodes[Math.floor(random() * NODES)];
    node?.signal("SIGSTOP");
    await pause(time, FROZEN_MS);
    node?.signal("SIGCONT");
  },
  async ({ rig }) => {
    await rig.postgres.kill();
    await rig.postgres.start();
  },
  async ({ rig, random }) => {
    await rig.redis?.kill();
    await pause(time, 1_000 + random() * 2_000);
    await rig.redis?.start();
  },
];

interface Judged {
  readonly violations: Readonly<Record<keyof Omit<Facts, "status">, number>>;
  readonly faults: number;
  readonly status: string;
}

/** One rollout to all devices, in trouble until it has ended. */
const drill = async (stage: Stage, version: string, { troubles, withinMs }: { readonly troubles: readonly Trouble[]; readonly withinMs: number }) => {
  const { rig, random, fleetId } = stage;
  const settings = { subject: { kind: "agent" }, targetVersion: version, maxParallel: 50, failureThreshold: { percent: 100 }, deviceTimeoutMinutes: 5 };
  const { rolloutId } = await send(rig, "POST", "/rollouts", { fleetId, settings, start: true });
  const state = { over: false, faults: 0, beyond: 0 };
  const make = async (): Promise<void> => {
    for (let turn = Math.floor(random() * troubles.length); !state.over && troubles.length > 0; turn += 1) {
      await pause(time, 300 + random() * 2_500);
      if (state.over) return;
      state.faults += 1;
      await troubles[turn % troubles.length]?.(stage, turn);
    }
  };
  const trouble = make();
  let last: Facts | null = null;
  for (const endMs = time.elapsedMs() + withinMs; time.elapsedMs() < endMs && !(last !== null && ENDED.has(last.status)); await pause(time, LOOK_MS)) {
    last = (await look(stage, String(rolloutId))) ?? last;
    state.beyond += last?.beyond ?? 0;
  }
  state.over = true;
  await trouble;
  const facts = (await look(stage, String(rolloutId))) ?? last;
  if (facts === null) throw new Error("the database does not answer");
  const { status, ...violations } = facts;
  return { status, faults: state.faults, violations: { ...violations, beyond: state.beyond } } satisfies Judged;
};

/** Each breaks the steps in another way; the last column is what the checker must see. */
const CONTROLS = [
  ["no row lock, and steps that overlap", STEPS_TAKE_LONG, "miscounted"],
  ["counters outside the transaction", COUNTERS_ARE_WRITTEN_BESIDE, "miscounted"],
  ["orders after the commit", ORDERS_COME_AFTER_THE_COMMIT, "forgotten"],
  ["no ramp", RAMP_IS_OPEN, "beyond"],
] as const;

const runControls = async (stage: Stage, locks: { broken: boolean }): Promise<ScenarioOutcome> => {
  const notes: string[] = [];
  const seen: number[] = [];
  for (const [at, [how, { make, undo }, red]] of CONTROLS.entries()) {
    await ask(stage.rig.postgres, make);
    locks.broken = at === 0;
    // New connections parse the statements anew.
    for (let node = 0; node < NODES; node += 1) await restart(stage.rig, node);
    const { violations, status } = await drill(stage, `9.1.${at}`, { troubles: [], withinMs: IMPATIENT_MS });
    await ask(stage.rig.postgres, `${undo} update rollouts set status = 'aborted', completed_at = now(); delete from many_work; delete from rollout_devices;`);
    seen.push(violations[red]);
    notes.push(`${how}: ${violations[red]} ${red}, ${status}`);
  }
  return { n: CONTROLS.length, faults: CONTROLS.length, violations: { broken: Math.min(...seen) }, latencyMs: { p50: null, p99: null }, notes };
};

const runRollouts = async (stage: Stage, rounds: number): Promise<ScenarioOutcome> => {
  const judged: Judged[] = [];
  for (let round = 0; round < rounds; round += 1) judged.push(await drill(stage, `9.0.${round}`, { troubles: TROUBLES, withinMs: REST_MS }));
  const sum = (name: keyof Judged["violations"]): number => judged.reduce((total, { violations }) => total + violations[name], 0);
  const kinds = ["missing", "twice", "forgotten", "unfinished", "miscounted", "beyond"] as const;
  return {
    n: judged.length * stage.members.length,
    faults: judged.reduce((total, { faults }) => total + faults, 0),
    violations: { ...Object.fromEntries(kinds.map((kind) => [kind, sum(kind)])), "executed-twice": stage.tracker.counts.executedTwice },
    latencyMs: { p50: null, p99: null },
    notes: [
      `n counts updates of ${stage.members.length} devices in ${rounds} rollouts, which ended as ${judged.map(({ status }) => status).join(", ")}`,
      `nodes were started ${stage.rig.nodes.reduce((lives, node) => lives + node.lives, 0)} times`,
    ],
  };
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const locks = { broken: false };
  return withRig({ nodes: NODES, seed, redis: true, databaseFilter: unlocking(locks) }, async (rig) => {
    const members = await rig.provision(scale.agents);
    const tracker = createCommandTracker(time.elapsedMs);
    const group = createAgentGroup({
      url: urlOf(rig.agentProxy),
      members,
      tracker,
      time: hurried(scale.haste),
      random: createRandom(seed),
      seed,
      heartbeatSec: null,
      pollOnlyPct: 0,
      rampPerSecond: 200,
      onAlarm: () => undefined,
    });
    try {
      group.start();
      if (!(await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: CONNECT_MS })))
        throw new Error(`only ${group.connected} of ${group.size} agents connected`);
      const fleetId = await createFleet(
        rig,
        members.map(({ deviceId }) => deviceId),
      );
      const stage: Stage = { rig, members, tracker, random: createRandom(seed), fleetId };
      return await (control ? runControls(stage, locks) : runRollouts(stage, scale.agents > 50 ? 3 : 1));
    } finally {
      await group.stop();
    }
  });
};

export const rolloutStepScenarios: readonly Scenario[] = [
  {
    name: "rollout-steps",
    promise: "D5",
    claim:
      "while nodes are killed and frozen for 12 s, PostgreSQL is restarted and Redis is away, a rollout orders no device twice, forgets none, keeps its ramp, and its figures equal its rows",
    needsRedis: true,
    control: {
      how: "without row locks while steps overlap, with counters outside the transaction, with orders after the commit, and without the ramp, each in turn",
      red: "broken",
    },
    run,
  },
];
