// Each migration is applied once, wholly or not at all, and together they equal the schema.

import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../../server/core/clock.ts";
import { DISPATCHED, SEQUENCE } from "../../../../server/core/rows/event-rows.ts";
import { readSteps } from "../../../../server/features/commands/steps.ts";
import { difference, migrate } from "../../../../server/platform/database/migrations/migrate.ts";
import { migrationsFolder, schemaFolder } from "../../../../server/platform/database/migrations/schema-engine.ts";
import { insertRow } from "../../../kit/gateway/rows.ts";
import { createEmptyDatabase, createTestDatabase, withClient } from "../../../kit/stores/database.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mooring-migrations-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const names = async (): Promise<string[]> => (await readdir(migrationsFolder())).filter((name) => name !== "migration_lock.toml").sort();

const copyWith = async (name: string, sql: string): Promise<string> => {
  const copy = join(folder, name);
  await cp(migrationsFolder(), copy, { recursive: true });
  await mkdir(join(copy, `99990101000000_${name}`));
  await writeFile(join(copy, `99990101000000_${name}`, "migration.sql"), sql);
  return copy;
};

describe("migrate", () => {
  test("three nodes that migrate at once apply each migration once", async () => {
    const url = await createEmptyDatabase();
    const applied = await Promise.all([migrate({ clock: systemClock, url }), migrate({ clock: systemClock, url }), migrate({ clock: systemClock, url })]);
    expect(applied.flat()).toEqual(await names());
    const rows = await withClient(
      url,
      async (client) => (await client.query("select migration_name, finished_at from _prisma_migrations order by migration_name")).rows,
    );
    expect(rows).toEqual((await names()).map((name) => ({ migration_name: name, finished_at: expect.any(Date) })));
  });

  test("a failed migration leaves nothing behind and reports its reason", async () => {
    const url = await createTestDatabase();
    const broken = await copyWith("broken", "create table half (a int); select * from nowhere;");
    await expect(migrate({ clock: systemClock, url, folder: broken })).rejects.toThrow(/nowhere/);
    const found = await withClient(url, async (client) => (await client.query("select to_regclass('half') as half")).rows);
    expect(found).toEqual([{ half: null }]);
  });

  test("a failed migration is applied once its SQL is corrected", async () => {
    const url = await createTestDatabase();
    const copy = await copyWith("corrected", "select * from nowhere");
    await expect(migrate({ clock: systemClock, url, folder: copy })).rejects.toThrow(/nowhere/);
    await writeFile(join(copy, "99990101000000_corrected", "migration.sql"), "create table corrected (a int)");
    expect(await migrate({ clock: systemClock, url, folder: copy })).toEqual(["99990101000000_corrected"]);
  });

  test("a migration whose run was killed after its commit is not applied again", async () => {
    const url = await createTestDatabase();
    const copy = await copyWith("killed", "create table once (a int)");
    await migrate({ clock: systemClock, url, folder: copy });
    await withClient(url, (client) =>
      client.query("update _prisma_migrations set finished_at = null, applied_steps_count = 0 where migration_name like '%killed'"),
    );
    expect(await migrate({ clock: systemClock, url, folder: copy })).toEqual([]);
    expect(await migrate({ clock: systemClock, url, folder: copy })).toEqual([]);
  });

  test("a start with nothing to apply reads no script, and starts no engine that would refuse a missing one", async () => {
    const copy = await copyWith("unread", "select 1");
    const url = await createTestDatabase();
    await migrate({ clock: systemClock, url, folder: copy });
    await rm(join(copy, "99990101000000_unread", "migration.sql"));
    expect(await migrate({ clock: systemClock, url, folder: copy })).toEqual([]);
    await expect(migrate({ clock: systemClock, url: await createTestDatabase(), folder: copy })).rejects.toThrow(/migration\.sql/);
  });

  test("a migration may have semicolons inside strings and functions", async () => {
    const url = await createTestDatabase();
    const sql = "create function answer() returns text language plpgsql as $$ begin return 'a;b'; end $$; -- done; really\n";
    await migrate({ clock: systemClock, url, folder: await copyWith("semicolons", sql) });
    expect(await withClient(url, async (client) => (await client.query("select answer()")).rows)).toEqual([{ answer: "a;b" }]);
  });
});

