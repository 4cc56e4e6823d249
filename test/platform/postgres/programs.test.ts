// The programs that the embedded database starts end within their time, hold no memory, and inherit no secret.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemTimers, type Timers } from "../../../protocol/kit/timers.ts";
import { INITDB_MS, initialise, type PostgresCluster } from "../../../server/platform/postgres/postgres-process.ts";
import { runSystemProgram } from "../../../server/platform/postgres/system-programs.ts";
import { eventually } from "../../kit/checks/eventually.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mooring-programs-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);
/** Writes a program that notes its process id and then runs the code. */
const writeProgram = (code: string): string => {
  writeFileSync(at("program"), `#!${process.execPath}\nrequire("node:fs").writeFileSync(${JSON.stringify(at("pid"))}, String(process.pid));\n${code}\n`);
  chmodSync(at("program"), 0o755);
  return at("program");
};
const clusterWith = (initdb: string): PostgresCluster => ({
  dir: at("cluster"),
  logFile: at("log"),
  launch: { owner: undefined, prefix: [] },
  initdb,
  postgres: "none",
  settings: {},
});
/** Timers that end the wait of this length when the test says so. */
const createHeldTimers = (heldMs: number) => {
  let expire = (): void => undefined;
  const timers: Timers = {
    after: (delayMs, run) => {
      if (delayMs !== heldMs) return systemTimers.after(delayMs, run);
      expire = run;
      return () => undefined;
    },
  };
  return { timers, expire: () => expire() };
};
const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};
const DEAF = 'process.on("SIGTERM", () => undefined); setInterval(() => undefined, 1000);';

test.each([
  ["never ends", INITDB_MS.withinMs, "it took too long"],
  ["falls silent", INITDB_MS.idleMs, "it said nothing for too long"],
])("an initdb that %s and ignores SIGTERM is killed, and the start fails with the reason", async (_, heldMs, reason) => {
  const { timers, expire } = createHeldTimers(heldMs);
  const failure = initialise(clusterWith(writeProgram(`${DEAF} process.stdout.write("creating");`)), "secret", timers).catch(String);
  const pid = await eventually(() => {
    const number = Number(readFileSync(at("pid"), "utf8"));
    expect(number).toBeGreaterThan(0);
    return number;
  });
  expire();
  expect(await failure).toContain(`failed: ${reason}`);
  expect(isGone(pid)).toBe(true);
  // The password does not stay behind.
  expect(existsSync(at("cluster.password"))).toBe(false);
});

test("an initdb that floods fails with the end of what it said", async () => {
  const flood =
    'for (let n = 0; n < 300; n += 1) require("node:fs").writeSync(1, "x".repeat(10000)); require("node:fs").writeSync(1, "disk full"); process.exitCode = 3;';
  const failure = await initialise(clusterWith(writeProgram(flood)), "secret").catch(String);
  expect(failure).toMatch(/it ended with 3: x+disk full$/);
  expect(String(failure).length).toBeLessThan(3_000);
});

test("a program of the system is found, says its answer, and sees nothing of the gateway's environment", async () => {
  expect(await runSystemProgram("id", ["-u"])).toBe(`${process.getuid?.()}\n`);
  const seen = await runSystemProgram("env", []);
  expect(
    seen
      .trim()
      .split("\n")
      .map((line) => line.split("=")[0])
      .sort(),
  ).toEqual(["LC_ALL", "PATH", "TZ"]);
});

test("a program that fails or is not there rejects with its own words", async () => {
  await expect(runSystemProgram("id", ["-u", "nobody-has-this-name"])).rejects.toThrow(/^id failed: it ended with 1: .*nobody-has-this-name/);
  await expect(runSystemProgram("no-such-program", [])).rejects.toThrow(/^no-such-program failed: .*ENOENT/);
});
