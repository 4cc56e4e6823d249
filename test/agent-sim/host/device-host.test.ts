// The agent and its host together: commands about apps and their acks, the reported state, and an agent that is killed and comes back.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type HttpAnswer, NoAnswer } from "../../../agent-sim/agent/index.ts";
import { createHostHandlers } from "../../../agent-sim/host/handlers.ts";
import { createStateSync, fetchSecretsBy } from "../../../agent-sim/host/state-sync.ts";
import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { createHandTime } from "../clocks.ts";
import { type FakeGateway, type FakeSession, SECRET, startFakeGateway } from "../fake-gateway.ts";
import { desiredApp, freePort } from "./desired.ts";
import { type Harness, openSimulated } from "./harness.ts";

const answer = (data: unknown, status = 200): HttpAnswer => ({ status, headers: {}, body: { data } });

describe("a command about an app", () => {
  let harness: Harness;
  let versions: number[];
  beforeEach(() => {
    [harness, versions] = [openSimulated(), []];
  });
  afterEach(() => harness.close());

  const run = (type: string, payload: unknown): Promise<unknown> => {
    const handlers = createHostHandlers({ host: harness.host, onVersion: (version) => versions.push(version) });
    const context = { signal: new AbortController().signal, traceparent: null, progress: () => undefined };
    return handlers[type]?.run(payload, context) ?? Promise.reject(new Error(`no handler for ${type}`));
  };

  test("succeeds with the report on the app", async () => {
    const app = desiredApp(8_000);
    expect(await run("app.deploy", { app, desiredVersion: 3 })).toMatchObject({ app: { appId: app.appId, state: "running", revision: 1 } });
    expect(await run("app.restart", { app, desiredVersion: 4 })).toMatchObject({ app: { state: "running" } });
    expect(await run("app.stop", { app: { ...app, state: "stopped" }, desiredVersion: 5 })).toMatchObject({ app: { state: "stopped" } });
    expect(await run("app.start", { app, desiredVersion: 6 })).toMatchObject({ app: { state: "running" } });
    expect(await run("app.remove", { app: { ...app, state: "removed" }, desiredVersion: 7 })).toMatchObject({ app: { state: "removed" } });
    expect(versions).toEqual([3, 4, 5, 6, 7]);
  });
  test("fails with the host's reason as its code and the report on the app", async () => {
    const app = desiredApp(8_000);
    await run("app.deploy", { app, desiredVersion: 1 });
    const output = { app: { appId: app.appId, state: "running", revision: 1, failure: { revision: 2, reason: "EXITED" } } };
    await expect(run("app.deploy", { app: harness.broken(app), desiredVersion: 2 })).rejects.toMatchObject({ code: "EXITED", output });
  });
  test("with an impossible spec fails with the refusal on the app's record", async () => {
    const app = { ...desiredApp(8_000), spec: { kind: "process", program: "../sh" } };
    const output = { app: { state: "failed", failure: { stage: "refused", reason: "SPEC_INVALID" } } };
    await expect(run("app.deploy", { app, desiredVersion: 1 })).rejects.toMatchObject({ code: "SPEC_INVALID", output });
  });
  test.each([{}, { app: null }, { app: { appId: "../etc", revision: 1 } }, { app: { ...desiredApp(1), revision: 0 } }])(
    "that names no app is rejected (%#)",
    async (payload) => {
      await expect(run("app.deploy", payload)).rejects.toMatchObject({ name: "InvalidPayload" });
      expect(harness.host.report()).toEqual([]);
    },
  );
});

describe("the reported state", () => {
  const time = createHandTime();
  let calls: string[];
  let answers: (() => HttpAnswer)[];
  let version: number;
  let applied: DesiredApp[];
  const call = async (method: string, path: string, body?: unknown): Promise<HttpAnswer> => {
    calls.push(`${method} ${path}${body === undefined ? "" : ` ${JSON.stringify(body)}`}`);
    return (answers.shift() ?? (() => answer({ desiredVersion: version })))();
  };
  const open = () => {
    [calls, answers, version, applied] = [[], [], 0, []];
    const host = {
      report: () => [] as readonly ReportedApp[],
      apply: async (app: DesiredApp) => {
        applied.push(app);
        return {} as ReportedApp; // as: nobody reads it
      },
    };
    const sync = createStateSync({
      host,
      call,
      time,
      applied: { get: () => version, raise: (next) => (version = Math.max(version, next)) },
      random: () => 0.5,
    });
    sync.start();
    return sync;
  };
  const REPORT = (of: number): string => `PUT /v1/agent/reported-state {"version":${of},"apps":[]}`;
  /** Lets the promises of the last report settle. */
  const passed = async (ms: number): Promise<void> => {
    time.advance(ms);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };

  test("is sent at the start, soon after a change and every minute", async () => {
    const sync = open();
    await passed(250);
    expect(calls).toEqual([REPORT(0)]);
    sync.changed();
    sync.changed();
    await passed(250);
    expect(calls).toHaveLength(2);
    await passed(59_999);
    expect(calls).toHaveLength(2);
    await passed(1);
    expect(calls).toHaveLength(3);
    sync.stop();
    await passed(600_000);
    expect(calls).toHaveLength(3);
  });
  test("is sent soon after a change that falls into the time of another report", async () => {
    const sync = open();
    answers = [
      () => {
        sync.changed();
        return answer({ desiredVersion: 0 });
      },
    ];
    await passed(250);
    expect(calls).toHaveLength(1);
    await passed(250);
    expect(calls).toHaveLength(2);
    sync.stop();
  });
  test("is sent again when the gateway does not answer, and later when it asks for that", async () => {
    const sync = open();
    answers = [
      () => {
        throw new NoAnswer("away");
      },
      () => ({ ...answer(null, 429), headers: { "retry-after": "120" } }),
    ];
    await passed(250);
    await passed(5_000);
    expect(calls).toHaveLength(2);
    await passed(119_999);
    expect(calls).toHaveLength(2);
    await passed(1);
    expect(calls).toHaveLength(3);
    sync.stop();
  });
  test("that stays behind the desired one for a minute is repaired, once", async () => {
    const app = desiredApp(8_000);
    const sync = open();
    answers = [() => answer({ desiredVersion: 4 }), () => answer({ desiredVersion: 4 }), () => answer({ version: 4, hash: "h", apps: [app] })];
    await passed(250);
    expect(calls).toEqual([REPORT(0)]);
    await passed(60_000);
    expect([calls[2], applied, version]).toEqual(["GET /v1/agent/desired-state", [app], 4]);
    await passed(60_000);
    expect(calls.slice(3)).toEqual([REPORT(4)]);
    sync.stop();
  });
  test("secrets are fetched by a signed call, and an answer without them is an error", async () => {
    expect(await fetchSecretsBy(async () => answer({ KV_TOKEN: "x" }), createHandTime())("app_1")).toEqual({ KV_TOKEN: "x" });
    await expect(fetchSecretsBy(async () => answer({}, 404), createHandTime())("app_1")).rejects.toThrow("404");
  });
});

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
    running = spawn(process.execPath, ["--import", "tsx", "agent-sim/main.ts", ...device, "--seconds", "600"], { stdio: "ignore" });
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
