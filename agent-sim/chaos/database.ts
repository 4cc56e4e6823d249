// A database that dies or cannot be reached.
import { systemTime as time } from "../time.ts";
import { onRig, trialOf } from "./kills.ts";
import type { Scenario } from "./scenario.ts";
import type { Stage } from "./trial.ts";

const MUCH_LATER = { synchronous_commit: "off", wal_writer_delay: "1s", wal_writer_flush_after: "1GB", wal_buffers: "64MB" };

const postgresKill: Scenario = {
  name: "postgres-kill",
  promise: "R3",
  claim: "a command answered 2xx survives kill -9 of PostgreSQL and all its backends; none is answered 2xx in the gap",
  control: { how: "synchronous_commit=off: PostgreSQL itself answers before the data is safe", red: "ok-lost" },
  run: ({ seed, scale, control }) =>
    onRig(
      { nodes: 1, seed, ...(control ? { postgresSettings: MUCH_LATER } : {}) },
      {
        seed,
        scale,
        impatient: control,
        trouble: async ({ rig, running, random, fault, wait }: Stage) => {
          await wait(1_500);
          while (running()) {
            fault("kill -9 PostgreSQL");
            await rig.postgres.kill();
            await wait(200 + random() * 500);
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
  claim: "a PostgreSQL that is black-holed for seconds costs time and nothing else",
  control: { how: "a door answers one request in 25 with 2xx before it has asked the gateway", red: "ok-lost" },
  run: (context) =>
    onRig(
      { nodes: 1, seed: context.seed },
      {
        ...trialOf(context),
        trouble: async ({ rig, running, fault, wait }: Stage) => {
          const gapMs = Math.min(30_000, context.scale.seconds * 400);
          await wait(1_000);
          if (!running()) return;
          fault(`PostgreSQL black-holed for ${gapMs} ms`);
          rig.databaseDoor.set({ hold: ["up", "down"], newcomers: "ignore" });
          const endMs = time.elapsedMs() + gapMs;
          while (time.elapsedMs() < endMs && running()) await wait(100);
          rig.databaseDoor.calm();
        },
        relief: ({ rig }) => rig.databaseDoor.calm(),
      },
    ),
};

export const databaseScenarios: readonly Scenario[] = [postgresKill, postgresUnreachable];
