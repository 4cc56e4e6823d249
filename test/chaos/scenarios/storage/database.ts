// A database that dies or cannot be reached.
import { withRig } from "../../rig/rig.ts";
import { fromSmallBuffer } from "../../rig/shortcuts.ts";
import { ask } from "../../rig/sql.ts";
import type { Scenario, ScenarioOutcome } from "../../scenario.ts";
import type { TrialStage } from "../../trial.ts";
import { onRig, trialOf } from "../kills.ts";
import { runGapTrial, wrongOf } from "./gap-trial.ts";

/** PostgreSQL writes its WAL to disk only when a commit asks for it, and with these settings none does. */
const ANSWERS_FIRST = { synchronous_commit: "off", wal_writer_delay: "10s", wal_writer_flush_after: "1GB", wal_buffers: "64MB", bgwriter_lru_maxpages: "0" };
const WRITERS = ["walwriter", "background writer", "checkpointer"] as const;

const postgresKill: Scenario = {
  name: "postgres-kill",
  promise: "R3",
  claim: "a command answered 2xx survives kill -9 of PostgreSQL and all its backends; none gets 2xx while it is down",
  control: { how: "synchronous_commit=off with the WAL writers stopped: PostgreSQL answers before the data is safe", red: "ok-lost" },
  run: ({ seed, scale, control }) =>
    onRig(
      { nodes: 1, seed, ...(control ? { postgresSettings: ANSWERS_FIRST } : {}) },
      {
        seed,
        scale,
        impatient: control,
        trouble: async ({ rig, running, random, fault, gap, wait }: TrialStage) => {
          // Rows so far are safe; rows from now on are only in memory.
          if (control) await ask(rig.postgres, "checkpoint");
          if (control) for (const writer of WRITERS) await rig.postgres.signalHelpers(writer, "SIGSTOP");
          await wait(1_500);
          while (running()) {
            fault("kill -9 PostgreSQL");
            await rig.postgres.kill();
            const over = gap();
            await wait(200 + random() * 500);
            over();
            await rig.postgres.start();
            await wait(2_000 + random() * 1_500);
          }
        },
      },
    ),
};

const postgresUnreachable: Scenario = {
  name: "postgres-unreachable",
  promise: "R3",
  claim: "half a minute without any answer from PostgreSQL loses nothing: meanwhile calls wait or get 503 with Retry-After, none gets 2xx",
  control: { how: "the gateway answers 2xx from a buffer of ten commands that it writes one after another", red: "ok-lost" },
  run: async (context): Promise<ScenarioOutcome> =>
    withRig({ nodes: 1, seed: context.seed }, async (rig) => {
      const { answers, ...trial } = await runGapTrial({
        ...{ rig, context, gapMs: { full: 30_000, short: 3_000 }, words: "PostgreSQL black-holed" },
        begin: async ({ gap }) => {
          rig.databaseProxy.set({ hold: ["up", "down"], newcomers: "ignore" });
          const over = gap();
          return () => {
            // The control answers too early by design, so only the real gateway is checked here.
            if (!context.control) over();
            rig.databaseProxy.calm();
          };
        },
        trial: { ...trialOf(context, fromSmallBuffer), relief: () => rig.databaseProxy.calm() },
      });
      return { ...trial, violations: { ...trial.violations, "wrong-answer-in-gap": wrongOf(answers) } };
    }),
};

export const databaseScenarios: readonly Scenario[] = [postgresKill, postgresUnreachable];
