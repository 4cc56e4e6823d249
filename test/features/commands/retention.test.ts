// How long commands are kept: ended ones for the configured days, with their history and their keys; open ones always.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../../server/platform/database/db.ts";
import { addDevice, age, asOperator, connectDevice, createCommandsFeature, type DeviceRef, openTestDb, runJob } from "./kit.ts";

const KEEP_DAYS = 30;
const DAY = 86_400;

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const setUp = async (retentionBatch = 2) => {
  const feature = createCommandsFeature(db, { settings: { keepDays: KEEP_DAYS, retentionBatch } });
  const device = await addDevice(db);
  return { feature, device, operator: asOperator(feature, device) };
};
type Feature = Awaited<ReturnType<typeof setUp>>["feature"];
const retain = (feature: Feature) => runJob(feature, "commands.retention");

/** A command that was queued, sent and ended by the agent that many days ago. */
const ended = async ({ feature, device, operator }: Awaited<ReturnType<typeof setUp>>, days: number, key: string | null = null): Promise<string> => {
  const { commandId } = await operator.queue({ type: "ping", payload: {} }, key);
  const epoch = await connectDevice(db, device);
  await feature.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 32 });
  await feature.delivery.ack(device, { commandId, status: "succeeded" });
  await age(db, commandId, days * DAY);
  return commandId;
};
const left = async ({ deviceId }: DeviceRef) =>
  (await db.query<{ command_id: string }>("select command_id from commands_now where device_id = $1 order by seq", [deviceId])).map(
    ({ command_id }) => command_id,
  );

test("retention deletes commands that ended too long ago, batch after batch, and keeps younger ones whole", async () => {
  const world = await setUp();
  for (let count = 0; count < 5; count += 1) await ended(world, KEEP_DAYS + 1);
  const young = await ended(world, KEEP_DAYS - 1);
  await retain(world.feature);
  expect(await left(world.device)).toEqual([young]);
  expect((await world.operator.timeline(young)).events.map(({ to }) => to)).toEqual(["queued", "sent", "succeeded"]);
});

test("an open command is kept however old it is", async () => {
  const { feature, device, operator } = await setUp();
  const { commandId } = await operator.queue({ type: "ping", payload: {}, expiresAt: null });
  await age(db, commandId, 400 * DAY);
  await db.query("update commands set issued_at = issued_at - interval '400 days' where command_id = $1", [commandId]);
  await retain(feature);
  expect(await left(device)).toEqual([commandId]);
});

test("a key lives as long as its command: the same request two days later makes no second command", async () => {
  const world = await setUp();
  const first = await ended(world, 2, "the-key");
  await retain(world.feature);
  expect((await world.operator.queue({ type: "ping", payload: {} }, "the-key")).commandId).toBe(first);
  expect(await left(world.device)).toEqual([first]);
});

test("a key is deleted with its command and can then make a new one", async () => {
  const world = await setUp();
  const old = await ended(world, KEEP_DAYS + 1, "the-key");
  await retain(world.feature);
  expect(await left(world.device)).toEqual([]);
  const { commandId } = await world.operator.queue({ type: "ping", payload: {} }, "the-key");
  expect(commandId).not.toBe(old);
});

test("while one node runs retention, another deletes nothing", async () => {
  const world = await setUp();
  const old = await ended(world, KEEP_DAYS + 1);
  await db.sqlTx(async (tx) => {
    await tx.query("select pg_advisory_xact_lock(7266530022)");
    await retain(world.feature);
    expect(await left(world.device)).toEqual([old]);
  });
  await retain(world.feature);
  expect(await left(world.device)).toEqual([]);
});

test("retention reads the index of ended commands, not the table", async () => {
  const plan = await db.sqlTx(async (tx) => {
    await tx.query("set local enable_seqscan = off");
    return tx.query<{ "QUERY PLAN": string }>("explain select command_id from commands where finished_at < now() - 30 * interval '1 day' limit 500");
  });
  expect(plan.map((line) => line["QUERY PLAN"]).join("\n")).toContain("commands_finished_at_idx");
});
