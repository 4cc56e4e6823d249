// A newer build migrates the database while a reader, such as a dump, keeps the table open.
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pause, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { migrate } from "../../../../server/platform/database/migrations/migrate.ts";
import { migrationsFolder } from "../../../../server/platform/database/migrations/schema-engine.ts";
import { makeFolder } from "../../../kit/setup/workspace.ts";
import { type Asked, askMeanwhile, toldOf } from "../../rig/ask-meanwhile.ts";
import { createRig, type Rig } from "../../rig/rig.ts";
import { openSql } from "../../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";
import { runTrial, type TrialStage } from "../../trial.ts";

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

interface Beside {
  asked: Asked | null;
  /** What the migration said that it waits for. */
  reason: string;
  applied: readonly string[];
}

const migrateBesideDump = async (rig: Rig, { full, control }: { readonly full: boolean; readonly control: boolean }, stage: TrialStage): Promise<Beside> => {
  const [bystander] = await rig.provision(1);
  const folder = await newerMigrations();
  const beside: Beside = { asked: null, reason: "", applied: [] };
  await stage.wait(1_000);
  stage.fault("a dump reads, and a migration begins");
  const endDump = await startDump(rig);
  const note = (reason: string): void => {
    beside.reason = reason;
  };
  const migrating = migrate({
    url: rig.postgres.url(rig.postgres.port),
    folder,
    waits: { during: (_wait, work) => work(note) },
    ...(control ? { lockTimeoutMs: 0 } : {}),
  });
  const state = { isOpen: true };
  const asking = askMeanwhile(rig, bystander?.deviceId ?? "", () => state.isOpen, LATEST_MS);
  try {
    await pause(time, full ? DUMP_MS.full : DUMP_MS.short);
  } finally {
    state.isOpen = false;
    await endDump();
  }
  beside.asked = await asking;
  beside.applied = await migrating;
  await rm(folder, { recursive: true, force: true });
  return beside;
};

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const full = scale.seconds > 10;
  const rig = await createRig({ nodes: 1, seed });
  try {
    const state: { beside: Beside | null } = { beside: null };
    const seconds = Math.max(scale.seconds, (full ? DUMP_MS.full : DUMP_MS.short) / 1_000 + 3);
    const trouble = async (stage: TrialStage): Promise<void> => {
      state.beside = await migrateBesideDump(rig, { full, control }, stage);
    };
    const trial = await runTrial({ rig, seed, scale: { ...scale, seconds }, impatient: control, trouble });
    const { asked, reason, applied } = state.beside ?? { asked: null, reason: "", applied: [] };
    const answers = asked?.answers;
    const failed = answers === undefined ? 1 : answers["503 without"] + answers["503 with retry advice"] + answers["no answer"] + answers.other;
    return {
      ...trial,
      violations: {
        ...trial.violations,
        "create-failed": failed,
        "later-than-5s": answers?.["too late"] ?? 1,
        "migration-did-not-wait": reason.includes("blocked by") ? 0 : 1,
        "migration-missing": applied.includes(NEWEST) ? 0 : 1,
      },
      notes: [...trial.notes, asked === null ? "nobody was asked" : toldOf(asked), `the migration waited for: ${reason}`],
    };
  } finally {
    await rig.close();
  }
};

export const migrationScenarios: readonly Scenario[] = [
  {
    name: "migration-beside-dump",
    promise: "R3",
    claim: "a migration that waits 30 s behind an open dump fails no create and delays none by 5 s",
    control: { how: "the migration waits for its lock without a limit, and every statement on the table queues behind it", red: "create-failed" },
    run,
  },
];
