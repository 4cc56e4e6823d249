// A deployment becomes what its agent reports, on every way through its states, and nothing else moves it.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { asOrdered, DEFAULTS, failureIn, openRig, type Rig, reportOf } from "../apps/kit.ts";

/** An order that an outcome causes waits for the sweep. */
const SOON_MS = 15_000;
const becomes = (ask: () => unknown, wanted: unknown): Promise<void> => eventually(async () => expect(await ask()).toEqual(wanted), SOON_MS);

let world: World;
const open: Rig[] = [];
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" });
});
afterAll(async () => {
  await Promise.all(open.map((rig) => rig.stop()));
  await world.close();
});
const rigged = async (options?: { readonly online: boolean }): Promise<Rig> => {
  const rig = await openRig(world, options);
  open.push(rig);
  return rig;
};
const active = async (more?: object) => {
  const rig = await rigged();
  const { deploymentId } = await rig.deploy(more);
  const path = `/deployments/${deploymentId}`;
  const row = await rig.until(path, "active");
  return { rig, path, row, deploymentId: deploymentId as string, appId: row.appId as string };
};

describe.concurrent("a deployment", () => {
  test("becomes active when its agent reports that the app runs, with defaults in its configuration", async () => {
    const rig = await rigged({ online: false });
    const made = await rig.deploy({ name: "store", configuration: { maxKeys: 5 } });
    expect(made).toMatchObject({
      status: "queued",
      name: "store",
      template: "key-value",
      revision: 1,
      currentRevision: null,
      configuration: { ...DEFAULTS, maxKeys: 5 },
    });
    const path = `/deployments/${made.deploymentId}`;
    expect((await rig.ask(`GET ${path}/events`)).waitsFor).toEqual({ commandId: made.commandId, deviceId: rig.device.deviceId });
    await rig.start();
    const row = await rig.until(path, "active");
    expect(row).toMatchObject({ currentRevision: 1, failure: null });
    expect(rig.orders).toMatchObject([
      { verb: "deploy", desiredVersion: 1, app: { revision: 1, config: { ...DEFAULTS, maxKeys: 5 }, state: "running", secretsVersion: 1 } },
    ]);
    const { items, waitsFor } = await rig.ask(`GET ${path}/events`);
    expect(items.map(({ to }: { to: string }) => to)).toEqual(["pending", "queued", "deploying", "active"]);
    expect(waitsFor).toBeNull();
    expect(await rig.eventsOf(made.deploymentId)).toEqual(["deployment.created", "deployment.started", "deployment.succeeded"]);
    expect(await rig.eventsOf(made.appId)).toEqual(["app.created", "app.changed", "app.installed"]);
  });

  test("is updated to a new revision", async () => {
    const { rig, path } = await active();
    expect(await rig.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 7 } })).toMatchObject({ status: "updating", revision: 2, currentRevision: 1 });
    expect(await rig.until(path, "active")).toMatchObject({ currentRevision: 2, configuration: { maxKeys: 7 } });
    const revisions = await rig.ask(`GET ${path}/revisions`);
    expect(revisions.map(({ revision, configuration }: { revision: number; configuration: object }) => [revision, configuration])).toEqual([
      [2, { ...DEFAULTS, maxKeys: 7 }],
      [1, DEFAULTS],
    ]);
  });

  test("returns to the revision that its agent restored when an update failed", async () => {
    const { rig, path, deploymentId, appId } = await active();
    rig.answer(({ app }) => reportOf(app.appId, { revision: 1, failure: failureIn(app.revision) }));
    await rig.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 7 } });
    const row = await rig.until(path, "active");
    expect(row).toMatchObject({
      currentRevision: 1,
      revision: 2,
      configuration: DEFAULTS,
      failure: { reason: "HEALTH_CHECK_FAILED", revision: 2, lines: ["starting", "cannot start"] },
    });
    expect((await rig.eventsOf(deploymentId)).slice(-3)).toEqual(["deployment.started", "deployment.started", "deployment.rolled_back"]);
    expect((await rig.ask(`GET ${path}/events`)).items.slice(-3).map(({ to }: { to: string }) => to)).toEqual(["updating", "rolling_back", "active"]);
    expect(await rig.ask(`GET /apps/${appId}`)).toMatchObject({ status: "running", revision: 1, drift: false });
    expect((await rig.ask(`GET /apps/${appId}/snapshots`)).map(({ revision }: { revision: number }) => revision)).toEqual([1]);
    const desired = await rig.ask("GET /agent/desired-state", undefined, rig.device.as);
    expect(desired).toMatchObject({ version: 3, apps: [{ revision: 1, config: DEFAULTS }] });
    rig.answer(asOrdered);
    await rig.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 8 } });
    expect(await rig.until(path, "active")).toMatchObject({ currentRevision: 3, failure: null });
  });

  test("fails with stage, reason and the last lines when nothing runs any more, and can be deployed again", async () => {
    const { rig, path, deploymentId } = await active();
    const lines = Array.from({ length: 20 }, (_, at) => `${at}:${"x".repeat(900)}`);
    rig.answer(({ app }) =>
      reportOf(app.appId, { state: "failed", revision: 2, failure: failureIn(app.revision, { stage: "starting", reason: "PORT_TAKEN", lines }) }),
    );
    const { commandId } = await rig.ask(`POST ${path}/redeploy`, {});
    const { failure } = await rig.until(path, "failed");
    expect(failure).toMatchObject({ stage: "starting", reason: "PORT_TAKEN", revision: 2, commandId });
    expect(failure.lines).toEqual(lines.slice(-4));
    const { rows } = await world.sql.query("select data from outbox_events where subject_id = $1 and type = 'deployment.failed'", [deploymentId]);
    expect(rows[0].data).toMatchObject({ stage: "starting", reason: "PORT_TAKEN", commandId, lines: failure.lines });
    rig.answer(asOrdered);
    expect(await rig.ask(`POST ${path}/redeploy`, {})).toMatchObject({ status: "queued", revision: 3 });
    expect(await rig.until(path, "active")).toMatchObject({ currentRevision: 3 });
  });

  test("stops and starts", async () => {
    const { rig, path } = await active();
    expect(await rig.ask(`POST ${path}/stop`)).toMatchObject({ status: "stopping" });
    await rig.until(path, "stopped");
    expect(await rig.refusal(`POST ${path}/stop`)).toEqual([
      409,
      "INVALID_STATE_TRANSITION",
      { from: "stopped", to: "stopping", allowed: ["queued", "deleting"] },
    ]);
    expect(await rig.ask(`PATCH ${path}`, { status: "active" })).toMatchObject({ status: "queued" });
    expect(await rig.until(path, "active")).toMatchObject({ currentRevision: 1 });
    expect(rig.orders.map(({ verb }) => verb)).toEqual(["deploy", "stop", "start"]);
  });

  test("goes back to a revision that a person names, as a new revision", async () => {
    const { rig, path, deploymentId } = await active();
    expect(await rig.refusal(`POST ${path}/rollback`, {})).toEqual([409, "NO_PREVIOUS_REVISION", expect.anything()]);
    await rig.ask(`POST ${path}/redeploy`, { configuration: { maxKeys: 7 } });
    await rig.until(path, "active");
    expect(await rig.refusal(`POST ${path}/rollback`, { toRevision: 9 })).toEqual([409, "NO_PREVIOUS_REVISION", expect.anything()]);
    expect(await rig.ask(`POST ${path}/rollback`, { toRevision: 1 })).toMatchObject({ status: "rolling_back", revision: 3 });
    expect(await rig.until(path, "active")).toMatchObject({ currentRevision: 3, configuration: DEFAULTS });
    expect((await rig.ask(`GET ${path}/revisions`))[0]).toMatchObject({ revision: 3, rolledBackTo: 1 });
    expect((await rig.eventsOf(deploymentId)).at(-1)).toBe("deployment.rolled_back");
  });

  test.each([true, false])("is deleted with its app; keepVolumes=%s reaches the agent", async (keepVolumes) => {
    const { rig, path, deploymentId, appId } = await active();
    await rig.ask(`DELETE ${path}?keepVolumes=${keepVolumes}`);
    await becomes(() => rig.refusal(`GET ${path}`), [404, "DEPLOYMENT_NOT_FOUND", expect.anything()]);
    expect(rig.orders.at(-1)).toMatchObject({ verb: "remove", app: { state: "removed", keepVolumes } });
    expect(await rig.refusal(`GET /apps/${appId}`)).toEqual([404, "APP_NOT_FOUND", expect.anything()]);
    expect((await rig.eventsOf(deploymentId)).slice(-2)).toEqual(["deployment.started", "deployment.deleted"]);
    expect((await rig.eventsOf(appId)).at(-1)).toBe("app.removed");
    expect((await rig.ask("GET /agent/desired-state", undefined, rig.device.as)).apps).toEqual([]);
  });
});

