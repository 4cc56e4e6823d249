// The cost of a hello and of a heartbeat does not grow with the fleet: they read the rows of their own device, also before the first ANALYZE.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgentSessions } from "../../server/features/devices/index.ts";
import { createPresence } from "../../server/features/devices/presence.ts";
import { deviceSettings } from "../../server/features/devices/settings.ts";
import { createBatch } from "../../server/platform/database/batch.ts";
import type { Db } from "../../server/platform/database/db.ts";
import { helloOf } from "./connect/hello-of.ts";
import { startNode, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const FLEET = 3_000;
const ROUNDS = 40;

/** Each transaction reports the rows that it read. */
const telling = (db: Db): Db => ({
  ...db,
  sqlTx: (run) =>
    db.sqlTx(async (tx) => {
      const result = await run(tx);
      await tx.query("select pg_stat_force_next_flush()");
      return result;
    }),
});

const entriesRead = async (): Promise<number> => {
  const [row] = await node.db.query<{ read: number }>(
    "select sum(idx_tup_read)::int8 as read from pg_stat_user_indexes where relname in ('devices', 'device_presence', 'commands', 'command_queue')",
  );
  return row?.read ?? 0;
};

/** Other devices beside the one under test. */
const addFleet = (tenantId: string, name: string): Promise<unknown> =>
  node.db.query(
    `with fleet as (
       insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, secret, status, updated_at)
       select 'dev_' || $3 || n, tenant_id, deployment_id, 'agt_' || $3 || n, 'print_' || $3 || n, '\\x00', 'online', now()
         from deployments, generate_series(1, $2::int) n where tenant_id = $1 returning device_id, tenant_id)
     insert into device_presence (device_id, tenant_id, epoch, connectivity) select device_id, tenant_id, 1, 'none' from fleet`,
    [tenantId, FLEET, name],
  );

const presenceOn = (db: Db) =>
  createPresence({
    db,
    createBatch,
    emit: async () => undefined,
    signatureLock: { locked: async () => undefined },
    probe: async () => false,
    nodeId: "node",
    settings: deviceSettings(),
  });

test("a hello and a flushed heartbeat read a few rows, however many devices exist", async () => {
  const device = await node.device();
  await addFleet(device.tenantId, "few_");
  const db = telling(node.db);
  const presence = presenceOn(db);
  const sessions = createAgentSessions({ db, presence, delivery: node.commands.delivery, createBatch });
  const before = await entriesRead();
  for (let round = 0; round < ROUNDS; round += 1) {
    const { epoch } = await sessions.begin(helloOf(device, node.nodeId, { machine: { hostname: `host-${round}` } }));
    const current = await presence.flush([{ deviceId: device.deviceId, epoch, seenAgoMs: 0, patienceMs: 100_000, heartbeatAgoMs: 0, metrics: { cpu: 1 } }]);
    expect([...current]).toEqual([device.deviceId]);
  }
  const read = (await entriesRead()) - before;
  expect(read).toBeGreaterThan(ROUNDS);
  expect(read).toBeLessThan(ROUNDS * 100);
});

test("a flush of many heartbeats reads each row once, also with statistics from an hour without connections", async () => {
  const device = await node.device();
  await addFleet(device.tenantId, "many_");
  await node.db.query("analyze device_presence");
  await node.db.query("update device_presence set session_id = 'ses_1', connectivity = 'realtime' where device_id like 'dev_many_%'");
  const presence = presenceOn(telling(node.db));
  const beats = Array.from({ length: FLEET }, (_, n) => ({
    deviceId: `dev_many_${n + 1}`,
    epoch: 1,
    seenAgoMs: 0,
    patienceMs: 100_000,
    heartbeatAgoMs: 0,
    metrics: null,
  }));
  const before = await entriesRead();
  for (let round = 0; round < ROUNDS; round += 1) expect((await presence.flush(beats)).size).toBe(FLEET);
  // The scan may also read dead row versions that updates leave behind.
  expect((await entriesRead()) - before).toBeLessThan(ROUNDS * FLEET * 5);
});
