// .ci/run adds up the totals of the suite and of the release's tests: its last line and its exit code are true however a part ends.
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runToEnd } from "../flows/processes.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CALLS = "calls";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mooring-ci-"));
  mkdirSync(join(folder, ".ci"));
  mkdirSync(join(folder, "bin"));
  cpSync(join(ROOT, ".ci/run"), join(folder, ".ci/run"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Parts {
  readonly install?: string;
  readonly suite: string;
  readonly release: string;
}

/** Runs .ci/run with an npm whose commands are these shell scripts. */
const run = async ({ install = "exit 0", suite, release }: Parts) => {
  const npm = join(folder, "bin/npm");
  const script = `#!/bin/sh\necho "$*" >> ${CALLS}\ncase "$*" in\nci) ${install};;\ntest) ${suite};;\n"run test:release") ${release};;\n*) exit 99;;\nesac\n`;
  writeFileSync(npm, script);
  chmodSync(npm, 0o755);
  const { code, stdout } = await runToEnd([join(folder, ".ci/run")], { env: { PATH: `${join(folder, "bin")}:${process.env["PATH"]}` } });
  const lines = stdout.trim().split("\n");
  return { code, last: lines.at(-1), end: lines.slice(-3), totals: lines.filter((line) => /^\d+ passed, /.test(line)).length };
};
const reports = (passed: number, failed: number, skipped: number): string =>
  `echo; echo "${passed} passed, ${failed} failed, ${skipped} skipped"; exit ${failed > 0 ? 1 : 0}`;

test.each<[what: string, parts: Parts, code: number, last: string]>([
  ["both parts pass", { suite: reports(100, 0, 2), release: reports(20, 0, 1) }, 0, "120 passed, 0 failed, 3 skipped"],
  ["the suite fails", { suite: reports(99, 1, 0), release: reports(20, 0, 0) }, 1, "119 passed, 1 failed, 0 skipped"],
  ["the release's tests fail", { suite: reports(100, 0, 0), release: reports(18, 2, 0) }, 1, "118 passed, 2 failed, 0 skipped"],
  ["both fail", { suite: reports(99, 1, 0), release: reports(18, 2, 0) }, 1, "117 passed, 3 failed, 0 skipped"],
  ["the suite dies before its totals", { suite: "echo tests run; kill -9 $$", release: reports(20, 0, 0) }, 1, "20 passed, 1 failed, 0 skipped"],
  ["the release's tests die before their totals", { suite: reports(100, 0, 0), release: "kill -9 $$" }, 1, "100 passed, 1 failed, 0 skipped"],
  ["a part ends well without totals", { suite: "echo nothing to do", release: reports(20, 0, 0) }, 1, "20 passed, 1 failed, 0 skipped"],
  [
    "a part says totals and dies later, before its own",
    { suite: 'echo "5 passed, 0 failed, 0 skipped"; echo more; exit 1', release: reports(20, 0, 0) },
    1,
    "20 passed, 1 failed, 0 skipped",
  ],
  [
    "a part fails after totals without a failure",
    { suite: 'echo "5 passed, 0 failed, 0 skipped"; exit 1', release: reports(20, 0, 0) },
    1,
    "25 passed, 1 failed, 0 skipped",
  ],
  ["the packages cannot be installed", { install: "exit 7", suite: reports(1, 0, 0), release: reports(1, 0, 0) }, 1, "0 passed, 1 failed, 0 skipped"],
])("if %s, the exit code and the one line of totals say so", async (_what, parts, code, last) => {
  expect(await run(parts)).toMatchObject({ code, last, totals: 1 });
});

test("what failed in either part is repeated before the totals, so that the end of the log names it", async () => {
  const failing = (name: string): string => `echo "failed: ${name}"; echo "passed: ${name}"; ${reports(1, 1, 0)}`;
  const { end } = await run({ suite: failing("a.test.ts > one: expected 1"), release: failing("b.test.ts > two: expected 2") });
  expect(end).toEqual(["failed: a.test.ts > one: expected 1", "failed: b.test.ts > two: expected 2", "2 passed, 2 failed, 0 skipped"]);
});

test("it runs the installation, the suite and the release's tests, each once", async () => {
  await run({ suite: reports(1, 0, 0), release: reports(1, 0, 0) });
  expect(readFileSync(join(folder, CALLS), "utf8").trim().split("\n")).toEqual(["ci", "test", "run test:release"]);
});

test("README names the suite's command, which .ci/run runs", () => {
  expect(readFileSync(join(ROOT, "README.md"), "utf8")).toContain("npm ci && npm test");
});