describe("the migrations from 0.2.0 on", () => {
  const openOld = async (next = "20261122080721"): Promise<string> => {
    const old = join(folder, next);
    await cp(migrationsFolder(), old, { recursive: true, filter: (path) => (/\/(\d{14})_[^/]*$/.exec(path)?.[1] ?? "") < next });
    const url = await createEmptyDatabase();
    await migrate({ clock: systemClock, url, folder: old });
    return url;
  };

  test("keep every row that belongs to a tenant, and drop what a hand in the database left behind", async () => {
    const url = await openOld();
    await withClient(url, async (client) => {
      await insertRow(client, "tenants", { tenant_id: "ten_a" });
      await insertRow(client, "deployments", { tenant_id: "ten_a", deployment_id: "dep_a", is_default: true });
      await insertRow(client, "devices", { tenant_id: "ten_a", deployment_id: "dep_a", device_id: "dev_a" });
      await insertRow(client, "devices", { tenant_id: "ten_a", deployment_id: "dep_gone", device_id: "dev_moved" });
      await insertRow(client, "devices", { tenant_id: "ten_gone", deployment_id: "dep_gone", device_id: "dev_gone" });
      await insertRow(client, "device_presence", { tenant_id: "ten_gone", device_id: "dev_gone" });
      await insertRow(client, "pairings", { pairing_id: "unclaimed" });
      await insertRow(client, "pairings", { pairing_id: "paired", tenant_id: "ten_a", device_id: "dev_a" });
      await insertRow(client, "pairings", { pairing_id: "of another tenant", tenant_id: "ten_a", device_id: "dev_gone" });
      await insertRow(client, "enrollments", { pairing_id: "paired", tenant_id: "ten_a", device_id: "dev_a" });
      await insertRow(client, "enrollments", { pairing_id: "forgotten", tenant_id: "ten_a", device_id: "dev_none" });
      await insertRow(client, "enrollment_tokens", { token_id: "kept", tenant_id: "ten_a", deployment_id: "dep_gone" });
      for (const table of ["memberships", "api_keys", "stream_tickets", "enrollment_tokens"]) await insertRow(client, table, { tenant_id: "ten_gone" });
      await insertRow(client, "commands", { tenant_id: "ten_a", device_id: "dev_a", command_id: "cmd_a", status: "succeeded", idempotency_key: "usr:one" });
      await insertRow(client, "command_keys", { device_id: "dev_a", idempotency_key: "usr:one", command_id: "cmd_a" });
      await insertRow(client, "command_keys", { device_id: "dev_a", idempotency_key: "usr:two", command_id: "cmd_none" });
      for (const tenant_id of ["ten_a", "-"]) await insertRow(client, "idempotency_keys", { tenant_id, scope: `${tenant_id}|usr|make|1`, status: 200 });
    });
    await migrate({ clock: systemClock, url });
    expect(await difference({ url })).toBeUndefined();
    const found = await withClient(url, async (client) => {
      const read = async (text: string) => (await client.query({ text, rowMode: "array" })).rows;
      return {
        devices: await read("select device_id, deployment_id from devices order by 1"),
        presence: await read("select device_id from device_presence"),
        pairings: await read("select pairing_id from pairings order by 1"),
        enrollments: await read("select pairing_id from enrollments"),
        tokens: await read("select token_id, deployment_id from enrollment_tokens"),
        others: await read("select tenant_id from memberships union all select tenant_id from api_keys union all select tenant_id from stream_tickets"),
        keys: await read("select tenant_id, device_id, idempotency_key, command_id from commands"),
        scopes: await read("select tenant_id, scope from idempotency_keys order by 1"),
      };
    });
    expect(found).toEqual({
      devices: [
        ["dev_a", "dep_a"],
        ["dev_moved", "dep_a"],
      ],
      presence: [],
      pairings: [["paired"], ["unclaimed"]],
      enrollments: [["paired"]],
      tokens: [["kept", null]],
      others: [],
      keys: [["ten_a", "dev_a", "usr:one", "cmd_a"]],
      scopes: [
        ["-", "usr|make|1"],
        ["ten_a", "usr|make|1"],
      ],
    });
  });

  test("keep open and ended commands with their states, histories and keys", async () => {
    const url = await openOld("20261122212006");
    const [issued, sent, ended] = [new Date("2026-01-01T00:00:00.001Z"), new Date("2026-01-01T00:00:01.002Z"), new Date("2026-01-01T00:00:02.003Z")];
    const facts = {
      tenant_id: "ten_a",
      device_id: "dev_a",
      lane: "one",
      type: "ping",
      payload: { n: 1 },
      exec_timeout_s: 60,
      created_by: "usr_a",
      issued_at: issued,
    };
    const carried = { channel: "ws", session_epoch: 7, node_id: "node_a", attempt: 2, sent_at: sent };
    const hash = Buffer.from("digest");
    const old = [
      { ...facts, command_id: "cmd_queued", seq: 1, status: "queued", deadline_at: "infinity", available_at: sent },
      { ...facts, ...carried, command_id: "cmd_sent", seq: 2, status: "sent", deadline_at: ended, idempotency_key: "usr:one", request_hash: hash },
      {
        ...{ ...facts, ...carried, command_id: "cmd_ended", seq: 3, status: "failed", finished_at: ended, acked_at: sent, failure_code: "OUT_OF_DISK" },
        ...{ ack_status: "failed", ack_at: ended, output: { left: 0 }, output_truncated: true, late: true, idempotency_key: "usr:two", request_hash: hash },
        ...{ late_outcome: { status: "succeeded" } },
      },
      { ...facts, command_id: "cmd_bare", seq: 4, status: "canceled" },
    ];
    const steps = [
      { command_id: "cmd_sent", at: issued, from_status: null, to_status: "queued", actor: "usr_a" },
      { command_id: "cmd_ended", at: issued, from_status: null, to_status: "queued", actor: "usr_a" },
      { command_id: "cmd_sent", at: sent, from_status: "queued", to_status: "sent", actor: "session", attempt: 2, epoch: 7, node_id: "node_a" },
      {
        command_id: "cmd_ended",
        at: ended,
        from_status: "queued",
        to_status: "failed",
        actor: "dev_a",
        attempt: 2,
        code: "OUT_OF_DISK",
        detail: { left: null },
      },
    ];
    const found = await withClient(url, async (client) => {
      for (const row of old) await insertRow(client, "commands", { ...row, idempotency_key: null, ...row });
      for (const [id, step] of steps.entries()) await insertRow(client, "command_events", { id, tenant_id: "ten_a", ...step });
      for (const { command_id, ...row } of old)
        if ("idempotency_key" in row) {
          const { tenant_id, device_id, idempotency_key } = row;
          await insertRow(client, "command_keys", { tenant_id, device_id, idempotency_key, command_id });
        }
      const [before] = [(await client.query("select * from commands order by seq")).rows];
      await migrate({ clock: systemClock, url });
      const read = async (text: string) => (await client.query(text)).rows;
      return { before, after: await read("select * from commands_now order by seq"), queue: await read("select command_id from command_queue order by seq") };
    });
    const columns = Object.keys(found.after[0] ?? {}).filter((name) => name !== "history" && name !== "revision");
    const only = (row: Record<string, unknown>) => Object.fromEntries(columns.map((name) => [name, row[name]]));
    // An end without a time is taken for one at once.
    expect(found.after.map(only)).toEqual(found.before.map(only).map((row) => (row["command_id"] === "cmd_bare" ? { ...row, finished_at: issued } : row)));
    expect(Object.keys(found.before[0] ?? {}).filter((name) => !columns.includes(name))).toEqual([]);
    expect(found.queue).toEqual([{ command_id: "cmd_queued" }, { command_id: "cmd_sent" }]);
    const step = (at: Date, from: string | null, to: string, by: string, more: object = {}) => ({
      ...{ at: at.getTime(), from, to, by, attempt: 0, epoch: null, node: null, code: null, detail: null },
      ...more,
    });
    expect(found.after.map(({ history }) => readSteps(history))).toEqual([
      [],
      [step(issued, null, "queued", "usr_a"), step(sent, "queued", "sent", "session", { attempt: 2, epoch: 7, node: "node_a" })],
      [step(issued, null, "queued", "usr_a"), step(ended, "queued", "failed", "dev_a", { attempt: 2, code: "OUT_OF_DISK", detail: { left: null } })],
      [],
    ]);
  });

  test("keep each event's sequence number, and what the relay had still to dispatch", async () => {
    const url = await openOld("20261122213344");
    const found = await withClient(url, async (client) => {
      const write = (tenant_id: string, position: number, sequence: number | null) =>
        insertRow(client, "outbox_events", {
          tenant_id,
          event_id: `evt_${position}`,
          position,
          sequence,
          dispatched_at: sequence === null ? null : new Date(),
        });
      // Retention has left a hole, 3 was dispatched after 4, and 7 and 9 wait.
      const numbers: readonly (readonly [number, number | null])[] = [
        [1, 2],
        [2, 5],
        [4, 6],
        [3, 7],
        [5, 8],
        [7, null],
        [9, null],
      ];
      for (const [position, sequence] of numbers) await write("ten_a", position, sequence);
      await write("ten_b", 6, 1);
      await write("ten_b", 8, null);
      await migrate({ clock: systemClock, url });
      const read = async (text: string) => (await client.query({ text, rowMode: "array" })).rows;
      return {
        dispatched: await read(`select e.tenant_id, e.event_id, ${SEQUENCE}::int from ${DISPATCHED} order by d.tenant_id, d.last_sequence, o.nth`),
        waiting: await read("select tenant_id, array_to_string(positions, ' ') from outbox_pending order by 1"),
        data: await read("select distinct data::text from outbox_events"),
      };
    });
    expect(found).toEqual({
      dispatched: [
        ["ten_a", "evt_1", 2],
        ["ten_a", "evt_2", 5],
        ["ten_a", "evt_4", 6],
        ["ten_a", "evt_3", 7],
        ["ten_a", "evt_5", 8],
        ["ten_b", "evt_6", 1],
      ],
      waiting: [
        ["ten_a", "7 9"],
        ["ten_b", "8"],
      ],
      data: [["{}"]],
    });
  });
});

describe("schema check", () => {
  test("the committed migrations equal the schema", async () => {
    expect(await difference({ url: await createTestDatabase() })).toBeUndefined();
  });

  test("a column without a migration is reported", async () => {
    const schema = join(folder, "schema");
    await cp(schemaFolder(), schema, { recursive: true });
    const file = join(schema, "devices.prisma");
    await writeFile(file, (await readFile(file, "utf8")).replace("model Device {", "model Device {\n  colour String?"));
    expect(await difference({ url: await createTestDatabase(), schema })).toContain('ADD COLUMN     "colour" TEXT');
  });

  test.each([
    ["is missing", "drop index devices_living_tenant_fingerprint_key"],
    [
      "has another predicate",
      "drop index devices_living_tenant_fingerprint_key; create unique index devices_living_tenant_fingerprint_key on devices(tenant_id, fingerprint) where deleted_at is not null",
    ],
  ])("a partial index that %s is reported", async (_what, sql) => {
    const url = await createTestDatabase();
    await withClient(url, (client) => client.query(sql));
    expect(await difference({ url })).toContain("devices_living_tenant_fingerprint_key");
  });
});
