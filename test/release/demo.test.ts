// `npm run demo -- --seconds N` ends by itself with a summary and leaves nothing running.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { built, connects, createSandbox, node, processesOf, runToEnd, type Sandbox } from "../flows/processes.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox();
});
afterAll(() => sandbox.remove());

test("the demo runs 25 devices, ends with a summary and code 0, and leaves no process", { timeout: 90_000 }, async () => {
  const { code, stdout, stderr } = await node("agent-sim/demo.js", ["--seconds", "4"], { env: sandbox.env });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/ready at http:/);
  expect(stdout).toMatch(/^Sign in within ten minutes, once: http.*\/v1\/auth\/login\?token=[\w-]{43} /m);
  expect(stdout).toMatch(/25/);
  expect(stdout).toMatch(/curl -s http.*\/v1\/devices\/dev_/);
  expect(stderr).not.toMatch(/not complete/);
  expect(await processesOf(sandbox.dir)).toEqual([]);
});

test.each([
  ["killed", `"$@" >/dev/null & sleep 0.1; while ! curl -s -o /dev/null "$URL/v1/health/live"; do sleep 0.1; done; kill -KILL $!`],
  ["cut off from its reader", `"$@" | head -1`],
])("a demo that is %s ends its gateway", { timeout: 150_000 }, async (_how, script) => {
  const own = await createSandbox();
  try {
    const url = `http://127.0.0.1:${own.env["PORT"] ?? ""}`;
    await runToEnd(["bash", "-c", script, "demo", process.execPath, built("agent-sim/demo.js")], { env: { ...own.env, URL: url } });
    await expect.poll(() => connects(url), { timeout: 60_000 }).toBe(false);
    await expect.poll(() => processesOf(own.dir), { timeout: 60_000 }).toEqual([]);
  } finally {
    await own.remove();
  }
});

test("the demo and its gateway end with their terminal", { timeout: 90_000 }, async () => {
  const own = await createSandbox();
  try {
    const demo = spawn(process.execPath, [built("agent-sim/demo.js")], { env: { PATH: process.env["PATH"], ...own.env }, stdio: ["ignore", "pipe", "ignore"] });
    await once(demo.stdout, "data");
    demo.kill("SIGHUP");
    await once(demo, "exit");
    expect(await processesOf(own.dir)).toEqual([]);
  } finally {
    await own.remove();
  }
});

test("an invalid option ends the demo at once with a message", async () => {
  const { code, stderr } = await node("agent-sim/demo.js", ["--devices", "many"], { env: sandbox.env });
  expect({ code, stderr }).toEqual({ code: 2, stderr: "--devices must be 1 to 500\n" });
});
