// A test run that is interrupted, or whose npm is, leaves no process behind: neither its workers, nor its database, nor what its tests have started.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, processesOf, ROOT, type Sandbox } from "../flows/processes.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { markOfRun, runFolders } from "../kit/setup/run-mark.ts";

const START_MS = 240_000;
const END_MS = 60_000;
const VITEST = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--config", join(ROOT, "test/release/interrupted/vitest.config.ts")];

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await createSandbox();
});
afterEach(() => sandbox.remove());

const start = async (command: readonly string[]): Promise<{ readonly child: ChildProcess; readonly mark: string }> => {
  const stands = join(sandbox.dir, "stands");
  const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], ...markOfRun(), STANDS: stands };
  const [file = "", ...words] = command;
  const child = spawn(file, words, { cwd: sandbox.dir, env, stdio: "ignore" });
  await eventually(() => expect(existsSync(stands) ? readFileSync(stands, "utf8") : "").toMatch(/^mooring-test-/), START_MS);
  return { child, mark: readFileSync(stands, "utf8") };
};

test.each([
  ["vitest", "SIGINT"],
  ["vitest", "SIGTERM"],
  ["vitest", "SIGKILL"],
  ["npm", "SIGTERM"],
  ["npm", "SIGKILL"],
] as const)("a run whose %s gets %s leaves no process and no folder", { timeout: START_MS + END_MS }, async (program, signal) => {
  const script = `node --version && node ${VITEST.join(" ")}`;
  writeFileSync(join(sandbox.dir, "package.json"), JSON.stringify({ name: "interrupted", private: true, scripts: { test: script } }));
  const { child, mark } = await start(program === "npm" ? ["npm", "test"] : [process.execPath, ...VITEST]);
  const before = (await processesOf(mark)).map(({ command }) => command);
  for (const started of [/cluster/, /redis-server/, /setInterval/, /run-guard/]) expect(before).toContainEqual(expect.stringMatching(started));

  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
  await eventually(async () => expect(await processesOf(mark)).toEqual([]), END_MS);
  expect(runFolders(mark)).toEqual([]);
});
