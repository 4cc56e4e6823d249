// How long commands are kept: ended ones for the configured days, with their history and their keys; open ones always.
import { encodeTime } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { deleteEnded, type RetentionPlace } from "../../../server/features/commands/store/retention.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { counted, pagesRead } from "../../kit/stores/pages-read.ts";
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
  return renamed(commandId, days);
};
/** The same command with the id that it would have had that many days ago. */
const renamed = async (commandId: string, days: number): Promise<string> => {
  const old = `cmd_${encodeTime(Date.now() - days * DAY * 1_000, 10)}${commandId.slice(-16)}`;
  for (const table of ["commands", "command_queue"]) await db.query(`update ${table} set command_id = $2 where command_id = $1`, [commandId, old]);
  return old;
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
  const old = await renamed(commandId, 400);
  await retain(feature);
  expect(await left(device)).toEqual([old]);
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

/** The pages of the table and of its indexes that each batch read. */
const pagesOfBatches = async (rows: number, limit: number): Promise<readonly number[]> => {
  const tenantId = newId("ten");
  await counted(db, (tx) =>
    tx.query(
      `insert into commands (command_id, tenant_id, device_id, seq, lane, type, payload, exec_timeout_s, created_by, issued_at, finished_at, status)
     select $2 || lpad(n::text, 16, '0'), $1, 'dev_x', n, 'host', 'ping', '{}', 60, 'test', now() - interval '40 days', now() - interval '40 days', 'succeeded'
       from generate_series(1, $3::int) n`,
      [tenantId, `cmd_${encodeTime(Date.now() - 40 * DAY * 1_000, 10)}`, rows],
    ),
  );
  const before = new Date(Date.now() - KEEP_DAYS * DAY * 1_000);
  const pages: number[] = [];
  for (let place: RetentionPlace = { tenantId, after: "cmd_" }; place.after !== null; ) {
    const start = await pagesRead(db, "commands");
    const { next } = await counted(db, (tx) => deleteEnded(tx, { place, before, limit }));
    if (next === null) throw new Error("another node is at it");
    place = next;
    pages.push((await pagesRead(db, "commands")) - start);
  }
  return pages;
};

test("a batch of retention reads no page of what earlier batches deleted", async () => {
  const pages = await pagesOfBatches(10_000, 500);
  expect(pages).toHaveLength(21);
  const whole = pages.slice(0, 20);
  expect(Math.max(...whole)).toBeLessThan(1.05 * Math.min(...whole));
});
