// Two statements that meet at one row: what either knew before it waited must not decide.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../server/platform/db.ts";
import { eventually } from "../kit/eventually.ts";
import { addDevice, asOperator, connect, createRoom, disconnect, openTestDb } from "./commands-kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const isSomeoneWaiting = async (): Promise<boolean> =>
  (await db.query(`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)).length > 0;

test("a cancel that waited for a hello knows that the agent is back", async () => {
  const room = createRoom(db);
  const device = await addDevice(db);
  const operator = asOperator(room, device);
  const epoch = await connect(db, device);
  const { commandId } = await operator.queue();
  await room.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 8 });
  await disconnect(db, device);

  const { cancel } = await db.sqlTx(async (tx) => {
    await tx.query(`update device_presence set epoch = epoch + 1, connectivity = 'realtime' where device_id = $1`, [device.deviceId]);
    await room.delivery.settle(tx, [
      { ...device, epoch: epoch + 1, inFlight: [{ commandId, status: "running" }], journal: true, listsAll: true, cancels: true },
    ]);
    const cancel = operator.cancel(commandId);
    await eventually(async () => expect(await isSomeoneWaiting()).toBe(true));
    return { cancel };
  });
  const { status, deadlineAt, cancelRequestedAt } = await cancel;
  expect(status).toBe("canceling");
  // The time that a connected agent has, not that of an absent one.
  expect(Date.parse(deadlineAt ?? "") - Date.parse(cancelRequestedAt ?? "")).toBe(60_000);
});

test("a poll passes over a command that somebody holds, and over its lane", async () => {
  const room = createRoom(db);
  const device = await addDevice(db);
  const operator = asOperator(room, device);
  const [first, second, other] = [await operator.queue({ lane: "a" }), await operator.queue({ lane: "a" }), await operator.queue({ lane: "b" })];
  const idsOf = (items: readonly { readonly commandId: string }[]) => items.map(({ commandId }) => commandId);
  await db.sqlTx(async (tx) => {
    await tx.query(`select 1 from commands where command_id = $1 for update`, [first.commandId]);
    expect(idsOf(await operator.poll())).toEqual([other.commandId]);
  });
  expect(idsOf(await operator.poll())).toEqual(idsOf([first, second, other]));
});
