// PgBouncer in transaction mode between gateway and PostgreSQL: no statement relies on its session.

import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { migrate } from "../../../server/platform/database/migrations/migrate.ts";
import { online } from "../../channel/harness.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { createEmptyDatabase, createTestDatabase, withClient } from "../../kit/stores/database.ts";
import { type PgBouncer, startPgBouncer } from "../../kit/stores/pgbouncer.ts";

const LANES = 6;
const EACH = 60;

let pooler: PgBouncer;
let world: World;
let direct: string;
beforeAll(async () => {
  pooler = await startPgBouncer(inject("databaseUrl"));
  direct = await createTestDatabase();
  const databaseUrl = pooler.through(direct);
  world = await startWorld({ DATABASE_URL: databaseUrl, DATABASE_STATEMENTS: "unnamed" });
});
afterAll(async () => {
  await world.close();
  await pooler.close();
});

test("three migrations at once through the pooler migrate an empty database once", async () => {
  const url = pooler.through(await createEmptyDatabase());
  const applied = await Promise.all([migrate({ clock: systemClock, url }), migrate({ clock: systemClock, url }), migrate({ clock: systemClock, url })]);
  expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
});

test("a migration leaves no lock in a session that the pooler keeps, so the second start migrates, too", async () => {
  const lasting = await startPgBouncer(inject("databaseUrl"), { idleSeconds: 600 });
  try {
    const direct = new URL(await createEmptyDatabase());
    const url = lasting.through(direct.href);
    expect(await migrate({ clock: systemClock, url })).not.toEqual([]);
    const locks = "select count(*)::int as held from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = $1)";
    const held = await withClient(inject("databaseUrl"), async (client) => (await client.query(locks, [direct.pathname.slice(1)])).rows);
    expect(held).toEqual([{ held: 0 }]);
    expect(await migrate({ clock: systemClock, url })).toEqual([]);
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

/** What became of creates under keys: those without their command or with another than their answer named, and those with several commands. */
const problemsOf = (answered: ReadonlyMap<string, string>, kept: readonly { readonly key: string; readonly id: string }[]) => ({
  lost: [...answered].filter(([key, id]) => !kept.some((row) => row.key === key && row.id === id)).map(([key]) => key),
  doubled: [...answered.keys()].filter((key) => kept.filter((row) => row.key === key).length > 1),
});

test("the check of a pooler's restart finds a lost create and a doubled one", () => {
  const answered = new Map([
    ["a", "1"],
    ["b", "2"],
    ["c", "3"],
  ]);
  const kept = [
    { key: "a", id: "1" },
    { key: "b", id: "2" },
    { key: "b", id: "4" },
  ];
  expect(problemsOf(answered, kept)).toEqual({ lost: ["c"], doubled: ["b"] });
});

test("a pooler that dies and returns while creates run loses none that was answered, doubles none, and the agent and readiness are back", async () => {
  const tenant = await world.tenant();
  const at = { url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } };
  const agent = await tenant.device();
  const before = await online(at, agent);
  const devices = await Promise.all(Array.from({ length: LANES }, () => tenant.device()));
  const answered = new Map<string, string>();
  const refused: unknown[] = [];
  const create = async (deviceId: string, key: string): Promise<void> => {
    const path = `/v1/devices/${deviceId}/commands`;
    // The key travels in the payload as well: a gateway that forgot it would still be found out.
    const { status, body } = await world.call(tenant.apiKey, "POST", path, {
      body: { type: "echo", payload: { text: key } },
      headers: { "idempotency-key": key },
    });
    if (status === 201) return void answered.set(key, body.data.commandId);
    refused.push([status, body.retryable]);
    throw new Error(`not created: ${status} ${body.code}`);
  };
  /** One after the other, each repeated under its key until it is answered. */
  const load = devices.map(async ({ deviceId }) => {
    for (let n = 0; n < EACH; n += 1) await eventually(() => create(deviceId, `${deviceId}-${n}`), 60_000);
  });
  await eventually(() => expect(answered.size).toBeGreaterThan(devices.length * 5), 60_000);
  const atDeath = answered.size;
  await pooler.kill();
  // Nobody gets through while it is away, so somebody is refused.
  await eventually(() => expect(refused).not.toEqual([]));
  await pooler.start();
  await Promise.all(load);
  expect([atDeath < devices.length * EACH, answered.size]).toEqual([true, devices.length * EACH]);
  // Each may come back with the same key.
  expect(refused.filter((each) => JSON.stringify(each) !== "[503,true]")).toEqual([]);
  const kept = await withClient(direct, async (client) => {
    const text = "select payload->>'text' as key, command_id as id from commands where tenant_id = $1";
    return (await client.query<{ key: string; id: string }>(text, [tenant.tenantId])).rows;
  });
  expect([problemsOf(answered, kept), kept.length]).toEqual([{ lost: [], doubled: [] }, devices.length * EACH]);
  await eventually(async () => expect((await fetch(`${world.url}/v1/health/ready`)).status).toBe(200));
  const socket = before.isOpen() ? before : await online(at, agent);
  const { body } = await world.call(tenant.apiKey, "POST", `/v1/devices/${agent.deviceId}/commands`, { body: { type: "ping" } });
  const { commandId } = (await socket.next("command")).data.command;
  expect(commandId).toBe(body.data.commandId);
  socket.say("ack", { commandId, status: "succeeded" });
  expect((await socket.next("ack_ok")).data.result).toBe("applied");
  socket.end();
}, 180_000);
