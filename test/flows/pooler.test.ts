// PgBouncer in transaction mode between gateway and PostgreSQL: no statement relies on its session.
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { migrate } from "../../server/platform/database/migrations/migrate.ts";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { createEmptyDatabase, createTestDatabase, withClient } from "../kit/stores/database.ts";
import { type PgBouncer, startPgBouncer } from "../kit/stores/pgbouncer.ts";

let pooler: PgBouncer;
let world: World;
beforeAll(async () => {
  pooler = await startPgBouncer(inject("databaseUrl"));
  const databaseUrl = pooler.through(await createTestDatabase());
  world = await startWorld({ DATABASE_URL: databaseUrl, DATABASE_STATEMENTS: "unnamed" });
});
afterAll(async () => {
  await world.close();
  await pooler.close();
});

test("three migrations at once through the pooler migrate an empty database once", async () => {
  const url = pooler.through(await createEmptyDatabase());
  const applied = await Promise.all([migrate({ url }), migrate({ url }), migrate({ url })]);
  expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
});

test("a migration leaves no lock in a session that the pooler keeps, so the second start migrates, too", async () => {
  const lasting = await startPgBouncer(inject("databaseUrl"), { idleSeconds: 600 });
  try {
    const direct = new URL(await createEmptyDatabase());
    const url = lasting.through(direct.href);
    expect(await migrate({ url })).not.toEqual([]);
    const locks = "select count(*)::int as held from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = $1)";
    const held = await withClient(inject("databaseUrl"), async (client) => (await client.query(locks, [direct.pathname.slice(1)])).rows);
    expect(held).toEqual([{ held: 0 }]);
    expect(await migrate({ url })).toEqual([]);
  } finally {
    await lasting.close();
  }
});

test("twelve devices poll and acknowledge at once through few sessions, and each command ends once", async () => {
  const tenant = await world.tenant();
  const devices = await Promise.all(Array.from({ length: 12 }, () => tenant.device()));
  const queued = await Promise.all(
    devices.map(({ deviceId }) =>
      world.call(tenant.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" }, headers: { "idempotency-key": deviceId } }),
    ),
  );
  expect(queued.map(({ status }) => status)).toEqual(devices.map(() => 201));
  const ended = await Promise.all(
    devices.map(async ({ deviceId, as }) => {
      const polled = await world.call(as, "GET", `/v1/devices/${deviceId}/commands`);
      const [command] = polled.body.data as readonly { commandId: string }[];
      const path = `/v1/devices/${deviceId}/commands/${command?.commandId ?? ""}/ack`;
      return (await world.call(as, "POST", path, { body: { status: "succeeded" } })).body.data.result;
    }),
  );
  expect(ended).toEqual(devices.map(() => "applied"));
});
