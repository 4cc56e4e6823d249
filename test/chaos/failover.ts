// A database server that is lost for good: its standby takes over, and nothing that was answered may be missing there.
import { systemTime as time } from "../../agent-sim/agent/index.ts";
import { createRig } from "./rig.ts";
import type { Context, Outcome, Scenario } from "./scenario.ts";
import { runTrial, type Stage } from "./trial.ts";

const ROUNDS = { full: 4, short: 1 };
/** Load of one round; each round has a pair of servers of its own. */
const SECONDS = { full: 10, short: 5 };
const STALLED_MS = 300;
/** In the control the standby is this far behind, as an asynchronous one may be. */
const BEHIND_MS = 900;

interface Round {
  readonly outcome: Outcome;
  readonly tookMs: number;
}

const failOverOnce = async ({ seed, scale, control }: Context): Promise<Round> => {
  const rig = await createRig({ nodes: 1, seed, standby: control ? "async" : "sync" });
  const state = { tookMs: 0 };
  try {
    const trouble = async ({ fault, gap, wait }: Stage): Promise<void> => {
      const { postgres, standby } = rig;
      if (!standby) throw new Error("this rig has a standby");
      await wait(1_500);
      if (control) standby.line.set({ hold: ["down"] });
      if (control) await wait(BEHIND_MS);
      fault("the standby stalls");
      if ((await standby.postgres.signalHelpers("walreceiver", "SIGSTOP")) === 0) throw new Error("the standby has no receiver");
      await wait(STALLED_MS);
      fault("kill -9 the first server, which never comes back");
      const startMs = time.elapsedMs();
      await postgres.kill();
      const over = gap();
      // With the machine its lines are gone.
      standby.line.reset();
      await standby.postgres.signalHelpers("walreceiver", "SIGCONT");
      over();
      await standby.promote();
      rig.failOver();
      rig.databaseDoor.reset();
      state.tookMs = time.elapsedMs() - startMs;
    };
    const outcome = await runTrial({ rig, seed, scale, impatient: control, trouble });
    return { outcome, tookMs: Math.round(state.tookMs) };
  } finally {
    await rig.close();
  }
};

const most = (values: readonly (number | null)[]): number | null =>
  values.reduce<number | null>((top, value) => (value === null ? top : Math.max(top ?? value, value)), null);

/** Several rounds as one outcome; of the milliseconds, the worst round's. */
const together = (rounds: readonly Round[]): Outcome => {
  const outcomes = rounds.map(({ outcome }) => outcome);
  const violations: Record<string, number> = {};
  for (const outcome of outcomes) for (const [name, count] of Object.entries(outcome.violations)) violations[name] = (violations[name] ?? 0) + count;
  const sum = (pick: (outcome: Outcome) => number): number => outcomes.reduce((total, outcome) => total + pick(outcome), 0);
  return {
    n: sum(({ n }) => n),
    faults: sum(({ faults }) => faults),
    violations,
    latencyMs: { p50: most(outcomes.map(({ latencyMs }) => latencyMs.p50)), p99: most(outcomes.map(({ latencyMs }) => latencyMs.p99)) },
    notes: [
      ...outcomes.flatMap(({ notes }) => notes),
      `from the death of the first server to a standby that takes writes: ${rounds.map(({ tookMs }) => tookMs).join(", ")} ms`,
    ],
  };
};

const failover: Scenario = {
  name: "postgres-failover",
  promise: "R4",
  claim: "a command answered 2xx survives the loss of the database server: the synchronous standby has it",
  control: { how: "the standby follows asynchronously and is 0.9 s behind", red: "ok-lost" },
  run: async (context) => {
    const size = context.scale.agents > 50 ? "full" : "short";
    const rounds: Round[] = [];
    for (let n = 0; n < ROUNDS[size]; n += 1)
      rounds.push(await failOverOnce({ ...context, seed: context.seed + n, scale: { ...context.scale, seconds: SECONDS[size] } }));
    return together(rounds);
  },
};

export const failoverScenarios: readonly Scenario[] = [failover];
