// A database that answers and says no: it is read-only, its disk is full, another server has become the writer, or somebody holds a table.
import { execFile } from "node:child_process";
import { chown, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { pause, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { makeFolder } from "../../../kit/setup/workspace.ts";
import { queueOnce } from "../../rig/ask-meanwhile.ts";
import type { ProxyOptions } from "../../rig/proxy.ts";
import { createRig, type Rig, type RigOptions } from "../../rig/rig.ts";
import { ask, openSql } from "../../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";
import { runGapTrial, wrongOf } from "./gap-trial.ts";

const run = promisify(execFile);

/** The gateway meets an error that its table does not know, so it keeps its sessions and answers 500. */
const unknown =
  (sqlState: string): NonNullable<ProxyOptions["filter"]> =>
  () => {
    const [said, heard] = [Buffer.from(`C${sqlState}\0`, "latin1"), Buffer.from("CXX000\0", "latin1")];
    return (direction, chunk) => {
      if (direction === "up") return chunk;
      const changed = Buffer.from(chunk);
      for (let at = changed.indexOf(said); at >= 0; at = changed.indexOf(said, at + 1)) heard.copy(changed, at);
      return changed;
    };
  };

interface Refusing {
  readonly sqlState: string;
  readonly rig?: Partial<RigOptions>;
  /** Some calls may succeed meanwhile. */
  readonly lenient?: boolean;
  /** Each call of the control comes alone. */
  readonly isSparseControl?: boolean;
  /** Before the load; the returned function runs at the end. */
  prepare?(rig: Rig): Promise<() => Promise<void>>;
  /** Makes the database refuse; the returned function ends that. */
  begin(rig: Rig): Promise<() => Promise<void>>;
  readonly words: string;
}

const GAP_MS = { full: 20_000, short: 10_000 };
/** Calls go on within this time of the end. */
const BACK_MS = 10_000;
const LOOK_MS = 100;
/** Calls at once, so that they need several of the gateway's sessions: one that still serves must not hide those that do not. */
const CALLS_AT_ONCE = 8;
/** A locked table is given up after two seconds, so calls at this distance meet in no batch. */
const SPARSE = { perSecond: 0.2, askEveryMs: 2_500 };

/** How long until commands can be queued again. A full queue answers, too. */
const backAfter = async (rig: Rig, deviceId: string): Promise<number> => {
  const startMs = time.elapsedMs();
  while (time.elapsedMs() - startMs < BACK_MS) {
    const answers = await Promise.all(Array.from({ length: CALLS_AT_ONCE }, () => queueOnce(rig, rig.http, deviceId)));
    if (answers.every((answer) => answer?.status === 201 || answer?.status === 429)) return time.elapsedMs() - startMs;
    await pause(time, LOOK_MS);
  }
  return BACK_MS;
};

const refuse = async (
  context: Context,
  { sqlState, rig: rigOptions = {}, lenient = false, isSparseControl = false, prepare, begin, words }: Refusing,
): Promise<ScenarioOutcome> => {
  const { seed, scale, control } = context;
  const isSparse = control && isSparseControl;
  const perSecond = isSparse ? SPARSE.perSecond : scale.perSecond;
  const rig = await createRig({ nodes: 1, seed, ...rigOptions, ...(control ? { databaseFilter: unknown(sqlState) } : {}) });
  const state = { backMs: BACK_MS };
  let undo: (() => Promise<void>) | undefined;
  try {
    undo = await prepare?.(rig);
    const after = async (deviceId: string): Promise<void> => {
      state.backMs = await backAfter(rig, deviceId);
    };
    const gap = { gapMs: GAP_MS, words, begin: () => begin(rig), after, ...(isSparse ? { askEveryMs: SPARSE.askEveryMs } : {}) };
    const { answers, ...trial } = await runGapTrial({ rig, context: { ...context, scale: { ...scale, perSecond } }, ...gap });
    const violations = {
      ...trial.violations,
      "wrong-answer-in-gap": wrongOf(answers) - (lenient ? answers["2xx meanwhile"] : 0),
      "nothing-was-refused": control || answers["503 with retry advice"] > 0 ? 0 : 1,
      "later-than-8s": answers["too late"],
      "not-back-in-10s": state.backMs < BACK_MS ? 0 : 1,
    };
    return { ...trial, violations, notes: [...trial.notes, `back ${Math.round(state.backMs)} ms after the end`] };
  } finally {
    await undo?.();
    await rig.close();
  }
};

const scenario = (name: string, claim: string, how: string, refusing: Refusing & { readonly red?: string }): Scenario => ({
  name,
  promise: "R3",
  claim,
  control: { how, red: refusing.red ?? "wrong-answer-in-gap" },
  run: (context) => refuse(context, refusing),
});

/** ALTER SYSTEM takes no transaction, so each statement goes alone. Open sessions follow, as those of a demoted writer do. */
const setReadOnly = async (rig: Rig, on: boolean): Promise<void> => {
  await ask(rig.postgres, `alter system set default_transaction_read_only = ${on ? "on" : "off"}`);
  await ask(rig.postgres, "select pg_reload_conf()");
};

/** Puts the commands on a file system of 16 MiB; the returned function gives it back. */
const useSmallDisk = async (rig: Rig): Promise<() => Promise<void>> => {
  const disk = join(makeFolder("disk"), "small");
  await mkdir(disk, { mode: 0o755 });
  await run("mount", ["-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", disk]);
  const [{ path } = { path: "" }] = await ask<{ path: string }>(rig.postgres, "select setting as path from pg_settings where name = 'data_directory'");
  const { uid, gid } = await stat(path);
  await chown(disk, uid, gid);
  for (const text of [
    `create tablespace small location '${disk}'`,
    "alter table commands set tablespace small",
    "create table filler (bytes text) tablespace small",
  ])
    await ask(rig.postgres, text);
  return async () => {
    await rig.postgres.stop();
    await run("umount", [disk]);
  };
};

/** Something else fills the disk, in ever smaller pieces, so that not even a page is left. */
const fillDisk = async (rig: Rig): Promise<() => Promise<void>> => {
  const sql = await openSql(rig.postgres);
  for (const rows of [50_000, 10_000, 2_000, 500, 100, 20])
    for (let isFree = true; isFree; )
      isFree = await sql.query(`insert into filler select repeat(md5(random()::text), 10) from generate_series(1, ${rows})`).then(
        () => true,
        () => false,
      );
  await sql.close();
  return async () => void (await ask(rig.postgres, "drop table filler"));
};

/** The proxy goes on to serve open sessions by the former writer, as a balancer does that knows only connections. */
const switchOver = async (rig: Rig): Promise<() => Promise<void>> => {
  const { standby } = rig;
  if (standby === null) throw new Error("this rig has no standby");
  await setReadOnly(rig, true);
  return async () => {
    await standby.promote();
    rig.failOver();
  };
};

const lockTable = async (rig: Rig): Promise<() => Promise<void>> => {
  const sql = await openSql(rig.postgres);
  await sql.query("begin");
  await sql.query("lock table commands in access exclusive mode");
  return async () => {
    await sql.query("rollback");
    await sql.close();
  };
};

export const refusalScenarios: readonly Scenario[] = [
  scenario(
    "postgres-read-only",
    "while the database takes no changes every call gets 503 with Retry-After, and nothing is lost",
    "the gateway does not know 25006",
    {
      ...{ sqlState: "25006", words: "the database is set to read-only" },
      begin: async (rig) => {
        await setReadOnly(rig, true);
        return () => setReadOnly(rig, false);
      },
    },
  ),
  scenario(
    "postgres-disk-full",
    "while the disk is full every call that fails gets 503 with Retry-After, and nothing is lost",
    "the gateway does not know 53100",
    {
      ...{ sqlState: "53100", words: "the disk of the commands is full", lenient: true, prepare: useSmallDisk, begin: fillDisk },
    },
  ),
  scenario(
    "postgres-switchover",
    "creates go on within 10 s of a new writer although the former one keeps its sessions",
    "no eviction: the gateway does not know 25006",
    {
      ...{ sqlState: "25006", rig: { standby: "sync" }, words: "the writer is demoted and keeps its sessions", begin: switchOver, red: "not-back-in-10s" },
    },
  ),
  scenario(
    "table-lock",
    "behind a locked table every call ends within 8 s with 503 and Retry-After, and nothing is lost",
    "the gateway does not know 55P03, so it answers 500",
    {
      // A full batch that fails so is halved until its callers' time is over, and they hear 503 all the same. A batch of one shows the 500.
      ...{ sqlState: "55P03", words: "somebody locks the table of commands", begin: lockTable, isSparseControl: true },
    },
  ),
];
