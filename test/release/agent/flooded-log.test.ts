// A real agent whose app floods its log while somebody watches: what the app says has no bound, what the agent keeps of it has.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CUT_MARK } from "../../../protocol/index.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { type FakeGateway, OWN_HEADERS, SECRET, startFakeGateway } from "../../agent-sim/fake-gateway.ts";
import { desiredApp } from "../../agent-sim/host/desired.ts";
import { built } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";

const FLOOD_BYTES = 200_000_000;
const MAX_GROWTH_BYTES = 32 * 1_024 * 1_024;

/** A docker whose app says 200 MB without a line break, and then one more line. */
const DOCKER = `#!${process.execPath}
const fs = require("node:fs");
const given = process.argv.slice(2);
const verb = given[given.indexOf("--project-directory") + 2];
const state = "FOLDER/state";
const flood = (left) => {
  if (left > 0) process.stdout.write("x".repeat(65536), () => flood(left - 65536));
  else process.stdout.write("\\nthe end\\n");
};
if (verb === "logs") {
  flood(${FLOOD_BYTES});
  setInterval(() => 0, 1000);
}
if (verb === "up") fs.writeFileSync(state, "running");
if (verb === "config") fs.writeSync(1, '{"services":{"web":{"image":"nginx:1.29","restart":"unless-stopped"}}}');
if (verb === "ps" && fs.existsSync(state)) fs.writeSync(1, JSON.stringify({ State: "running" }) + "\\n");
`;

let folder: string;
let gateway: FakeGateway;
let agent: ChildProcess;
beforeEach(async () => {
  [folder, gateway] = [mkdtempSync(join(tmpdir(), "flooded-log-")), await startFakeGateway()];
  writeFileSync(join(folder, "docker"), DOCKER.replace("FOLDER", folder));
  chmodSync(join(folder, "docker"), 0o700);
  writeFileSync(join(folder, "device.json"), JSON.stringify({ device_id: "dev_1", agent_id: "agt_1", tenant_id: "ten_1", shared_secret: SECRET }));
  const given = ["agent", "--identity", join(folder, "device.json"), "--url", gateway.url, "--host", "compose", "--data", join(folder, "data")];
  const env = { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"]}` };
  agent = spawn(process.execPath, [built("agent-sim/main.js"), ...given, "--seconds", "600"], { env, stdio: "ignore" });
});
afterEach(async () => {
  const ended = once(agent, "exit");
  agent.kill("SIGTERM");
  await ended;
  await gateway.close();
  rmSync(folder, { recursive: true });
});

/** The most memory that the agent has held at once. */
const peakBytes = (): number => Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${agent.pid}/status`, "utf8"))?.[1]) * 1_024;

test("200 MB without a line break cost a watched agent less than 32 MiB, and what comes after them arrives", async () => {
  const watched = { status: 200, headers: OWN_HEADERS, text: JSON.stringify({ success: true, data: { watched: true } }) };
  gateway.foreign = (target) => (target.includes("/agent/logs") ? watched : null);
  const session = await eventually(() => gateway.sessions[0] ?? Promise.reject(new Error("not connected")), 20_000);
  const order = (commandId: string, type: string, payload: object): void =>
    session.send("command", {
      command: { commandId, type, issuedAt: new Date().toISOString(), payload, requiresAck: true },
      delivery: { attempt: 1, redelivered: false, seq: 1, lane: "app_1", ackBy: new Date().toISOString(), expiresAt: null, executionTimeoutSec: 60 },
    });
  const hasSucceeded = (commandId: string): boolean =>
    session.frames.some((frame) => frame.op === "ack" && frame.data.commandId === commandId && frame.data.status === "succeeded");
  const { spec, ...rest } = desiredApp(await freePort());
  const { program: _program, ...common } = spec as Extract<DesiredApp["spec"], { kind: "process" }>; // as: desiredApp makes no other
  // The double serves no page.
  const { http: _http, ...health } = common.health;
  const compose = "services:\n  web:\n    image: nginx:1.29\n    restart: unless-stopped\n";
  const app: DesiredApp = { ...rest, spec: { ...common, health, environment: {}, kind: "compose", compose } };
  order("cmd_1", "app.deploy", { app, desiredVersion: 1 });
  await eventually(() => expect(hasSucceeded("cmd_1")).toBe(true), 20_000);
  const before = peakBytes();
  order("cmd_2", "app.logs.follow", { appId: app.appId, followId: "f1", seconds: 60, since: null });
  const sent = (): readonly string[] => gateway.requests.filter((line) => line.startsWith("POST /v1/agent/logs"));
  await eventually(() => expect(sent().join("\n")).toContain("the end"), 40_000);
  expect(sent().join("\n")).toContain(CUT_MARK);
  expect(peakBytes() - before).toBeLessThan(MAX_GROWTH_BYTES);
});
