// A signal to npm reaches the program that a script starts only if the shell between them has made way.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { ROOT, runToEnd } from "../flows/processes.ts";

const Package = z.object({ scripts: z.record(z.string(), z.string()) });
const { scripts } = Package.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
/** They end by themselves, after one step of work. */
const WORK = new Set([
  "build",
  "build:client",
  "build:agent",
  "build:agent-kit",
  "check",
  "check:types",
  "check:compile",
  "check:lint",
  "check:imports",
  "check:openapi",
  "format",
  "test",
  "test:release",
  "test:near",
  "test:budget",
  "test:matrix",
  "fuzz",
]);
const STEPS = /^(docs:|db:|new$|generate$)/;
const lasting = Object.entries(scripts).filter(([name]) => !WORK.has(name) && !STEPS.test(name));

describe("npm scripts", () => {
  test.each(lasting)("`%s` hands its process over to the program that lasts", (_name, script) => {
    expect(script.split(" && ").at(-1)).toMatch(/^exec /);
  });
  test("that run for as long as somebody wants are among them", () => {
    expect(lasting.map(([name]) => name)).toEqual(expect.arrayContaining(["start", "demo", "dev", "sim", "agent", "chaos", "cli", "bench"]));
  });
});

describe("scripts that run at once", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "mooring-at-once-"));
    const say = (text: string, code: number): string => `node -e "console.log('${text}'); process.exitCode = ${code}"`;
    const [well, bad] = [say("all is well", 0), say("line 7 is wrong", 3)];
    const own = { good: well, bad, "check:compile": well, "check:lint": bad, "check:imports": well };
    writeFileSync(join(folder, "package.json"), JSON.stringify({ scripts: own }));
    const setup = join(ROOT, "test/kit/setup/checks.ts");
    writeFileSync(join(folder, "vitest.config.mjs"), `export default { test: { globals: true, globalSetup: [${JSON.stringify(setup)}] } }`);
    writeFileSync(join(folder, "a.test.js"), "test('passes', () => {})");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("all say what they found, and one that fails fails them", async () => {
    const run = (...names: readonly string[]) => runToEnd([process.execPath, join(ROOT, "test/kit/setup/at-once.mjs"), ...names], { env: {}, cwd: folder });
    expect(await run("good")).toMatchObject({ code: 0, stdout: "all is well\n" });
    const { code, stdout } = await run("bad", "good");
    expect([code, stdout.trim().split("\n").sort()]).toEqual([1, ["all is well", "line 7 is wrong", "npm run bad failed"]]);
  });

  test("run beside all tests, and a check that fails fails the run; other runs go without checks", async () => {
    const command = [process.execPath, join(ROOT, "node_modules/vitest/vitest.mjs"), "run"];
    const [whole, part] = await Promise.all([{ TEST_WHOLE_RUN: "1" }, {}].map((env) => runToEnd(command, { env, cwd: folder })));
    expect(whole?.code).toBe(1);
    expect(whole?.stdout).toMatch(/line 7 is wrong[\s\S]*npm run check:lint failed[\s\S]*^failed: the checks/m);
    expect(part?.code).toBe(0);
    expect(part?.stdout).not.toContain("wrong");
  });
});
