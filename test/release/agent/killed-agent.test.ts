// A real agent with its process host, and a gateway that orders: it is killed, comes back, and adopts or finishes what it finds.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { type FakeGateway, type FakeSession, SECRET, startFakeGateway } from "../../agent-sim/fake-gateway.ts";
import { desiredApp } from "../../agent-sim/host/desired.ts";
import { built } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";

describe("npm run agent -- --host process", () => {
  let folder: string;
  let gateway: FakeGateway;
  let app: DesiredApp;
  let port: number;
  let running: ChildProcess | null = null;
  beforeEach(async () => {
    [folder, gateway, port] = [mkdtempSync(join(tmpdir(), "device-host-")), await startFakeGateway(), await freePort()];
    gateway.refuseRest = { status: 200, body: { data: { KV_TOKEN: "open sesame" } } };
    const identity = { device_id: "dev_1", agent_id: "agt_1", tenant_id: "ten_1", shared_secret: SECRET };
    writeFileSync(join(folder, "device.json"), JSON.stringify(identity));
    const { MODE: _mode, LINES: _lines, SECRET: _secret, ...environment } = desiredApp(port).spec.environment;
    app = desiredApp(port, { spec: { program: "key-value", environment: { ...environment, KV_TOKEN: { secret: "KV_TOKEN" } } } });
  });
  afterEach(async () => {
    const session = await start();
    order(session, "cmd_end", "app.remove", { ...app, state: "removed" });
    await eventually(() => expect(statusOf(session, "cmd_end")).toBe("succeeded"), 20_000);
    await kill("SIGTERM");
    expect(readdirSync(join(folder, "data", "apps"))).toEqual([]);
    await gateway.close();
    rmSync(folder, { recursive: true });
  });

  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    const child = running;
    running = null;
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  const start = async (): Promise<FakeSession> => {
    await kill("SIGKILL");
    const sessions = gateway.sessions.length;
    const device = ["agent", "--identity", join(folder, "device.json"), "--url", gateway.url, "--host", "process", "--data", join(folder, "data")];
    running = spawn(process.execPath, [built("agent-sim/main.js"), ...device, "--seconds", "600"], { stdio: "ignore" });
    return eventually(() => gateway.sessions[sessions] ?? Promise.reject(new Error("not connected")), 20_000);
  };
  const order = (session: FakeSession, commandId: string, type: string, desired: DesiredApp): void =>
    session.send("command", {
      command: { commandId, type, issuedAt: new Date().toISOString(), payload: { app: desired, desiredVersion: 1 }, requiresAck: true },
      delivery: { attempt: 1, redelivered: false, seq: 1, lane: app.appId, ackBy: new Date().toISOString(), expiresAt: null, executionTimeoutSec: 60 },
    });
  const acksOf = (session: FakeSession, commandId: string) =>
    session.frames.flatMap((frame) => (frame.op === "ack" && frame.data.commandId === commandId ? [frame.data] : []));
  const statusOf = (session: FakeSession, commandId: string): string | undefined => acksOf(session, commandId).at(-1)?.status;
  const keys = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/keys`, { headers: { authorization: "Bearer open sesame" } })).status;

  test("deploys an app, reports it, and adopts it after kill -9", async () => {
    const first = await start();
    order(first, "cmd_1", "app.deploy", app);
    await eventually(() => expect(statusOf(first, "cmd_1")).toBe("succeeded"), 20_000);
    expect(acksOf(first, "cmd_1").at(-1)?.output).toMatchObject({ app: { appId: app.appId, state: "running", revision: 1 } });
    expect(await keys()).toBe(200);
    await eventually(() => expect(gateway.requests.join("\n")).toMatch(/PUT \/v1\/agent\/reported-state \{"version":1,.*"state":"running"/));
    await kill("SIGKILL");
    expect(await keys()).toBe(200);
    const second = await start();
    order(second, "cmd_2", "app.deploy", app);
    await eventually(
      () => expect(acksOf(second, "cmd_2").at(-1)).toMatchObject({ status: "succeeded", output: { app: { restarts: 0, state: "running" } } }),
      20_000,
    );
  });
  test("killed while it deploys, finishes the command after its next start", async () => {
    const first = await start();
    order(first, "cmd_1", "app.deploy", app);
    await eventually(() => expect(statusOf(first, "cmd_1")).toBe("running"), 20_000);
    await kill("SIGKILL");
    gateway.reconcile = [{ commandId: "cmd_1", action: "continue" }];
    const second = await start();
    await eventually(() => expect(statusOf(second, "cmd_1")).toBe("succeeded"), 20_000);
    expect(await keys()).toBe(200);
  });
});
