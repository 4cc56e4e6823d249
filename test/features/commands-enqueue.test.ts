// What a room can rely on that orders commands inside its own transaction.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../server/platform/db.ts";
import { failureOf } from "../kit/call.ts";
import { addDevice, asOperator, createRoom, type Device, openTestDb } from "./commands-kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const setUp = async (settings: Parameters<typeof createRoom>[1] = {}) => {
  const room = createRoom(db, settings);
  const device = await addDevice(db);
  return { room, device, operator: asOperator(room, device) };
};
const order = ({ deviceId }: Pick<Device, "deviceId">, more: { type?: string; key?: string; payload?: Record<string, unknown> } = {}) => ({
  deviceId,
  type: "deploy",
  payload: { appId: "app_1" },
  key: "release-1",
  orderedBy: "user:usr_1",
  ...more,
});
const kept = ({ deviceId }: Device) =>
  db.query<{ command_id: string; type: string; lane: string; created_by: string; status: string }>(
    "select command_id, type, lane, created_by, status from commands where device_id = $1 order by seq",
    [deviceId],
  );

test("the command is there with the commit, and nobody is told before `notify`", async () => {
  const { room, device } = await setUp();
  const made = await db.sqlTx(async (tx) => {
    const enqueued = await room.enqueue(tx, device, [order(device)]);
    expect(await kept(device)).toEqual([]);
    return enqueued;
  });
  expect(await kept(device)).toEqual([{ command_id: made.commandIds[0], type: "deploy", lane: "app:app_1", created_by: "user:usr_1", status: "queued" }]);
  expect([room.recorded.nudges, room.recorded.hints]).toEqual([[], []]);
  made.notify();
  expect([room.recorded.nudges, room.recorded.hints.map(({ event, subjectId }) => [event.type, subjectId])]).toEqual([
    [device.deviceId],
    [["command.queued", made.commandIds[0]]],
  ]);
});

test("a transaction that fails has ordered nothing", async () => {
  const { room, device } = await setUp();
  const failing = db.sqlTx(async (tx) => {
    await room.enqueue(tx, device, [order(device)]);
    throw new Error("the room changed its mind");
  });
  await expect(failing).rejects.toThrow("changed its mind");
  expect([await kept(device), room.recorded.nudges]).toEqual([[], []]);
});

test("all or none, also when the room goes on in spite of the refusal", async () => {
  const { room, device } = await setUp();
  const stranger = await addDevice(db);
  await db.sqlTx(async (tx) => {
    const refused = await failureOf(room.enqueue(tx, device, [order(device), order(stranger)]));
    expect(refused).toMatchObject({ code: "DEVICE_NOT_FOUND", details: { deviceId: stranger.deviceId } });
  });
  expect([await kept(device), await kept(stranger)]).toEqual([[], []]);
});

test("a key makes one command: repeated it gives the same one and wakes nobody, for another command it is refused", async () => {
  const { room, device } = await setUp();
  const enqueue = (more: Parameters<typeof order>[1] = {}) => db.sqlTx((tx) => room.enqueue(tx, device, [order(device, more)]));
  const [first, second] = [await enqueue(), await enqueue()];
  expect(second.commandIds).toEqual(first.commandIds);
  second.notify();
  expect(room.recorded.nudges).toEqual([]);
  expect(await failureOf(enqueue({ payload: { appId: "app_2" } }))).toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
  expect(await kept(device)).toHaveLength(1);
});

test("several on one device keep their order", async () => {
  const { room, device } = await setUp();
  const { commandIds } = await db.sqlTx((tx) => room.enqueue(tx, device, [order(device, { key: "a" }), order(device, { key: "b" })]));
  expect((await kept(device)).map(({ command_id }) => command_id)).toEqual(commandIds);
});

test("a full queue keeps out what is ordered, and lets the gateway's own pass", async () => {
  const { room, device, operator } = await setUp({ settings: { maxOpenPerDevice: 1 } });
  await operator.queue({ type: "ping", payload: {} });
  const enqueue = (type: string) => db.sqlTx((tx) => room.enqueue(tx, device, [order(device, { type, payload: {} })]));
  expect(await failureOf(enqueue("ping"))).toMatchObject({ code: "COMMAND_QUEUE_FULL" });
  await enqueue("svc.rotate-secret");
  expect((await kept(device)).map(({ type }) => type)).toEqual(["ping", "svc.rotate-secret"]);
});

test.each([
  ["a type of the gateway that there is not", { type: "svc.unheard-of" }, "COMMAND_TYPE_UNKNOWN"],
  ["a payload that its type does not take", { type: "shell", payload: { command: 1 } }, "COMMAND_PAYLOAD_INVALID"],
])("%s is refused", async (_, more, code) => {
  const { room, device } = await setUp();
  expect(await failureOf(db.sqlTx((tx) => room.enqueue(tx, device, [order(device, more)])))).toMatchObject({ code });
});
