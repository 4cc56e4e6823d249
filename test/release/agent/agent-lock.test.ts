// Two agents on one state would run each command twice, so the second one ends with a sentence; a dead agent's lock does not count.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { built } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { inAnotherContainer } from "../../kit/net/pid-namespace.ts";

const WITHIN_MS = 30_000;

let folder: string;
const path = (): string => join(folder, "device.json");
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "agent-lock-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const command = (...args: readonly string[]): readonly [string, readonly string[]] => [
  process.execPath,
  [built("agent-sim/main.js"), "agent", "--identity", path(), "--url", "http://127.0.0.1:9", ...args],
];
const mutable = ([file, args]: readonly [string, readonly string[]]): [string, string[]] => [file, [...args]];
const writeIdentity = (): void =>
  writeFileSync(path(), JSON.stringify({ device_id: "dev_1", agent_id: "agt_1", tenant_id: "ten_1", shared_secret: "test-shared-secret-0001" }));

test("a second agent on the same state ends with a sentence that names the first; after a kill the next one starts", async () => {
  writeIdentity();
  const [file, args] = command();
  const first = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
  // The agent opens its journal only once it has the lock.
  await eventually(() => expect(existsSync(`${path()}.journal`)).toBe(true), WITHIN_MS);
  const second = spawnSync(file, command("--seconds", "0")[1], { encoding: "utf8", timeout: WITHIN_MS });
  expect([second.status, second.stderr]).toEqual([
    2,
    `another agent (process ${first.pid}) already uses ${path()}; stop it first, or give this one a state of its own\n`,
  ]);
  first.kill("SIGKILL");
  await once(first, "exit");
  expect(existsSync(`${path()}.lock`)).toBe(true);
  const third = spawnSync(file, command("--seconds", "0")[1], { encoding: "utf8", timeout: WITHIN_MS });
  expect([third.status, readFileSync(`${path()}.lock`, "utf8")]).toEqual([0, ""]);
}, 90_000);
test("a second agent with another identity on the same folder of data ends with a sentence that names the first, also through a link", async () => {
  writeIdentity();
  writeFileSync(
    join(folder, "other.json"),
    JSON.stringify({ device_id: "dev_2", agent_id: "agt_2", tenant_id: "ten_1", shared_secret: "test-shared-secret-0002" }),
  );
  const data = join(folder, "data");
  const [file, args] = command("--data", data);
  const first = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
  await eventually(() => expect(existsSync(`${path()}.journal`)).toBe(true), WITHIN_MS);
  symlinkSync(data, join(folder, "link"));
  const others = ["--identity", join(folder, "other.json"), "--data", join(folder, "link"), "--seconds", "0"];
  const second = spawnSync(file, [...args.slice(0, 2), ...others], { encoding: "utf8", timeout: WITHIN_MS });
  expect([second.status, second.stderr]).toEqual([
    2,
    `another agent (process ${first.pid}) already uses ${join(data, "agent")}; stop it first, or give this one a state of its own\n`,
  ]);
  // It has left the identity that it could have had.
  expect(readFileSync(join(folder, "other.json.lock"), "utf8")).toBe("");
  first.kill("SIGKILL");
  await once(first, "exit");
  const third = spawnSync(file, [...args.slice(0, 2), ...others], { encoding: "utf8", timeout: WITHIN_MS });
  expect([third.status, readFileSync(join(data, "agent.lock"), "utf8")]).toEqual([0, ""]);
}, 90_000);
test("an agent in another container, whose process ids mean nothing here, keeps its state, and ends with its container", async () => {
  writeIdentity();
  const [file, args] = inAnotherContainer(...command());
  const first = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
  await eventually(() => expect(existsSync(`${path()}.journal`)).toBe(true), WITHIN_MS);
  const second = spawnSync(...mutable(command("--seconds", "0")), { encoding: "utf8", timeout: WITHIN_MS });
  expect([second.status, second.stderr]).toEqual([
    2,
    `another agent (in another container) already uses ${path()}; stop it first, or give this one a state of its own\n`,
  ]);
  first.kill("SIGKILL");
  await once(first, "exit");
  expect(spawnSync(...mutable(command("--seconds", "0")), { timeout: WITHIN_MS }).status).toBe(0);
}, 90_000);
