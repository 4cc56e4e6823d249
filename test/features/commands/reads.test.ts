// A command's cost does not grow with the fleet or with history: its statements read only its own device, even before the planner has statistics of the tables.
import { ulid } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import type { SystemScope } from "../../../server/core/scope.ts";
import { summarizeCommands } from "../../../server/features/commands/store/list.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { createTestDatabase, withClient } from "../../kit/stores/database.ts";
import { addDevice, asOperator, connectDevice, createCommandsFeature, openTestDb } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  // One connection: PostgreSQL reports its reads when the test flushes the statistics.
  const url = await createTestDatabase();
  // As autovacuum may do it right after the installation.
  await withClient(url, (client) => client.query("vacuum"));
  db = await openTestDb(url, 1);
});
afterAll(() => db.close());

const FLEET = 20_000;
const HISTORY = 20_000;
const COMMANDS = 40;
/** One statement that reads the fleet or the history in each round exceeds this thirteen times over. The device's own dead entries, which PostgreSQL
 * may not remove while any transaction of the server is open, stay far below. */
const ENTRIES = 60_000;

/** The number of entries read so far, by index. */
const entriesRead = async (): Promise<Readonly<Record<string, number>>> => {
  await db.query("select pg_stat_force_next_flush()");
  const rows = await db.query<{ name: string; read: number }>(
    "select indexrelname as name, idx_tup_read as read from pg_stat_user_indexes where relname in ('devices', 'device_presence', 'commands', 'command_queue')",
  );
  return Object.fromEntries(rows.map(({ name, read }) => [name, read]));
};

test("every operation on a command reads a few rows, however large the fleet and however long the device's history", async () => {
  const device = await addDevice(db);
  await db.query(
    `insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, secret, status, updated_at)
     select 'dev_' || n, tenant_id, deployment_id, 'agt_' || n, 'print_' || n, '\\x00', 'online', now() from deployments, generate_series(1, $2::int) n where tenant_id = $1`,
    [device.tenantId, FLEET],
  );
  await db.query(
    `insert into commands (command_id, tenant_id, device_id, seq, lane, priority, type, payload, requires_ack, available_at, max_attempts, redeliver_safe,
       exec_timeout_s, created_by, issued_at, status, finished_at)
     select 'cmd_' || n, $1, $2, -n, 'old', 5, 'ping', '{}', true, now(), 10, true, 60, 'test', now(), 'succeeded', now() from generate_series(1, $3::int) n`,
    [device.tenantId, device.deviceId, HISTORY],
  );
  const epoch = await connectDevice(db, device);
  const feature = createCommandsFeature(db);
  const before = await entriesRead();
  for (let n = 0; n < COMMANDS; n += 1) {
    const { commandId } = await asOperator(feature, device).queue({ requiresAck: n % 2 === 0 });
    await feature.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 8 });
    if (n % 2 === 0) await feature.delivery.ack(device, { commandId, status: "succeeded" });
    else await feature.delivery.delivered(device, epoch, [commandId]);
    const operator = asOperator(feature, device);
    const polled = await operator.queue();
    await operator.poll(5);
    await operator.run("timeline", { commandId: polled.commandId });
    await operator.cancel(polled.commandId, { force: true });
    await operator.queue();
    await operator.run("purge", { deviceId: device.deviceId });
    await db.sqlTx((tx) => feature.delivery.settle(tx, [{ ...device, epoch, inFlight: [], journal: true, listsAll: true, cancels: true, handoff: false }]));
  }
  for (const [index, read] of Object.entries(await entriesRead())) expect(read - (before[index] ?? 0), index).toBeLessThan(ENTRIES);
});

test("a summary counts the newest ended commands of a day, and says since when where there are too many", async () => {
  const scope = { tenantId: newId("ten") } as SystemScope;
  const now = new Date();
  // One an hour: the oldest within the day is 23 hours old.
  await db.query(
    `insert into commands (command_id, tenant_id, device_id, seq, lane, type, payload, exec_timeout_s, created_by, issued_at, finished_at, status)
     select id, $1, 'dev_x', n, 'host', 'ping', '{}', 60, 'test', at, at, 'succeeded' from unnest($2::text[], $3::timestamptz[]) with ordinality as v(id, at, n)`,
    [scope.tenantId, ...hourly(now, 30)],
  );
  const whole = await summarizeCommands(db, scope, now);
  expect(whole).toMatchObject({ endedLastDay: { succeeded: 24 }, endedSince: null });
  const bounded = await summarizeCommands(db, scope, now, 5);
  expect(bounded).toMatchObject({ endedLastDay: { succeeded: 5 }, endedSince: new Date(now.getTime() - 4 * HOUR_MS).toISOString() });
});

const HOUR_MS = 3_600_000;
const hourly = (now: Date, count: number): readonly [ids: readonly string[], times: readonly Date[]] => {
  const times = Array.from({ length: count }, (_, n) => new Date(now.getTime() - (count - 1 - n) * HOUR_MS));
  return [times.map((at) => `cmd_${ulid(at.getTime())}`), times];
};
