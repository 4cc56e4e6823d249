// A database server is lost for good: its standby takes over, and no acknowledged command may be missing there.
import { systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { createRig } from "../../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";
import { runTrial, type TrialStage } from "../../trial.ts";

const ROUNDS = { full: 4, short: 1 };
/** The load of one round; each round has its own pair of servers. */
const SECONDS = { full: 10, short: 5 };
const STALLED_MS = 300;
/** In the control the standby lags this far behind, as an asynchronous one may. */
const BEHIND_MS = 900;

interface Round {
  readonly outcome: ScenarioOutcome;
  readonly tookMs: number;
}

interface Pair {
  readonly standby: "sync" | "async";
  readonly direct?: "both" | "leader";
}

const failOverOnce = async ({ seed, scale, control }: Context, pair: Pair): Promise<Round> => {
  const rig = await createRig({ nodes: 1, seed, ...pair });
  const lags = pair.standby === "async";
  const state = { tookMs: 0 };
  try {
    const trouble = async ({ fault, gap, wait }: TrialStage): Promise<void> => {
      const { postgres, standby } = rig;
      if (!standby) throw new Error("this rig has no standby");
      await wait(1_500);
      if (lags) standby.line.set({ hold: ["down"] });
      if (lags) await wait(BEHIND_MS);
      fault("the standby stalls");
      if ((await standby.postgres.signalHelpers("walreceiver", "SIGSTOP")) === 0) throw new Error("the standby has no receiver");
      await wait(STALLED_MS);
      fault("kill -9 the first server, which never comes back");
      const startMs = time.elapsedMs();
      await postgres.kill();
      const over = gap();
      // The server's connections die with it.
      standby.line.reset();
      await standby.postgres.signalHelpers("walreceiver", "SIGCONT");
      over();
      await standby.promote();
      rig.failOver();
      rig.databaseProxy.reset();
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

/** Combines several rounds into one outcome with the worst round's milliseconds. */
const together = (rounds: readonly Round[]): ScenarioOutcome => {
  const outcomes = rounds.map(({ outcome }) => outcome);
  const violations: Record<string, number> = {};
  for (const outcome of outcomes) for (const [name, count] of Object.entries(outcome.violations)) violations[name] = (violations[name] ?? 0) + count;
  const sum = (pick: (outcome: ScenarioOutcome) => number): number => outcomes.reduce((total, outcome) => total + pick(outcome), 0);
  return {
    n: sum(({ n }) => n),
    faults: sum(({ faults }) => faults),
    violations,
    latencyMs: { p50: most(outcomes.map(({ latencyMs }) => latencyMs.p50)), p99: most(outcomes.map(({ latencyMs }) => latencyMs.p99)) },
    notes: [
      ...outcomes.flatMap(({ notes }) => notes),
      `from the death of the first server to a standby that accepts writes: ${rounds.map(({ tookMs }) => tookMs).join(", ")} ms`,
    ],
  };
};

const failOver = async (context: Context, pair: Pair): Promise<ScenarioOutcome> => {
  const size = context.scale.agents > 50 ? "full" : "short";
  const rounds: Round[] = [];
  for (let n = 0; n < ROUNDS[size]; n += 1)
    rounds.push(await failOverOnce({ ...context, seed: context.seed + n, scale: { ...context.scale, seconds: SECONDS[size] } }, pair));
  return together(rounds);
};

const failover: Scenario = {
  name: "postgres-failover",
  promise: "R4",
  claim: "a command answered 2xx survives the loss of the database server: the synchronous standby has it",
  control: { how: "the standby replicates asynchronously and lags 0.9 s behind", red: "ok-lost" },
  run: (context) => failOver(context, { standby: context.control ? "async" : "sync" }),
};

const hosts: Scenario = {
  name: "postgres-hosts",
  promise: "R4",
  claim: "nodes that name both servers in DATABASE_URL find the new writer by themselves, without a proxy in between",
  control: { how: "DATABASE_URL names the first server only", red: "stranded" },
  run: (context) =>
    failOver(context, { standby: "sync", direct: context.control ? "leader" : "both" }).catch((error: unknown) => {
      // What the load says when nobody answers its calls for long.
      if (!/DATABASE_UNAVAILABLE/.test(String(error))) throw error;
      return { n: 1, faults: 1, violations: { stranded: 1 }, latencyMs: { p50: null, p99: null }, notes: [String(error)] };
    }),
};

export const failoverScenarios: readonly Scenario[] = [failover, hosts];
