// Calls that wait for a record's state: they answer when an event says so, and at the end of their time with the record as it is.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { openRig, type Rig } from "./apps/kit.ts";

let world: World;
const open: Rig[] = [];
beforeAll(async () => {
  world = await startWorld({ LIVE_STREAMS_PER_CREDENTIAL: "2" });
});
afterAll(async () => {
  await Promise.all(open.map(({ stop }) => stop()));
  await world.close();
});
const rigged = async (options?: { online?: boolean }): Promise<Rig> => {
  const rig = await openRig(world, options);
  open.push(rig);
  return rig;
};

test("a call waits until the deployment is active, and another until its app runs", async () => {
  const rig = await rigged({ online: false });
  const { deploymentId, appId } = await rig.deploy();
  const waiting = Promise.all([
    rig.ask(`GET /deployments/${deploymentId}/wait?status=active,failed&timeout=60`),
    rig.ask(`GET /apps/${appId}/wait?status=running&timeout=60`),
  ]);
  await rig.start();
  expect(await waiting).toMatchObject([{ status: "active" }, { status: "running" }]);
});

test("a call waits until the device is online", async () => {
  const rig = await rigged({ online: false });
  const waiting = rig.ask(`GET /devices/${rig.device.deviceId}/wait?status=online&timeout=60`);
  await rig.start();
  expect(await waiting).toMatchObject({ status: "online" });
});

test("after its time a call shows the record as it is", async () => {
  const rig = await rigged({ online: false });
  const { deploymentId } = await rig.deploy();
  expect(await rig.ask(`GET /deployments/${deploymentId}/wait?status=active&timeout=1`)).toMatchObject({ status: "queued" });
});

test("a record of another tenant is unknown at once", async () => {
  const [rig, other] = [await rigged({ online: false }), await rigged({ online: false })];
  const { deploymentId } = await rig.deploy();
  const refusal = await other.refusal(`GET /deployments/${deploymentId}/wait?status=active&timeout=60`);
  expect(refusal.slice(0, 2)).toEqual([404, "DEPLOYMENT_NOT_FOUND"]);
});

test("calls that wait count as streams of their caller, and give their place back", async () => {
  const rig = await rigged({ online: false });
  const { deploymentId } = await rig.deploy();
  const path = `GET /deployments/${deploymentId}/wait?status=active`;
  const answers = await Promise.allSettled([1, 2, 3].map(() => rig.ask(`${path}&timeout=2`)));
  expect(answers.filter(({ status }) => status === "rejected")).toMatchObject([{ reason: { message: expect.stringContaining("STREAM_LIMIT_REACHED") } }]);
  expect(await rig.ask(`${path}&timeout=0`)).toMatchObject({ status: "queued" });
});
