// What every host does in the same way: installs, updates, rolls back, starts, stops and removes apps, refuses what it must not run, and shows logs.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { HostFailure } from "../../../agent-sim/host/host.ts";
import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { ReportedApp as Report } from "../../../protocol/records/apps/app-spec.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { desiredApp, inMode, newAppId } from "./desired.ts";
import { type Harness, openProcesses, openSimulated } from "./harness.ts";

const failureOf = async (work: Promise<unknown>): Promise<HostFailure> => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof HostFailure) return error;
  throw new Error(`no failure of the host, but ${String(error)}`);
};

describe.each([
  ["simulated", openSimulated],
  ["process", openProcesses],
])("the %s host", (_kind, open) => {
  let harness: Harness;
  let port: number;
  beforeEach(async () => {
    harness = open();
    port = await freePort();
  });
  afterEach(() => harness.close());

  const reportOn = ({ appId }: DesiredApp): ReportedApp | undefined => harness.host.report().find((app) => app.appId === appId);
  const RUNS = { state: "running", health: "healthy", failure: null, restarts: 0 };

  test("installs an app and reports it as the protocol says", async () => {
    const app = desiredApp(port);
    const answer = await harness.host.apply(app);
    expect(Report.parse(answer)).toEqual(answer);
    expect(answer).toMatchObject({ ...RUNS, appId: app.appId, revision: 1, ports: { http: port } });
    expect(harness.host.report()).toEqual([expect.objectContaining({ ...RUNS, appId: app.appId, memoryBytes: expect.any(Number) })]);
    expect(harness.changes.map(({ state }) => state)).toEqual(expect.arrayContaining(["installing", "running"]));
  });
  test("tells since when an app runs and how fast it answers its health check, and neither of one that is stopped", async () => {
    const app = desiredApp(port);
    const beforeMs = Date.now();
    await harness.host.apply(app);
    const first = await eventually(() => {
      const said = reportOn(app);
      expect(said).toMatchObject({ responseMs: expect.any(Number), startedAt: expect.any(String) });
      return said;
    });
    expect(first?.responseMs).toBeGreaterThan(0);
    // The kernel counts starts in hundredths of a second.
    expect(Date.parse(first?.startedAt ?? "")).toBeGreaterThanOrEqual(beforeMs - 1_000);
    expect(Date.parse(first?.startedAt ?? "")).toBeLessThanOrEqual(Date.now() + 1_000);
    expect(reportOn(app)?.startedAt).toBe(first?.startedAt);
    const again = await harness.host.restart(app);
    expect(Date.parse(again.startedAt ?? "")).toBeGreaterThan(Date.parse(first?.startedAt ?? ""));
    const stopped = await harness.host.apply({ ...app, state: "stopped" });
    expect([stopped.startedAt, stopped.responseMs]).toEqual([undefined, undefined]);
  });
  test("an app that is as desired is left alone", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    harness.changes.length = 0;
    expect(await harness.host.apply(app)).toMatchObject(RUNS);
    expect(harness.changes).toEqual([]);
  });
  test("stops an app and starts it again", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    expect(await harness.host.apply({ ...app, state: "stopped" })).toMatchObject({ state: "stopped", health: "unknown", memoryBytes: null, revision: 1 });
    expect(harness.host.revision(app.appId)?.revision).toBe(1);
    expect(await harness.host.apply(app)).toMatchObject(RUNS);
    expect(await harness.host.restart(app)).toMatchObject(RUNS);
  });
  test("installs an app that is to be stopped without starting it", async () => {
    const app = desiredApp(port, { state: "stopped" });
    expect(await harness.host.apply(app)).toMatchObject({ state: "stopped", revision: 1, memoryBytes: null });
  });
  test("updates an app to its next revision", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    expect(await harness.host.apply(inMode(app, "serve"))).toMatchObject({ ...RUNS, revision: 2 });
  });
  test("changed secrets start the app anew", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    harness.changes.length = 0;
    expect(await harness.host.apply({ ...app, secretsVersion: 2 })).toMatchObject({ ...RUNS, revision: 1 });
    expect(harness.changes.map(({ state }) => state)).toContain("installing");
  });
  test("a first revision that does not start leaves a failed app with the reason and its last lines", async () => {
    const app = harness.broken(desiredApp(port));
    expect(await failureOf(harness.host.apply(app))).toMatchObject({ stage: "starting", reason: "EXITED" });
    const failure = { stage: "starting", reason: "EXITED", revision: 2, lines: expect.arrayContaining([expect.any(String)]) };
    expect(reportOn(app)).toMatchObject({ state: "failed", revision: 2, health: "unknown", failure });
    expect(Report.parse(reportOn(app))).toEqual(reportOn(app));
    expect(await harness.host.apply(harness.mended(app))).toMatchObject({ ...RUNS, revision: 3 });
  });
  test("an update that does not start brings the previous revision back and reports the failure of the new one", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    const bad = harness.broken(app);
    expect(await failureOf(harness.host.apply(bad))).toMatchObject({ reason: "EXITED" });
    expect(reportOn(app)).toMatchObject({ state: "running", revision: 1, health: "healthy", failure: { revision: 2, reason: "EXITED" } });
    expect(await harness.host.apply(harness.mended(bad))).toMatchObject({ ...RUNS, revision: 3 });
  });
  test("a stopped app whose update does not start stays stopped", async () => {
    const app = desiredApp(port, { state: "stopped" });
    await harness.host.apply(app);
    await failureOf(harness.host.apply({ ...harness.broken(app), state: "running" }));
    expect(reportOn(app)).toMatchObject({ state: "stopped", revision: 1, failure: { revision: 2 } });
  });
  test("a removed app is gone, and removing it again is no failure", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    expect(await harness.host.apply({ ...app, state: "removed" })).toMatchObject({ state: "removed", ports: {}, memoryBytes: null });
    expect([harness.host.report(), harness.host.revision(app.appId)]).toEqual([[], null]);
    expect(harness.changes.at(-1)).toMatchObject({ state: "removed" });
    expect(await harness.host.apply({ ...app, state: "removed" })).toMatchObject({ state: "removed" });
  });
  test("changes of one app run one after another", async () => {
    const app = desiredApp(port);
    const answers = await Promise.all([harness.host.apply(app), harness.host.apply(inMode(app, "serve")), harness.host.apply({ ...app, state: "removed" })]);
    expect(answers.map(({ state, revision }) => `${state} ${revision}`)).toEqual(["running 1", "running 2", expect.stringMatching(/^removed/)]);
  });

  const spec = (differences: object): Partial<DesiredApp> => ({ spec: { ...desiredApp(1).spec, ...differences } as DesiredApp["spec"] }); // as: bad on purpose
  const environment = (more: object) => spec({ environment: { ...desiredApp(1).spec.environment, ...more } });
  const config = (more: object): Partial<DesiredApp> => ({ config: { port: 1, ...more } as DesiredApp["config"] }); // as: bad on purpose
  describe("while an app runs", () => {
    let running: Harness;
    let app: DesiredApp;
    let revision = 1;
    beforeAll(async () => {
      running = open();
      app = desiredApp(await freePort());
      await running.host.apply(app);
    });
    afterAll(() => running.close());

    test.each([
      ["a program whose name leads elsewhere", spec({ program: "../fixture" }), "SPEC_INVALID"],
      ["a program with an absolute name", spec({ program: "/bin/sh" }), "SPEC_INVALID"],
      ["a volume whose name leads elsewhere", spec({ volumes: [{ name: ".." }] }), "SPEC_INVALID"],
      ["a volume with an absolute name", spec({ volumes: [{ name: "/etc" }] }), "SPEC_INVALID"],
      ["a variable with an impossible name", environment({ "a=b": { value: "x" } }), "SPEC_INVALID"],
      ["a part that no version knows", spec({ command: "sh -c true" }), "SPEC_INVALID"],
      ["a health check of an unknown port", spec({ ports: [] }), "SPEC_INVALID"],
      ["a variable that would make the runtime load other code", environment({ NODE_OPTIONS: { value: "--import=x" } }), "VARIABLE_RESERVED"],
      ["a variable that would find other programs", environment({ PATH: { config: "mode" } }), "VARIABLE_RESERVED"],
      ["a variable with two sources", environment({ PORT: { value: "1" } }), "VARIABLE_TWICE"],
      ["a list for a variable", config({ mode: ["serve"] }), "SPEC_INVALID"],
      ["an object for a variable", config({ mode: {} }), "SPEC_INVALID"],
      ["null for a variable", config({ mode: null }), "SPEC_INVALID"],
      ["a text for a port", config({ port: "80" }), "CONFIG_INVALID"],
      ["a port of no number", { config: { mode: "serve" } }, "CONFIG_INVALID"],
      ["a NUL in a variable", config({ mode: "a\0b" }), "CONFIG_INVALID"],
      ["a secret without a value", environment({ MORE: { secret: "MORE" } }), "SECRET_MISSING"],
    ])("refuses %s, and it goes on", async (_what, differences, reason) => {
      revision += 1;
      const bad: DesiredApp = { ...app, revision, ...differences };
      const given = differences.config?.["port"] === 1 ? { ...bad, config: { ...bad.config, port: app.config["port"] ?? 0 } } : bad;
      expect(await failureOf(running.host.apply(given))).toMatchObject({ stage: "refused", reason });
      expect(running.host.report()).toMatchObject([{ appId: app.appId, state: "running", revision: 1, failure: { stage: "refused", reason, revision } }]);
    });
  });
  test("a refused first revision is a failed app that can be removed", async () => {
    const app = desiredApp(port, { config: { port: "none" } });
    expect(await failureOf(harness.host.apply(app))).toMatchObject({ stage: "refused" });
    expect(reportOn(app)).toMatchObject({ state: "failed", revision: 0, failure: { stage: "refused", revision: 1 } });
    await harness.host.apply({ ...app, state: "removed" });
    expect(harness.host.report()).toEqual([]);
  });
  test("refuses the port of another app, even if that one is stopped", async () => {
    const one = desiredApp(port, { state: "stopped" });
    await harness.host.apply(one);
    const other = desiredApp(port);
    const failure = await failureOf(harness.host.apply(other));
    expect(failure).toMatchObject({ stage: "refused", reason: "PORT_OF_OTHER_APP", message: expect.stringContaining(one.appId) });
    await harness.host.apply({ ...one, state: "removed" });
    expect(await harness.host.apply(other)).toMatchObject(RUNS);
  });
  test("refuses an id that is none", async () => {
    const bad = { ...desiredApp(port), appId: "app_../../../etc" } as DesiredApp; // as: bad on purpose
    await expect(harness.host.apply(bad)).rejects.toMatchObject({ stage: "refused", reason: "SPEC_INVALID" });
    expect(harness.host.report()).toEqual([]);
  });
  test("secrets that cannot be fetched are a failure before anything changes", async () => {
    const app = desiredApp(port);
    harness.secrets = null;
    expect(await failureOf(harness.host.apply(app))).toMatchObject({ stage: "preparing", reason: "SECRETS_UNAVAILABLE" });
    harness.secrets = { SECRET: "there it is" };
    expect(await harness.host.apply(app)).toMatchObject(RUNS);
  });

  test("shows the last lines of an app's log", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    expect(await harness.host.tail(app.appId, 10)).toEqual(expect.arrayContaining([expect.stringMatching(/^\d{4}-\S+Z --- revision 1 starts ---$/)]));
    expect(await harness.host.tail(app.appId, 0)).toEqual([]);
    expect(await harness.host.tail(app.appId, 1)).toHaveLength(1);
  });
  test("follows an app's log until the caller has enough or the app is removed", async () => {
    const app = desiredApp(port);
    await harness.host.apply(app);
    const [enough, lines] = [new AbortController(), [] as string[]];
    const read = async (signal: AbortSignal): Promise<void> => {
      for await (const line of harness.host.follow(app.appId, signal)) lines.push(line);
    };
    const following = read(enough.signal);
    await harness.host.restart(app);
    await eventually(() => expect(lines).toEqual(expect.arrayContaining([expect.stringContaining("--- revision 1 starts ---")])));
    enough.abort();
    await following;
    const toTheEnd = read(new AbortController().signal);
    await harness.host.apply({ ...app, state: "removed", keepVolumes: true });
    await toTheEnd;
  });
  test("has no log of an app that it does not have", async () => {
    await expect((async () => harness.host.tail(newAppId(), 1))()).rejects.toMatchObject({ reason: "UNKNOWN_APP" });
    expect(() => harness.host.follow(newAppId(), new AbortController().signal)).toThrow(HostFailure);
  });
});
