// SIGTERM to npm itself, as a process manager sends it, ends the gateway and the agent in order, and nothing of theirs is left.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, processesOf, ROOT, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { eventually } from "../kit/checks/eventually.ts";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await createSandbox();
});
afterEach(() => sandbox.remove());

const isEmpty = async (): Promise<void> => expect(await processesOf(sandbox.dir)).toEqual([]);

test("`npm start` stops in order: the gateway, its database, and npm with code 0", { timeout: 120_000 }, async () => {
  const gateway = await startGatewayProcess(sandbox.env, ["npm", "start"]);
  expect(await processesOf(sandbox.dir)).toEqual(expect.arrayContaining([expect.objectContaining({ command: expect.stringContaining("postgres") })]));
  expect(await gateway.end("SIGTERM")).toMatchObject({ code: 0, signal: null });
  await eventually(isEmpty, 30_000);
});
test("`npm run agent` stops in order, and npm with code 0", { timeout: 120_000 }, async () => {
  const identity = join(sandbox.dir, "device.json");
  writeFileSync(identity, JSON.stringify({ device_id: "dev_1", agent_id: "agt_1", tenant_id: "ten_1", shared_secret: "test-shared-secret-0001" }));
  const env = { ...process.env, ...sandbox.env };
  const npm = spawn("npm", ["run", "agent", "--", "--identity", identity, "--url", "http://127.0.0.1:9"], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let said = "";
  npm.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  // The agent opens its journal once it has its lock.
  await eventually(() => expect(existsSync(`${identity}.journal`)).toBe(true), 60_000);
  npm.kill("SIGTERM");
  expect(await once(npm, "exit")).toEqual([0, null]);
  expect(said).toContain("stopped");
  await eventually(isEmpty, 30_000);
});
