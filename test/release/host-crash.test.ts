// The agent is killed between any two steps of a change. The next start ends in the new or the old state, with no process and no file too many.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { DesiredApp, ReportedApp } from "../../protocol/records/apps/app-spec.ts";
import { desiredApp, inMode } from "../agent-sim/host/desired.ts";
import { openProcesses, type ProcessHarness } from "../agent-sim/host/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { freePort } from "../kit/net/free-port.ts";

let harness: ProcessHarness;
let app: DesiredApp;
beforeEach(async () => {
  harness = openProcesses();
  app = desiredApp(await freePort(), { spec: { stopSeconds: 1 } });
});
afterEach(() => harness.close());

/** Applies the app in a process that dies before its n-th step; 0: it lives. Returns the steps that it came to. */
const applyAndDie = (wanted: DesiredApp, at: number): readonly string[] => {
  const { stdout, stderr, signal } = spawnSync(
    process.execPath,
    ["--import", "tsx", join(import.meta.dirname, "host-crash.ts"), harness.folder, JSON.stringify(wanted), String(at)],
    { encoding: "utf8", timeout: 30_000 },
  );
  expect([stderr, signal]).toEqual(["", at === 0 ? null : "SIGKILL"]);
  return stdout.split("\n").slice(0, -1);
};

/** The processes that work in the harness's folder: shims and programs. */
const processes = (): readonly string[] =>
  readdirSync("/proc").flatMap((name) => {
    try {
      return readlinkSync(`/proc/${name}/cwd`).startsWith(harness.folder) && !/\) Z /.test(readFileSync(`/proc/${name}/stat`, "utf8")) ? [name] : [];
    } catch {
      return [];
    }
  });
const files = (): readonly string[] =>
  readdirSync(join(harness.folder, "apps"), { recursive: true, encoding: "utf8" })
    .map((path) => path.replace(app.appId, "app"))
    .sort();

const withRevision = (revision: number, more: readonly string[] = []): readonly string[] =>
  ["app", "app/log", "app/record.json", "app/revisions", `app/revisions/${revision}.json`, "app/volumes", "app/volumes/files", ...more].sort();
const running = (revision: number): Outcome => ({
  report: { state: "running", revision, health: "healthy" },
  files: withRevision(revision, ["app/pid"]),
  processes: 2,
});
const NOTHING: Outcome = { report: null, files: [], processes: 0 };

interface Outcome {
  readonly report: Partial<ReportedApp> | null;
  readonly files: readonly string[];
  readonly processes: number;
}

const expectOneOf = (outcomes: readonly Outcome[]): Promise<void> =>
  eventually(() => {
    const [report = null] = harness.host.report();
    const outcome = outcomes.find((each) => each.report?.revision === report?.revision && each.report?.state === report?.state);
    expect({ report, files: files(), processes: processes().length }).toEqual({
      report: outcome?.report === null ? null : expect.objectContaining(outcome?.report ?? { state: "as expected" }),
      files: outcome?.files,
      processes: outcome?.processes,
    });
  }, 20_000);

interface Change {
  readonly before: (app: DesiredApp) => DesiredApp | null;
  readonly wanted: (app: DesiredApp) => DesiredApp;
  readonly steps: readonly string[];
  readonly outcomes: readonly Outcome[];
}

const itself = (given: DesiredApp): DesiredApp => given;
const failure = { failure: expect.objectContaining({ revision: 2, reason: "EXITED" }) };
const CHANGES: Readonly<Record<string, Change>> = {
  install: {
    before: () => null,
    wanted: itself,
    steps: ["write revision", "begin", "stop old", "start new", "give order", "commit new", "tidy"],
    outcomes: [NOTHING, running(1)],
  },
  update: {
    before: itself,
    wanted: (given) => inMode(given, "serve"),
    steps: ["write revision", "begin", "stop old", "start new", "give order", "commit new", "tidy"],
    outcomes: [running(1), running(2)],
  },
  rollback: {
    before: itself,
    wanted: (given) => inMode(given, "exit"),
    steps: ["write revision", "begin", "stop old", "start new", "give order", "note failure", "stop new", "start old", "give order", "commit old", "tidy"],
    outcomes: [running(1), { ...running(1), report: { state: "running", revision: 1, health: "healthy", ...failure } }],
  },
  stop: {
    before: itself,
    wanted: (given) => ({ ...given, state: "stopped" }),
    steps: ["begin", "stop"],
    outcomes: [running(1), { report: { state: "stopped", revision: 1, health: "unknown" }, files: withRevision(1), processes: 0 }],
  },
  remove: {
    before: itself,
    wanted: (given) => ({ ...given, state: "removed" }),
    steps: ["begin", "stop", "remove volumes", "remove rest"],
    outcomes: [running(1), NOTHING],
  },
};

const cases = Object.entries(CHANGES).flatMap(([name, change]) => change.steps.map((step, at) => ({ name, change, step, at: at + 1 })));

test.each(cases)("killed before step $at of $name ($step), the next agent leaves the app whole", async ({ change, step, at }) => {
  const before = change.before(app);
  if (before !== null) await harness.host.apply(before);
  await harness.host.close();
  const wanted = change.wanted(app);
  expect(applyAndDie(wanted, at).at(-1)).toBe(step);
  await harness.reopen();
  await expectOneOf(change.outcomes);
});

test.each(Object.entries(CHANGES))("%s has these steps and no others", async (_name, change) => {
  const before = change.before(app);
  if (before !== null) await harness.host.apply(before);
  await harness.host.close();
  expect(applyAndDie(change.wanted(app), 0).filter((line) => !line.startsWith("failed"))).toEqual(change.steps);
  await harness.reopen();
  await expectOneOf(change.outcomes);
});
