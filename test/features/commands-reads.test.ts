// What a command costs does not grow with what else there is: the statements on its way read its own device, also while the planner knows nothing of the tables yet.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../server/platform/db.ts";
import { addDevice, asOperator, connect, createRoom, openTestDb } from "./commands-kit.ts";

let db: Db;
beforeAll(async () => {
  // One connection: it counts what it has read, and says so when asked.
  db = await openTestDb(undefined, 1);
});
afterAll(() => db.close());

const FLEET = 3_000;
const COMMANDS = 40;

/** Index entries that were read so far. */
const entriesRead = async (): Promise<number> => {
  await db.query("select pg_stat_force_next_flush()");
  const [row] = await db.query<{ read: number }>(
    "select sum(idx_tup_read)::int8 as read from pg_stat_user_indexes where relname in ('devices', 'device_presence')",
  );
  return row?.read ?? 0;
};

test("a command's way from its creation to its claim reads a few rows, however many devices live", async () => {
  const device = await addDevice(db);
  await db.query(
    `insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, secret, status, updated_at)
     select 'dev_' || n, $1, 'dep_1', 'agt_' || n, 'print_' || n, '\\x00', 'online', now() from generate_series(1, $2::int) n`,
    [device.tenantId, FLEET],
  );
  const epoch = await connect(db, device);
  const room = createRoom(db);
  const before = await entriesRead();
  for (let n = 0; n < COMMANDS; n += 1) {
    const { commandId } = await asOperator(room, device).queue();
    await room.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 8 });
    await room.delivery.ack(device, { commandId, status: "succeeded" });
  }
  expect((await entriesRead()) - before).toBeLessThan(COMMANDS * 20);
});
