// The compose host with a docker that hangs, ignores signals, floods, says no UTF-8 or disappears: the agent stays well and closes in time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createComposeHost } from "../../../agent-sim/host/compose.ts";
import type { Host } from "../../../agent-sim/host/host.ts";
import { isAlive, nameProcess } from "../../../agent-sim/host/processes/proc.ts";
import { CUT_MARK } from "../../../protocol/index.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { createFastTime } from "../clocks.ts";
import { desiredApp } from "./desired.ts";

/** A docker that ignores SIGTERM is killed after two seconds, and each test here waits for that. */
const time = createFastTime(3);

let folder: string;
let host: Host;
let app: DesiredApp;

/** Behaves as the file `VERB.mode` says: deaf (hangs, whatever the signal), flood (no line break), long (20 MB of lines), bytes (no UTF-8). */
const DOUBLE = `#!${process.execPath}
const fs = require("node:fs");
const folder = "FOLDER/";
const given = process.argv.slice(2);
const verb = given[given.indexOf("--project-directory") + 2];
const mode = fs.existsSync(folder + verb + ".mode") ? fs.readFileSync(folder + verb + ".mode", "utf8") : "";
if (mode === "deaf") {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => 0);
  fs.writeFileSync(folder + verb + ".pid", String(process.pid));
  setInterval(() => 0, 1000);
} else if (mode === "flood") {
  fs.writeFileSync(folder + verb + ".pid", String(process.pid));
  const piece = "x".repeat(65536);
  const next = () => process.stdout.write(piece, () => { fs.appendFileSync(folder + "sent", "."); setImmediate(next); });
  next();
} else if (mode === "long") {
  for (let line = 0; line < 20000; line += 1) fs.writeSync(1, "web-1  | 2026-01-02T00:00:00Z " + line + " " + "x".repeat(1000) + "\\n");
} else if (mode === "bytes") {
  fs.writeSync(1, Buffer.from([0xff, 0xfe, 0x0a, 0xc3]));
} else {
  if (verb === "up") fs.writeFileSync(folder + "state", "running");
  if (verb === "config") fs.writeSync(1, '{"services":{"web":{"image":"nginx:1.29","restart":"unless-stopped"}}}');
  if (verb === "down") fs.rmSync(folder + "state", { force: true });
  if (verb === "ps" && fs.existsSync(folder + "state")) fs.writeSync(1, JSON.stringify({ State: "running" }) + "\\n");
}
`;

const at = (name: string): string => join(folder, name);
const misbehave = (verb: string, mode: string): void => writeFileSync(at(`${verb}.mode`), mode);
const open = (): Host => createComposeHost({ folder, time, docker: at("docker.cjs"), secretsOf: async () => ({ SECRET: "correct horse" }) });
const pidOf = (verb: string, boundMs = 10_000): Promise<number> =>
  eventually(() => {
    const pid = Number(readFileSync(at(`${verb}.pid`), "utf8"));
    expect(pid).toBeGreaterThan(0);
    return pid;
  }, boundMs);
const lives = (pid: number): boolean => {
  const name = nameProcess(pid);
  return name !== null && isAlive(name);
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "bad-docker-"));
  writeFileSync(at("docker.cjs"), DOUBLE.replace("FOLDER", folder));
  chmodSync(at("docker.cjs"), 0o700);
  host = open();
  const { spec, ...rest } = desiredApp(await freePort());
  const { program: _program, ...common } = spec as Extract<DesiredApp["spec"], { kind: "process" }>; // as: desiredApp makes no other
  // The double serves no page.
  const { http: _http, ...health } = common.health;
  app = { ...rest, spec: { ...common, health, kind: "compose", compose: "services:\n  web:\n    image: nginx:1.29\n    restart: unless-stopped\n" } };
});
afterEach(async () => {
  await host.close();
  rmSync(folder, { recursive: true });
});

