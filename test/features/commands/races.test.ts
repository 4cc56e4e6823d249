// Two statements meet at one row: neither may decide by what it read before it waited for the lock.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../../server/platform/database/db.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { addDevice, asOperator, connectDevice, createCommandsFeature, disconnectDevice, openTestDb } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const isSomeoneWaiting = async (): Promise<boolean> =>
  (await db.query(`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)).length > 0;

test("a cancel that waited for a hello gives the agent the time of a connected one", async () => {
  const feature = createCommandsFeature(db);
  const device = await addDevice(db);
  const operator = asOperator(feature, device);
  const epoch = await connectDevice(db, device);
  const { commandId } = await operator.queue();
  await feature.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 8 });
  await disconnectDevice(db, device);

  const { cancel } = await db.sqlTx(async (tx) => {
    await tx.query(`update device_presence set epoch = epoch + 1, connectivity = 'realtime' where device_id = $1`, [device.deviceId]);
    await feature.delivery.settle(tx, [
      { ...device, epoch: epoch + 1, inFlight: [{ commandId, status: "running" }], journal: true, listsAll: true, cancels: true },
    ]);
    const cancel = operator.cancel(commandId);
    await eventually(async () => expect(await isSomeoneWaiting()).toBe(true));
    return { cancel };
  });
  const { status, deadlineAt, cancelRequestedAt } = await cancel;
  expect(status).toBe("canceling");
  // A connected agent has this long to confirm; an absent one has longer.
  expect(Date.parse(deadlineAt ?? "") - Date.parse(cancelRequestedAt ?? "")).toBe(60_000);
});

test("a poll skips a command that another transaction has locked, and the rest of its lane", async () => {
  const feature = createCommandsFeature(db);
  const device = await addDevice(db);
  const operator = asOperator(feature, device);
  const [first, second, other] = [await operator.queue({ lane: "a" }), await operator.queue({ lane: "a" }), await operator.queue({ lane: "b" })];
  const idsOf = (items: readonly { readonly commandId: string }[]) => items.map(({ commandId }) => commandId);
  await db.sqlTx(async (tx) => {
    await tx.query(`select 1 from command_queue where command_id = $1 for update`, [first.commandId]);
    expect(idsOf(await operator.poll())).toEqual([other.commandId]);
  });
  expect(idsOf(await operator.poll())).toEqual(idsOf([first, second, other]));
});
