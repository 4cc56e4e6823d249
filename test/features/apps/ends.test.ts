// Every way in which a command of an app can end, every refusal of a verb, and what events of apps reach. Jobs carry these things on, so the tests, each
// with a device of its own, wait beside each other.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { APP_STATUSES, DEPLOYMENT_STATUSES } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { canMoveApp } from "../../../server/features/apps/states.ts";
import { canMoveDeployment } from "../../../server/features/deployments/states.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { startReceiver } from "../../kit/net/receiver.ts";
import { failureIn, openRig, type Rig, reportOf } from "./kit.ts";

/** Jobs end commands, relay events and evaluate rules. */
const SOON_MS = 20_000;
const becomes = (ask: () => unknown, wanted: unknown): Promise<void> => eventually(async () => expect(await ask()).toEqual(wanted), SOON_MS);

let world: World;
const open: Rig[] = [];
beforeAll(async () => {
  const limits = { RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off", RATE_LIMIT_TENANT: "off" };
  world = await startWorld({ ...limits, WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8", WEBHOOK_ALLOW_HTTP: "true" });
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

describe.concurrent("a deployment whose command", () => {
  /** Its agent polls over HTTP and answers by hand. */
  const polled = async () => {
    const rig = await rigged({ online: false });
    const { deploymentId, commandId, appId } = await rig.deploy();
    const at = `/devices/${rig.device.deviceId}/commands`;
    const poll = () => rig.ask(`GET ${at}`, undefined, rig.device.as);
    const ack = (status: string, output?: object) =>
      rig.ask(`POST ${at}/${commandId}/ack`, { status, ...(output === undefined ? {} : { output }) }, rig.device.as);
    const failure = async () => (await rig.until(`/deployments/${deploymentId}`, "failed")).failure;
    /** What the command waits for was to happen an hour ago. */
    const past = (columns: readonly string[]) =>
      world.sql.query(`update command_queue set ${columns.map((name) => `${name} = now() - interval '1 hour'`).join(", ")} where command_id = $1`, [commandId]);
    return { rig, poll, ack, failure, past, commandId, appId: appId as string, path: `/deployments/${deploymentId}` };
  };

  test("expires fails with that reason", async () => {
    const { failure, past, commandId } = await polled();
    await past(["expires_at", "deadline_at"]);
    expect(await failure()).toMatchObject({ stage: null, reason: "COMMAND_EXPIRED", commandId, revision: 1 });
  });

  test("runs out of time fails with that reason, and a late success makes it active", async () => {
    const { rig, path, poll, ack, failure, past, commandId, appId } = await polled();
    await poll();
    await ack("running");
    await past(["deadline_at", "exec_deadline_at"]);
    expect(await failure()).toMatchObject({ stage: null, reason: "DEPLOY_TIMEOUT", commandId });
    await ack("succeeded", { app: reportOf(appId) });
    expect(await rig.until(path, "active")).toMatchObject({ failure: null, currentRevision: 1 });
  });

  test("is not answered at any attempt fails with that reason", async () => {
    const { poll, failure, past, commandId } = await polled();
    await poll();
    await world.sql.query("update commands set max_attempts = 1 where command_id = $1", [commandId]);
    await past(["deadline_at"]);
    expect(await failure()).toMatchObject({ stage: null, reason: "COMMAND_UNDELIVERABLE", commandId });
  });

  test("is rejected fails with that reason", async () => {
    const { poll, ack, failure, commandId } = await polled();
    await poll();
    await ack("rejected");
    expect(await failure()).toMatchObject({ stage: null, reason: "AGENT_REJECTED", commandId });
  });

  test("is canceled, or purged with the device's queue, fails with that reason", async () => {
    const [canceled, purged] = [await polled(), await polled()];
    await canceled.rig.ask(`POST /commands/${canceled.commandId}/cancel`, {});
    expect(await canceled.failure()).toMatchObject({ reason: "COMMAND_CANCELED", commandId: canceled.commandId });
    await purged.rig.ask(`DELETE /devices/${purged.rig.device.deviceId}/commands`);
    expect(await purged.failure()).toMatchObject({ reason: "COMMAND_CANCELED", commandId: purged.commandId });
  });

  test("succeeds with an answer that does not fit, or with another state than ordered, fails with that reason", async () => {
    const [unfit, other] = [await polled(), await polled()];
    for (const { poll } of [unfit, other]) await poll();
    expect(await unfit.ack("succeeded", { app: { state: "fine" } })).toMatchObject({ status: "succeeded", result: "refused", code: "INVALID_OUTPUT" });
    expect(await unfit.failure()).toMatchObject({ reason: "INVALID_OUTPUT", message: expect.stringContaining("app.") });
    await other.ack("succeeded", { app: reportOf(other.appId, { state: "stopped" }) });
    expect(await other.failure()).toMatchObject({ reason: "NOT_AS_ORDERED" });
  });

  test("ends with texts that PostgreSQL cannot store fails instead of waiting for ever", async () => {
    const rig = await rigged();
    rig.answer(({ app }) => reportOf(app.appId, { state: "failed", failure: failureIn(app.revision, { message: "a\u0000b", lines: ["c\ud800d"] }) }));
    const { deploymentId, commandId } = await rig.deploy();
    expect(await rig.until(`/deployments/${deploymentId}`, "failed")).toMatchObject({ failure: { reason: "INVALID_OUTPUT", commandId } });
  });
});

describe.concurrent("a verb in a state that does not list it answers 409 with from, to and allowed", () => {
  const APP_VERBS = [
    ["POST", "/start", "start"],
    ["POST", "/stop", "stop"],
    ["POST", "/restart", "restart"],
    ["POST", "/update", "update"],
    ["DELETE", "", "remove"],
  ] as const;
  const DEPLOYMENT_VERBS = [
    ["POST", "/start", "queue"],
    ["POST", "/stop", "stop"],
    ["POST", "/cancel", "cancel"],
    ["POST", "/rollback", "rollBack"],
    ["DELETE", "", "remove"],
  ] as const;

  test.each(APP_STATUSES)("an app that is %s", async (status) => {
    const rig = await rigged({ online: false });
    const { appId } = await rig.ask("POST /apps", { appType: "key-value", deviceId: rig.device.deviceId });
    await world.sql.query("update apps set status = $2 where app_id = $1", [appId, status]);
    for (const [method, path, event] of APP_VERBS) {
      if (canMoveApp(status, event)) continue;
      expect(await rig.refusal(`${method} /apps/${appId}${path}`)).toEqual([
        409,
        "INVALID_STATE_TRANSITION",
        { from: status, to: expect.any(String), allowed: expect.any(Array) },
      ]);
    }
    expect((await rig.ask(`GET /apps/${appId}`)).status).toBe(status);
  });

  test.each(DEPLOYMENT_STATUSES)("a deployment that is %s", async (status) => {
    const rig = await rigged({ online: false });
    const { deploymentId } = await rig.deploy();
    const at = `/deployments/${deploymentId}`;
    await world.sql.query("update deployments set status = $2 where deployment_id = $1", [deploymentId, status]);
    for (const [method, path, event] of DEPLOYMENT_VERBS) {
      if (canMoveDeployment(status, event)) continue;
      expect(await rig.refusal(`${method} ${at}${path}`)).toEqual([
        409,
        "INVALID_STATE_TRANSITION",
        { from: status, to: expect.any(String), allowed: expect.any(Array) },
      ]);
    }
    // A deployed one is updated, any other is queued again.
    const again = status === "active" ? "update" : "queue";
    if (!canMoveDeployment(status, again)) expect((await rig.refusal(`POST ${at}/redeploy`, {})).slice(0, 2)).toEqual([409, "INVALID_STATE_TRANSITION"]);
    expect((await rig.ask(`GET ${at}`)).status).toBe(status);
  });
});

test.concurrent("drift is shown, and an agent that thinks it is done is told to carry out the desired state again", async () => {
  const rig = await rigged();
  const { appId } = await rig.ask("POST /apps", { appType: "key-value", deviceId: rig.device.deviceId });
  await rig.until(`/apps/${appId}`, "running");
  expect((await rig.report(1, reportOf(appId))).desiredVersion).toBe(1);
  expect((await rig.report(1, reportOf(appId, { state: "stopped" }))).desiredVersion).toBe(2);
  // It has not read the new version yet.
  expect((await rig.report(1, reportOf(appId, { state: "stopped" }))).desiredVersion).toBe(2);
  expect(await rig.ask(`GET /apps/${appId}`)).toMatchObject({ status: "running", drift: true });
  expect(await rig.ask("GET /agent/desired-state", undefined, rig.device.as)).toMatchObject({ version: 2, apps: [{ appId, state: "running" }] });
  expect((await rig.report(2, reportOf(appId))).desiredVersion).toBe(2);
  expect(await rig.ask(`GET /apps/${appId}`)).toMatchObject({ status: "running", drift: false });
  expect((await rig.report(2)).desiredVersion).toBe(3);
  expect(rig.orders).toHaveLength(1);
});

test.concurrent("events of every transition reach a webhook in their order, and a failure opens an alert", async () => {
  const rig = await rigged();
  const receiver = await startReceiver();
  await rig.ask("POST /webhooks", { url: receiver.url("/apps"), events: ["app.*", "deployment.*"] });
  const rule = { metric: "event", operator: "gte", threshold: 1, clearForSeconds: 0 };
  for (const eventType of ["app.failed", "deployment.failed"]) await rig.ask("POST /alert-rules", { ...rule, name: eventType, eventType });
  rig.answer(({ app }) => reportOf(app.appId, { state: "failed", revision: 0, failure: failureIn(app.revision, { reason: "PORT_TAKEN" }) }));
  const { deploymentId, appId } = await rig.deploy();
  await rig.until(`/deployments/${deploymentId}`, "failed");
  const told = async (subject: string) => {
    const bodies = receiver.at("/apps").map(({ body }) => JSON.parse(body));
    return bodies.filter(({ data }) => (data.deploymentId === subject && !("appType" in data)) || data.appId === subject).map(({ type }) => type as string);
  };
  await becomes(() => told(deploymentId), await rig.eventsOf(deploymentId));
  expect(await rig.eventsOf(appId)).toEqual(["app.created", "app.failed"]);
  const alerted = async (): Promise<readonly string[]> => {
    await runJob(world, "alerts.evaluate");
    return (await rig.ask("GET /alerts")).map(({ type }: { type: string }) => type).sort();
  };
  await becomes(alerted, ["app.failed", "deployment.failed"]);
  await receiver.close();
});

test.concurrent("a removed app leaves lists, counts and desired state, and its row for a month", async () => {
  const rig = await rigged();
  const { appId } = await rig.ask("POST /apps", { appType: "key-value", deviceId: rig.device.deviceId, name: newId("n") });
  await rig.until(`/apps/${appId}`, "running");
  await rig.ask(`DELETE /apps/${appId}`);
  await becomes(() => rig.refusal(`GET /apps/${appId}`), [404, "APP_NOT_FOUND", { appId }]);
  expect(await rig.ask("GET /apps")).toEqual([]);
  expect((await rig.ask("GET /agent/desired-state", undefined, rig.device.as)).apps).toEqual([]);
  for (const route of [`GET /apps/${appId}/secrets`, `GET /apps/${appId}/snapshots`, `POST /apps/${appId}/start`, `DELETE /apps/${appId}`])
    expect((await rig.refusal(route)).slice(0, 2)).toEqual([404, "APP_NOT_FOUND"]);
  expect((await rig.refusal(`GET /apps/${appId}/secrets`, undefined, rig.device.as)).slice(0, 2)).toEqual([404, "APP_NOT_FOUND"]);
  const { rows } = await world.sql.query("select status, removed_at is not null as kept from apps where app_id = $1", [appId]);
  expect(rows).toEqual([{ status: "removed", kept: true }]);
});