test.each(["config", "pull", "up"])(
  "a docker that hangs in `%s` and ignores SIGTERM ends with the agent, and the next agent carries the change on",
  async (verb) => {
    misbehave(verb, "deaf");
    const applied = host.apply(app).catch((error: unknown) => error);
    const pid = await pidOf(verb);
    await host.close();
    expect(await applied).toMatchObject({ name: "HostClosed" });
    expect(lives(pid)).toBe(false);
    rmSync(at(`${verb}.mode`));
    host = open();
    await eventually(() => expect(host.report()).toEqual([expect.objectContaining({ state: "running", revision: 1, failure: null })]));
  },
);
test("a removal that hangs ends with the agent, and the next agent carries it on", async () => {
  await host.apply(app);
  misbehave("down", "deaf");
  const removed = host.apply({ ...app, state: "removed" }).catch((error: unknown) => error);
  const pid = await pidOf("down");
  await host.close();
  expect(await removed).toMatchObject({ name: "HostClosed" });
  expect(lives(pid)).toBe(false);
  rmSync(at("down.mode"));
  host = open();
  await eventually(() => expect(host.report()).toEqual([]));
  expect(existsSync(at("state"))).toBe(false);
});
test("a docker that hangs while the app is watched ends with the agent", async () => {
  misbehave("ps", "deaf");
  const applied = host.apply(app).catch((error: unknown) => error);
  const pid = await pidOf("ps");
  await host.close();
  await applied;
  expect(lives(pid)).toBe(false);
});
test("a log without a line break is one line that is cut, and docker waits while nobody reads on", async () => {
  await host.apply(app);
  misbehave("logs", "flood");
  const following = new AbortController();
  const lines = host.follow(app.appId, following.signal)[Symbol.asyncIterator]();
  const { value: line } = await lines.next();
  expect([line.length < 20_000, line.endsWith(CUT_MARK)]).toEqual([true, true]);
  const pid = await pidOf("logs");
  // It stands still once two looks in a row see the same.
  let before = -1;
  await eventually(() => {
    const now = statSync(at("sent")).size;
    const stood = now === before;
    before = now;
    expect(stood).toBe(true);
  });
  expect(before).toBeLessThan(32);
  following.abort();
  expect(await lines.next()).toMatchObject({ done: true });
  expect(lives(pid)).toBe(false);
});
test("a log that ignores SIGTERM is over for its viewer, and ends with the agent", async () => {
  await host.apply(app);
  misbehave("logs", "deaf");
  const lines = host.follow(app.appId, new AbortController().signal)[Symbol.asyncIterator]();
  const next = lines.next();
  const pid = await pidOf("logs");
  await host.close();
  expect(await next).toMatchObject({ done: true });
  await eventually(() => expect(lives(pid)).toBe(false));
});
test("a log of 20 MB has an end, which is shown", async () => {
  await host.apply(app);
  misbehave("logs", "long");
  const tail = await host.tail(app.appId, 1_000);
  expect([tail.length, tail[0]?.slice(0, 36), tail.at(-1)?.slice(0, 36)]).toEqual([
    1_000,
    "web-1  | 2026-01-02T00:00:00Z 19000 ",
    "web-1  | 2026-01-02T00:00:00Z 19999 ",
  ]);
});
test("a docker that says no UTF-8 has answered in an unknown form, and its log is shown", async () => {
  misbehave("config", "bytes");
  await expect(host.apply(app)).rejects.toMatchObject({ reason: "COMPOSE_FAILED" });
  rmSync(at("config.mode"));
  await host.apply(app);
  misbehave("logs", "bytes");
  expect(await host.tail(app.appId, 5)).toEqual(["\uFFFD\uFFFD", "\uFFFD"]);
});
test("a docker that disappears is NO_DOCKER, and the app goes on when it is back", async () => {
  await host.apply(app);
  const text = readFileSync(at("docker.cjs"));
  rmSync(at("docker.cjs"));
  await expect(host.restart(app)).rejects.toMatchObject({ reason: "NO_DOCKER" });
  writeFileSync(at("docker.cjs"), text, { mode: 0o700 });
  expect(await host.apply(app)).toMatchObject({ state: "running", failure: null });
});
test("an agent whose docker hangs and ignores SIGTERM stops when it is told, and leaves no docker behind", { timeout: 90_000 }, async () => {
  await host.apply(app);
  await host.close();
  misbehave("ps", "deaf");
  symlinkSync(at("docker.cjs"), at("docker"));
  writeFileSync(at("device.json"), JSON.stringify({ device_id: "dev_1", agent_id: "agt_1", tenant_id: "ten_1", shared_secret: "test-shared-secret-0001" }));
  const main = join(import.meta.dirname, "../../../agent-sim/main.ts");
  const given = ["agent", "--identity", at("device.json"), "--url", "http://127.0.0.1:9", "--host", "compose", "--data", folder];
  const env = { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"]}` };
  const agent = spawn(process.execPath, ["--import", "tsx", main, ...given], { env, stdio: "ignore" });
  // tsx compiles the agent on the fly.
  const pid = await pidOf("ps", 40_000);
  agent.kill("SIGTERM");
  expect(await once(agent, "exit")).toEqual([0, null]);
  expect(lives(pid)).toBe(false);
});
