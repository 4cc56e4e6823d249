// A newer build migrates the database while a reader, such as a dump, keeps the table open.

import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../../server/core/clock.ts";
import { migrate } from "../../../../server/platform/database/migrations/migrate.ts";
import { migrationsFolder } from "../../../../server/platform/database/migrations/schema-engine.ts";
import { makeFolder } from "../../../kit/setup/workspace.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { openSql } from "../../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";
import { runGapTrial } from "./gap-trial.ts";

const DUMP_MS = { full: 30_000, short: 10_000 };
/** The promise: no create waits longer. */
const LATEST_MS = 5_000;
const NEWEST = "99990101000000_beside_a_dump";

/** The package's migrations and one more, which changes the table that every create writes. */
const newerMigrations = async (): Promise<string> => {
  const folder = join(makeFolder("migrations"), "migrations");
  await cp(migrationsFolder(), folder, { recursive: true });
  await mkdir(join(folder, NEWEST));
  await writeFile(join(folder, NEWEST, "migration.sql"), "alter table commands add column beside_a_dump text");
  return folder;
};

/** Holds the table as a dump does; the returned function ends it. */
const startDump = async ({ postgres }: Rig): Promise<() => Promise<void>> => {
  const sql = await openSql(postgres);
  await sql.query("begin isolation level repeatable read");
  await sql.query("select count(*) from commands");
  return async () => {
    await sql.query("commit");
    await sql.close();
  };
};

const run = async (context: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed: context.seed }, async (rig) => {
    const folder = await newerMigrations();
    const state: { reason: string; migrating: Promise<readonly string[]> } = { reason: "", migrating: Promise.resolve([]) };
    const note = (reason: string): void => {
      state.reason = reason;
    };
    const begin = async (): Promise<() => Promise<void>> => {
      const endDump = await startDump(rig);
      state.migrating = migrate({
        clock: systemClock,
        url: rig.postgres.url(rig.postgres.port),
        folder,
        waits: { during: (_wait, work) => work(note) },
        ...(context.control ? { lockTimeoutMs: 0 } : {}),
      });
      return endDump;
    };
    const { answers, ...trial } = await runGapTrial({
      rig,
      context,
      gapMs: DUMP_MS,
      latestMs: LATEST_MS,
      words: "a dump reads, and a migration begins",
      begin,
    });
    const applied = await state.migrating;
    await rm(folder, { recursive: true, force: true });
    return {
      ...trial,
      violations: {
        ...trial.violations,
        "create-failed": answers["503 without"] + answers["503 with retry advice"] + answers["no answer"] + answers.other,
        "later-than-5s": answers["too late"],
        "migration-did-not-wait": state.reason.includes("blocked by") ? 0 : 1,
        "migration-missing": applied.includes(NEWEST) ? 0 : 1,
      },
      notes: [...trial.notes, `the migration waited for: ${state.reason}`],
    };
  });

export const migrationScenarios: readonly Scenario[] = [
  {
    name: "migration-beside-dump",
    promise: "R3",
    claim: "a migration that waits 30 s behind an open dump fails no create and delays none by 5 s",
    control: { how: "the migration waits for its lock without a limit, and every statement on the table queues behind it", red: "create-failed" },
    run,
  },
];
