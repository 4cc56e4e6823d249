// Writes results: all that came in while the last batch was written, in one statement.
import type { Db } from "../../../platform/database/db.ts";
import { type Health, writeResults } from "../store/work.ts";
import type { Runner } from "./endpoint-runner.ts";
import { createApply, type EffectDeps, type SettledAttempt } from "./results.ts";

export interface WriterDeps extends EffectDeps {
  readonly db: Db;
  readonly guarded: (work: Promise<unknown>) => void;
  readonly written: (runner: Runner) => void;
}

const BATCH = 500;

const healthOf = (batch: readonly SettledAttempt[]): readonly Health[] => {
  const counts = new Map<Runner, { succeeded: number; failed: number }>();
  for (const { runner, result } of batch) {
    const count = counts.get(runner) ?? { succeeded: 0, failed: 0 };
    if (result.status === "succeeded") count.succeeded += 1;
    else count.failed += 1;
    counts.set(runner, count);
  }
  return [...counts].map(([runner, count]) => ({ ...runner.health(), ...count }));
};

export const createWriter = ({ db, guarded, written, ...effectDeps }: WriterDeps) => {
  let settled: SettledAttempt[] = [];
  let writing: Promise<void> | null = null;
  const apply = createApply(effectDeps);

  const write = async (batch: readonly SettledAttempt[]): Promise<void> => {
    const health = healthOf(batch);
    const results = batch.map(({ result }) => result);
    if (batch.every(({ effects }) => effects.length === 0)) await writeResults(db, health, results);
    else
      await db.tx(async (tx) => {
        await writeResults(tx, health, results);
        for (const each of batch) for (const effect of each.effects) await apply(tx, each, effect);
      });
  };

  const writeAll = async (): Promise<void> => {
    try {
      while (settled.length > 0) {
        const batch = settled.slice(0, BATCH);
        settled = settled.slice(BATCH);
        await write(batch);
        for (const { runner, waiting } of batch) runner.written(waiting.subjectId);
        for (const runner of new Set(batch.map((each) => each.runner))) written(runner);
      }
    } finally {
      // At once, so that no result in between is forgotten.
      writing = null;
    }
  };

  return {
    add: (one: SettledAttempt): void => {
      settled.push(one);
      writing ??= writeAll();
      guarded(writing);
    },
    idle: async (): Promise<void> => {
      await writing;
    },
  };
};