describe.concurrent("cancel", () => {
  test("ends a deployment that waits for its device", async () => {
    const rig = await rigged({ online: false });
    const { deploymentId } = await rig.ask("POST /deployments", { appName: "key-value" });
    expect(await rig.ask(`POST /deployments/${deploymentId}/cancel`)).toMatchObject({ status: "cancelled" });
  });

  test("ends a queued deployment at once, and removes what the agent may have", async () => {
    const rig = await rigged({ online: false });
    const { deploymentId, appId } = await rig.deploy();
    expect(await rig.ask(`POST /deployments/${deploymentId}/cancel`)).toMatchObject({ status: "cancelled" });
    await rig.start();
    await becomes(() => rig.refusal(`GET /apps/${appId}`), [404, "APP_NOT_FOUND", expect.anything()]);
    expect(rig.orders.map(({ verb }) => verb)).toEqual(["remove"]);
    expect(await rig.eventsOf(deploymentId)).toEqual(["deployment.created", "deployment.started", "deployment.started", "deployment.cancelled"]);
    await rig.ask(`DELETE /deployments/${deploymentId}`);
    expect(await rig.refusal(`GET /deployments/${deploymentId}`)).toEqual([404, "DEPLOYMENT_NOT_FOUND", expect.anything()]);
  });

  test("waits for the end of a command that the agent works on", async () => {
    const rig = await rigged();
    const { deploymentId, appId } = await rig.deploy();
    const path = `/deployments/${deploymentId}`;
    await rig.until(path, "active");
    rig.answer(({ verb, app }) => (verb === "deploy" ? new Promise(() => undefined) : asOrdered({ verb, app, desiredVersion: 0 })));
    const second = await rig.deploy({ configuration: { port: 8_999 } });
    const at = `/deployments/${second.deploymentId}`;
    await becomes(() => rig.orders.length, 2);
    await rig.report(rig.orders[1]?.desiredVersion ?? 0, reportOf(appId), reportOf(second.appId, { state: "installing", revision: 0 }));
    await rig.until(at, "deploying");
    await rig.ask(`POST ${at}/cancel`);
    await rig.until(at, "cancelled");
    await becomes(() => rig.refusal(`GET /apps/${second.appId}`), [404, "APP_NOT_FOUND", expect.anything()]);
    expect((await rig.ask(`GET ${at}/events`)).items.map(({ to }: { to: string }) => to)).toEqual([
      "pending",
      "queued",
      "deploying",
      "cancelling",
      "cancelled",
    ]);
    expect(await rig.refusal(`POST ${path}/cancel`)).toMatchObject([409, "INVALID_STATE_TRANSITION", { from: "active", to: "cancelling" }]);
  });
});

