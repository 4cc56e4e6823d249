// The guarantees for a feature that orders commands inside its own transaction.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../../server/platform/database/db.ts";
import { failureOf } from "../../kit/gateway/call.ts";
import { addDevice, asOperator, createCommandsFeature, type DeviceRef, openTestDb } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const setUp = async (settings: Parameters<typeof createCommandsFeature>[1] = {}) => {
  const feature = createCommandsFeature(db, settings);
  const device = await addDevice(db);
  return { feature, device, operator: asOperator(feature, device) };
};
const order = ({ deviceId }: Pick<DeviceRef, "deviceId">, more: { type?: string; key?: string; payload?: Record<string, unknown> } = {}) => ({
  deviceId,
  type: "deploy",
  payload: { appId: "app_1" },
  key: "release-1",
  orderedBy: "user:usr_1",
  ...more,
});
const kept = ({ deviceId }: DeviceRef) =>
  db.query<{ command_id: string; type: string; lane: string; created_by: string; status: string }>(
    "select command_id, type, lane, created_by, status from commands_now where device_id = $1 order by seq",
    [deviceId],
  );

test("the command exists once the transaction commits, and nobody is told before `notify`", async () => {
  const { feature, device } = await setUp();
  const made = await db.sqlTx(async (tx) => {
    const enqueued = await feature.enqueue(tx, device, [order(device)]);
    expect(await kept(device)).toEqual([]);
    return enqueued;
  });
  expect(await kept(device)).toEqual([{ command_id: made.commandIds[0], type: "deploy", lane: "app:app_1", created_by: "user:usr_1", status: "queued" }]);
  expect([feature.recorded.nudges, feature.recorded.hints]).toEqual([[], []]);
  made.notify();
  expect([feature.recorded.nudges, feature.recorded.hints.map(({ event, subjectId }) => [event.type, subjectId])]).toEqual([
    [device.deviceId],
    [["command.queued", made.commandIds[0]]],
  ]);
});

test("a transaction that fails orders nothing", async () => {
  const { feature, device } = await setUp();
  const failing = db.sqlTx(async (tx) => {
    await feature.enqueue(tx, device, [order(device)]);
    throw new Error("the feature changed its mind");
  });
  await expect(failing).rejects.toThrow("changed its mind");
  expect([await kept(device), feature.recorded.nudges]).toEqual([[], []]);
});

test("one refused command stops the whole order, even when the feature commits in spite of the refusal", async () => {
  const { feature, device } = await setUp();
  const stranger = await addDevice(db);
  await db.sqlTx(async (tx) => {
    const refused = await failureOf(feature.enqueue(tx, device, [order(device), order(stranger)]));
    expect(refused).toMatchObject({ code: "DEVICE_NOT_FOUND", details: { deviceId: stranger.deviceId } });
  });
  expect([await kept(device), await kept(stranger)]).toEqual([[], []]);
});

test("a key makes one command: its repeat returns the same command and wakes nobody, and another command under it is refused", async () => {
  const { feature, device } = await setUp();
  const enqueue = (more: Parameters<typeof order>[1] = {}) => db.sqlTx((tx) => feature.enqueue(tx, device, [order(device, more)]));
  const [first, second] = [await enqueue(), await enqueue()];
  expect(second.commandIds).toEqual(first.commandIds);
  second.notify();
  expect(feature.recorded.nudges).toEqual([]);
  expect(await failureOf(enqueue({ payload: { appId: "app_2" } }))).toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
  expect(await kept(device)).toHaveLength(1);
});

test("commands ordered together for one device keep their order", async () => {
  const { feature, device } = await setUp();
  const { commandIds } = await db.sqlTx((tx) => feature.enqueue(tx, device, [order(device, { key: "a" }), order(device, { key: "b" })]));
  expect((await kept(device)).map(({ command_id }) => command_id)).toEqual(commandIds);
});

test("a full queue refuses a feature's command but accepts the gateway's own", async () => {
  const { feature, device, operator } = await setUp({ settings: { maxOpenPerDevice: 1 } });
  await operator.queue({ type: "ping", payload: {} });
  const enqueue = (type: string) => db.sqlTx((tx) => feature.enqueue(tx, device, [order(device, { type, payload: {} })]));
  expect(await failureOf(enqueue("ping"))).toMatchObject({ code: "COMMAND_QUEUE_FULL" });
  await enqueue("svc.rotate-secret");
  expect((await kept(device)).map(({ type }) => type)).toEqual(["ping", "svc.rotate-secret"]);
});

test.each([
  ["an unknown type under the gateway's own prefix", { type: "svc.unheard-of" }, "COMMAND_TYPE_UNKNOWN"],
  ["a payload that does not fit its type", { type: "shell", payload: { command: 1 } }, "COMMAND_PAYLOAD_INVALID"],
])("%s is refused", async (_, more, code) => {
  const { feature, device } = await setUp();
  expect(await failureOf(db.sqlTx((tx) => feature.enqueue(tx, device, [order(device, more)])))).toMatchObject({ code });
});

test("orders for many devices are refused one by one: a full queue, an unknown device and a wrong payload stop no other", async () => {
  const { feature, device, operator } = await setUp({ settings: { maxOpenPerDevice: 1 } });
  await operator.queue({ type: "ping", payload: {} });
  const stranger = await addDevice(db);
  const [other, next] = [await addDevice(db, { tenantId: device.tenantId }), await addDevice(db, { tenantId: device.tenantId })];
  const ping = (of: DeviceRef) => order(of, { type: "ping", payload: {} });
  const orders = [
    ping(device),
    ping(stranger),
    ping(other),
    { ...ping(next), type: "svc.unheard-of" },
    order(next, { type: "shell", payload: { command: 1 } }),
  ];
  const { results, notify } = await db.sqlTx((tx) => feature.enqueueEach(tx, device, [...orders, { ...ping(next), key: "second", terms: { priority: 7 } }]));
  expect(results.map((result) => (result.kind === "refused" ? result.code : result.kind))).toEqual([
    "COMMAND_QUEUE_FULL",
    "DEVICE_NOT_FOUND",
    "ordered",
    "COMMAND_TYPE_UNKNOWN",
    "COMMAND_PAYLOAD_INVALID",
    "ordered",
  ]);
  expect(results[0]).toMatchObject({ details: { scope: "device" } });
  notify();
  expect(feature.recorded.nudges.slice(1)).toEqual([other.deviceId, next.deviceId]);
  expect([(await kept(other)).length, (await kept(next)).length, (await kept(stranger)).length]).toEqual([1, 1, 0]);
});

test("orders for many devices leave a fifth of the tenant's queue to single commands", async () => {
  const { feature, device, operator } = await setUp({ settings: { maxOpenPerTenant: 5 } });
  const orders = [1, 2, 3, 4, 5].map((n) => order(device, { type: "ping", payload: {}, key: `order-${n}` }));
  const { results } = await db.sqlTx((tx) => feature.enqueueEach(tx, device, orders));
  expect(results.map(({ kind }) => kind)).toEqual(["ordered", "ordered", "ordered", "ordered", "refused"]);
  expect(results[4]).toMatchObject({ code: "COMMAND_QUEUE_FULL", details: { scope: "tenant", limit: 4 } });
  await operator.queue({ type: "ping", payload: {} });
  expect(await kept(device)).toHaveLength(5);
});
