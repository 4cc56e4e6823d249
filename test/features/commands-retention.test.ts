// How long commands are remembered: ended ones for the days that are set, with their history and their keys; open ones always.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../server/platform/db.ts";
import { addDevice, age, asOperator, connect, createRoom, type Device, openTestDb, runJob } from "./commands-kit.ts";

const KEEP_DAYS = 30;
const DAY = 86_400;

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const setUp = async (retentionBatch = 2) => {
  const room = createRoom(db, { settings: { keepDays: KEEP_DAYS, retentionBatch } });
  const device = await addDevice(db);
  return { room, device, operator: asOperator(room, device) };
};
type Room = Awaited<ReturnType<typeof setUp>>["room"];
const retain = (room: Room) => runJob(room, "commands.retention");

/** Queued, sent and ended by the agent, so many days ago. */
const ended = async ({ room, device, operator }: Awaited<ReturnType<typeof setUp>>, days: number, key: string | null = null): Promise<string> => {
  const { commandId } = await operator.queue({ type: "ping", payload: {} }, key);
  const epoch = await connect(db, device);
  await room.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 32 });
  await room.delivery.ack(device, { commandId, status: "succeeded" });
  await age(db, commandId, days * DAY);
  return commandId;
};
const left = async ({ deviceId }: Device) =>
  (await db.query<{ command_id: string }>("select command_id from commands where device_id = $1 order by seq", [deviceId])).map(({ command_id }) => command_id);
const historyOf = async (ids: readonly string[]) =>
  (await db.query<{ command_id: string }>("select distinct command_id from command_events where command_id = any($1)", [ids])).map(
    ({ command_id }) => command_id,
  );

test("what ended longer ago than is kept goes with its history, batch after batch; the younger stays whole", async () => {
  const world = await setUp();
  const old = [];
  for (let count = 0; count < 5; count += 1) old.push(await ended(world, KEEP_DAYS + 1));
  const young = await ended(world, KEEP_DAYS - 1);
  await retain(world.room);
  expect(await left(world.device)).toEqual([young]);
  expect(await historyOf([...old, young])).toEqual([young]);
});

test("an open command is kept however old it is", async () => {
  const { room, device, operator } = await setUp();
  const { commandId } = await operator.queue({ type: "ping", payload: {}, expiresAt: null });
  await age(db, commandId, 400 * DAY);
  await db.query("update commands set issued_at = issued_at - interval '400 days' where command_id = $1", [commandId]);
  await retain(room);
  expect(await left(device)).toEqual([commandId]);
});

test("a key holds as long as its command: after a day and more the same request still makes no second one", async () => {
  const world = await setUp();
  const first = await ended(world, 2, "the-key");
  await retain(world.room);
  expect((await world.operator.queue({ type: "ping", payload: {} }, "the-key")).commandId).toBe(first);
  expect(await left(world.device)).toEqual([first]);
});

test("a key goes with its command, and then stands for a new one", async () => {
  const world = await setUp();
  const old = await ended(world, KEEP_DAYS + 1, "the-key");
  await retain(world.room);
  expect(await db.query("select 1 from command_keys where device_id = $1", [world.device.deviceId])).toEqual([]);
  const { commandId } = await world.operator.queue({ type: "ping", payload: {} }, "the-key");
  expect(commandId).not.toBe(old);
});

test("while one node is at it, another leaves it alone", async () => {
  const world = await setUp();
  const old = await ended(world, KEEP_DAYS + 1);
  await db.sqlTx(async (tx) => {
    await tx.query("select pg_advisory_xact_lock(7266530022)");
    await retain(world.room);
    expect(await left(world.device)).toEqual([old]);
  });
  await retain(world.room);
  expect(await left(world.device)).toEqual([]);
});

test("the statement reads the index of ended commands, not the table", async () => {
  const plan = await db.sqlTx(async (tx) => {
    await tx.query("set local enable_seqscan = off");
    return tx.query<{ "QUERY PLAN": string }>(
      "explain select command_id from commands where deadline_at is null and finished_at < now() - 30 * interval '1 day' order by finished_at limit 500",
    );
  });
  expect(plan.map((line) => line["QUERY PLAN"]).join("\n")).toContain("commands_ended_finished_at_idx");
});