describe.concurrent("a command that ends without the agent's success", () => {
  test("fails the deployment with the reason", async () => {
    const rig = await rigged({ online: false });
    const { deploymentId, commandId } = await rig.deploy();
    await rig.ask(`POST /devices/${rig.device.deviceId}/commands/${commandId}/cancel`, {});
    expect(await rig.until(`/deployments/${deploymentId}`, "failed")).toMatchObject({
      failure: { stage: null, reason: "COMMAND_CANCELED", commandId, lines: [] },
    });
  });

  test("fails it when the device is removed, and a later removal needs no agent", async () => {
    const rig = await rigged({ online: false });
    const { deploymentId, appId } = await rig.deploy();
    await rig.ask(`DELETE /devices/${rig.device.deviceId}`);
    expect(await rig.until(`/deployments/${deploymentId}`, "failed")).toMatchObject({ failure: { reason: "DEVICE_RESET" } });
    await rig.ask(`DELETE /deployments/${deploymentId}`);
    expect(await rig.refusal(`GET /deployments/${deploymentId}`)).toEqual([404, "DEPLOYMENT_NOT_FOUND", expect.anything()]);
    expect(await rig.refusal(`GET /apps/${appId}`)).toEqual([404, "APP_NOT_FOUND", expect.anything()]);
  });
});
