// `npm run demo -- --seconds N`: ends by itself, with a summary, and leaves nothing running.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSandbox, node, processesOf, type Sandbox } from "./processes.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox();
});
afterAll(() => sandbox.remove());

test("25 devices pair, beat and execute commands; the end is a summary, code 0 and an empty house", { timeout: 90_000 }, async () => {
  const { code, stdout, stderr } = await node("agent-sim/demo.js", ["--seconds", "4"], { env: sandbox.env });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/ready at http:/);
  expect(stdout).toMatch(/25/);
  expect(stdout).toMatch(/curl -s http.*\/v1\/devices\/dev_/);
  expect(await processesOf(sandbox.dir)).toEqual([]);
});

test("what cannot be asked for is said at once", async () => {
  const { code, stderr } = await node("agent-sim/demo.js", ["--devices", "many"], { env: sandbox.env });
  expect({ code, stderr }).toEqual({ code: 2, stderr: "--devices must be 1 to 500\n" });
});
