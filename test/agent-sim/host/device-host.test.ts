// The agent and its host together: commands about apps and their acks, and the reported state.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type HttpAnswer, NoAnswer } from "../../../agent-sim/agent/index.ts";
import { createHostHandlers } from "../../../agent-sim/host/handlers.ts";
import { createReadState } from "../../../agent-sim/host/read-state.ts";
import { createStateSync, fetchSecretsBy, type StateSyncOptions } from "../../../agent-sim/host/state-sync.ts";
import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { createHandTime } from "../clocks.ts";
import { desiredApp } from "./desired.ts";
import { type Harness, openSimulated } from "./harness.ts";

const answer = (data: unknown, status = 200): HttpAnswer => ({ status, headers: {}, body: { data } });

describe("a command about an app", () => {
  let harness: Harness;
  let versions: number[];
  let read: ReturnType<typeof createReadState>;
  beforeEach(() => {
    [harness, versions, read] = [openSimulated(), [], createReadState()];
  });
  afterEach(() => harness.close());

  const run = (type: string, payload: unknown): Promise<unknown> => {
    const handlers = createHostHandlers({ host: harness.host, onVersion: (version) => versions.push(version), newerThan: read.newerThan });
    const context = { commandId: "cmd_1", signal: new AbortController().signal, traceparent: null, progress: () => undefined };
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
  test("that a desired state has overtaken brings the app to what is wanted now, also after that", async () => {
    const app = desiredApp(8_000);
    await run("app.deploy", { app, desiredVersion: 1 });
    read.set(3, [
      { ...app, state: "stopped", revision: 2 },
      { ...app, appId: "app_other" },
    ]);
    expect(await run("app.start", { app, desiredVersion: 2 })).toMatchObject({ app: { appId: app.appId, state: "stopped", revision: 2 } });
    expect(await run("app.start", { app: { ...app, revision: 2 }, desiredVersion: 4 })).toMatchObject({ app: { state: "running", revision: 2 } });
    const other = { ...desiredApp(8_001), appId: `${app.appId}9` };
    expect(await run("app.deploy", { app: other, desiredVersion: 2 })).toMatchObject({ app: { appId: other.appId, state: "running" } });
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
  const open = (more: Partial<StateSyncOptions> = {}) => {
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
      ...more,
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
  test("names the networks that the device offers, as many as the gateway takes, and tells once which of them it refuses", async () => {
    const told: string[] = [];
    const networks = Array.from({ length: 12 }, (_, at) => `10.${at}.0.0/16`);
    const sync = open({ advertises: () => networks, onRefused: (refused) => told.push(...refused) });
    const refused = { desiredVersion: 0, refused: [{ network: "10.3.0.0/16", reason: "conflict" }] };
    answers = [() => answer(refused), () => answer(refused), () => answer({ desiredVersion: 0, refused: "all" })];
    await passed(250);
    expect(calls).toEqual([`${REPORT(0).slice(0, -1)},"advertises":${JSON.stringify(networks.slice(0, 10))}}`]);
    await passed(60_000);
    await passed(60_000);
    expect(calls).toHaveLength(3);
    expect(told).toEqual(["10.3.0.0/16 (conflict)"]);
    sync.stop();
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
