// One call that queues a command for many devices: each device has its own command or error, and no device fails or delays another.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandResult, TenantId } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { sampleRow } from "../../kit/gateway/rows.ts";
import { createTestDatabase, withClient } from "../../kit/stores/database.ts";
import { addDevice, as, asOperator, createCommandsFeature, openTestDb } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const setUp = async (count: number, settings: Parameters<typeof createCommandsFeature>[1] = {}) => {
  const feature = createCommandsFeature(db, settings);
  const first = await addDevice(db);
  const { tenantId } = first;
  const devices = [first, ...(await Promise.all(Array.from({ length: count - 1 }, () => addDevice(db, { tenantId }))))];
  const ids = devices.map(({ deviceId }) => deviceId as string);
  return { feature, tenantId, devices, ids, many: callerOf(feature, first) };
};
const callerOf = (feature: ReturnType<typeof createCommandsFeature>, device: Parameters<typeof asOperator>[1], principal = as("operator")) => {
  const operator = asOperator(feature, device, principal);
  return {
    ...operator,
    send: (input: object, key: string | null = null) => operator.run("queueMany", { type: "echo", ...input }, key),
  };
};
const commandIdsOf = ({ items }: { readonly items: readonly CommandResult[] }) => items.map(({ command }) => command?.commandId ?? null);
const codesOf = ({ items }: { readonly items: readonly CommandResult[] }) => items.map(({ error }) => error?.code ?? null);
const countOf = async (tenantId: TenantId): Promise<number> =>
  (await db.query<{ n: number }>("select count(*)::int as n from commands where tenant_id = $1", [tenantId]))[0]?.n ?? 0;

describe("each device", () => {
  test("has its own command, as a call for it alone would have made it, and its viewers and its device hear of it", async () => {
    const { feature, ids, many } = await setUp(3);
    const { result, reply } = await many.send({ deviceIds: ids, type: "restart-app", payload: { appId: "app_1" }, priority: 7 });
    expect(result.counts).toEqual({ created: 3, replayed: 0, refused: 0 });
    expect(reply.replayed).toBeUndefined();
    expect(result.items.map(({ deviceId, error }) => [deviceId, error])).toEqual(ids.map((id) => [id, null]));
    const alone = await many.queue({ type: "restart-app", payload: { appId: "app_1" }, priority: 7 });
    for (const { deviceId, command } of result.items) {
      expect(await many.get(command?.commandId ?? "")).toEqual(command);
      const own = { commandId: command?.commandId, deviceId };
      const times = { issuedAt: command?.issuedAt, notBefore: command?.notBefore, expiresAt: command?.expiresAt, deadlineAt: command?.deadlineAt };
      expect(command).toEqual({ ...alone, ...own, ...times });
    }
    expect(feature.recorded.nudges.slice(0, 3).sort()).toEqual([...ids].sort());
    expect(feature.recorded.hints.slice(0, 3).map(({ event, subjectId }) => [event.type, subjectId])).toEqual(
      commandIdsOf(result).map((commandId) => ["command.queued", commandId]),
    );
  });

  test("stands in the answer once, at its first place, in the order of the request", async () => {
    const { tenantId, ids, many } = await setUp(3);
    const [a = "", b = "", c = ""] = ids;
    const { result } = await many.send({ deviceIds: [c, a, c, b, a] });
    expect(result.items.map(({ deviceId }) => deviceId)).toEqual([c, a, b]);
    expect([result.counts.created, await countOf(tenantId)]).toEqual([3, 3]);
  });

  test("has its own error, which is that of a call for it alone, and keeps no other from its command", async () => {
    const { feature, tenantId, devices, ids, many } = await setUp(4, { settings: { maxOpenPerDevice: 1 } });
    const [offline, full, reused] = devices as [never, never, never];
    await db.query("update devices set status = 'offline' where device_id = $1", [ids[0]]);
    await asOperator(feature, full).queue();
    await callerOf(feature, reused).queue({ payload: { other: true } }, "k");
    const foreign = await addDevice(db);
    const asked = [ids[0], ids[1], ids[2], ids[3], foreign.deviceId, "dev_unknown", "__proto__"] as string[];
    const { result } = await many.send({ deviceIds: asked, ifOffline: "fail" }, "k");
    expect(codesOf(result)).toEqual([
      ...["DEVICE_OFFLINE", "COMMAND_QUEUE_FULL", "IDEMPOTENCY_KEY_REUSED", null],
      ...["DEVICE_NOT_FOUND", "DEVICE_NOT_FOUND", "DEVICE_NOT_FOUND"],
    ]);
    expect(result.counts).toEqual({ created: 1, replayed: 0, refused: 6 });
    for (const [index, device] of [offline, full, reused].entries()) {
      const error = await callerOf(feature, device)
        .queue({ ifOffline: "fail" }, "k")
        .catch((thrown: unknown) => thrown);
      const { code, message, details = {}, retryAfter } = error as Record<string, unknown>;
      expect(result.items[index]?.error).toMatchObject({ code, message, details });
      expect(result.items[index]?.error?.retryAfter).toBe(retryAfter);
    }
    expect(result.items[1]?.error).toMatchObject({ retryable: true, retryAfter: 30, details: { deviceId: ids[1], scope: "device", limit: 1 } });
    const [, , , , theirs, unknown] = result.items.map(({ deviceId, error }) => JSON.stringify(error).replaceAll(deviceId, "ID"));
    expect(theirs).toBe(unknown);
    expect(await countOf(foreign.tenantId)).toBe(0);
    expect(await countOf(tenantId)).toBe(3);
  });

  test("counts against the tenant's limit, which the call fills and does not pass", async () => {
    const { tenantId, ids, many } = await setUp(8, { settings: { maxOpenPerTenant: 5 } });
    const { result } = await many.send({ deviceIds: ids });
    expect(result.counts).toEqual({ created: 5, replayed: 0, refused: 3 });
    expect(result.items.slice(5).map(({ error }) => error?.details)).toEqual(ids.slice(5).map((deviceId) => ({ deviceId, scope: "tenant", limit: 5 })));
    expect(await countOf(tenantId)).toBe(5);
  });
});

describe("an idempotency key", () => {
  test("gives a repeat the same commands, whatever has become of them since", async () => {
    const { tenantId, ids, many } = await setUp(3);
    const first = await many.send({ deviceIds: ids }, "k");
    await many.cancel(commandIdsOf(first.result)[0] ?? "");
    const again = await many.send({ deviceIds: ids, idempotencyKey: "k" });
    expect(again.result.items).toEqual(first.result.items);
    expect(again.result.counts).toEqual({ created: 0, replayed: 3, refused: 0 });
    expect([again.reply.replayed, await countOf(tenantId)]).toEqual([true, 3]);
  });

  test("lets a repeat complete what an earlier call was refused", async () => {
    const { ids, many } = await setUp(3);
    await db.query("update devices set status = 'offline' where device_id = $1", [ids[1]]);
    const first = await many.send({ deviceIds: ids, ifOffline: "fail" }, "k");
    await db.query("update devices set status = 'online' where device_id = $1", [ids[1]]);
    const again = await many.send({ deviceIds: ids, ifOffline: "fail" }, "k");
    expect([first.result.counts, again.result.counts]).toEqual([
      { created: 2, replayed: 0, refused: 1 },
      { created: 1, replayed: 2, refused: 0 },
    ]);
    expect(again.reply.replayed).toBeUndefined();
    for (const at of [0, 2]) expect(again.result.items[at]).toEqual(first.result.items[at]);
  });

  test("means the same in a call for one device and in a call for many", async () => {
    const { feature, devices, ids, many } = await setUp(3);
    const alone = await callerOf(feature, devices[1] as never).queue({ payload: { b: [1], a: { d: 1, c: "x" } } }, "k");
    const { result } = await many.send({ deviceIds: ids, payload: { a: { c: "x", d: 1 }, b: [1] } }, "k");
    expect([result.items[1]?.command, result.counts]).toEqual([alone, { created: 2, replayed: 1, refused: 0 }]);
    const after = await callerOf(feature, devices[2] as never).run("queue", { deviceId: ids[2], type: "echo", payload: { b: [1], a: { d: 1, c: "x" } } }, "k");
    expect([after.result, after.reply.replayed]).toEqual([result.items[2]?.command, true]);
  });

  test("with another request, or of another caller, replays nothing", async () => {
    const { feature, devices, ids, many } = await setUp(2);
    await many.send({ deviceIds: ids }, "k");
    expect(codesOf((await many.send({ deviceIds: ids, priority: 6 }, "k")).result)).toEqual(["IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_REUSED"]);
    const other = callerOf(feature, devices[0] as never, as("admin"));
    expect((await other.send({ deviceIds: ids }, "k")).result.counts.created).toBe(2);
  });

  test("makes one command per device of 16 equal calls at the same moment on two nodes", async () => {
    const { feature, tenantId, devices, ids, many } = await setUp(20);
    const other = callerOf(createCommandsFeature(db, { nodeId: "node-b" }), devices[0] as never);
    const answers = await Promise.all(Array.from({ length: 16 }, (_, index) => (index % 2 ? other : many).send({ deviceIds: ids }, "k")));
    expect(new Set(answers.map(({ result }) => JSON.stringify(result.items))).size).toBe(1);
    expect(answers.filter(({ reply }) => reply.replayed !== true)).toHaveLength(1);
    expect([await countOf(tenantId), feature.recorded.nudges.length <= 20]).toEqual([20, true]);
  });
});

describe("calls at the same time", () => {
  test("name the same devices in other orders and all succeed, beside calls for one device", async () => {
    const { tenantId, devices, ids, many } = await setUp(30);
    const other = callerOf(createCommandsFeature(db, { nodeId: "node-b" }), devices[0] as never);
    const turns = Array.from({ length: 8 }, (_, round) => [...ids.slice(round * 3), ...ids.slice(0, round * 3)]);
    const singles = Promise.all(turns.flatMap(() => [many.queue(), other.queue()]));
    const answers = await Promise.all(turns.flatMap((turn) => [many.send({ deviceIds: turn }), other.send({ deviceIds: turn.toReversed() })]));
    await singles;
    expect(answers.map(({ result }) => result.counts.created)).toEqual(answers.map(() => 30));
    expect(await countOf(tenantId)).toBe(16 * 30 + 16);
    const seqs = await db.query<{ n: number; last: number }>(
      "select count(*)::int as n, max(seq)::int as last from commands where tenant_id = $1 group by device_id",
      [tenantId],
    );
    expect(seqs.every(({ n, last }) => n === last)).toBe(true);
  });

  test("that wait for one device delay no single command of another", async () => {
    const { feature, tenantId, ids, many } = await setUp(2);
    const third = await addDevice(db, { tenantId });
    const waiting = await db.sqlTx(async (tx) => {
      await tx.query("select 1 from devices where device_id = $1 for no key update", [ids[1]]);
      const answer = many.send({ deviceIds: ids });
      await eventually(async () =>
        expect(await db.query("select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")).not.toEqual([]),
      );
      expect((await callerOf(feature, third).queue()).status).toBe("queued");
      return { answer };
    });
    expect((await waiting.answer).result.counts.created).toBe(2);
  });
});

describe("a call as a whole", () => {
  test("is refused for its type, its payload, its times or a permission of the type, and queues nothing", async () => {
    const { feature, tenantId, devices, ids, many } = await setUp(2);
    const refused = (input: object) => expect(many.send({ deviceIds: ids, ...input })).rejects;
    await refused({ type: "svc.rotate-secret" }).toMatchObject({ code: "COMMAND_TYPE_UNKNOWN" });
    await refused({ type: "restart-app", payload: { appId: 1 } }).toMatchObject({ code: "COMMAND_PAYLOAD_INVALID", details: { type: "restart-app" } });
    await refused({ ttlSeconds: 60, expiresAt: null }).toMatchObject({ code: "VALIDATION_FAILED" });
    await refused({ type: "shell", payload: { command: "id" } }).toMatchObject({ code: "FORBIDDEN", details: { requiredPermission: "device:shell" } });
    await expect(callerOf(feature, devices[0] as never).send({ deviceIds: ids, expiresAt: "2020-01-01T00:00:00Z" })).resolves.toMatchObject({
      result: { counts: { refused: 2 } },
    });
    expect(await countOf(tenantId)).toBe(0);
  });

  test("is refused if its payload, once for each device, has more than 4 MiB, and says for how many devices it would do", async () => {
    const { tenantId, many } = await setUp(1);
    const payload = { text: "x".repeat(65_536 - '{"text":""}'.length) };
    const deviceIds = Array.from({ length: 65 }, () => newId("dev"));
    await expect(many.send({ deviceIds, payload })).rejects.toMatchObject({
      code: "COMMAND_PAYLOAD_INVALID",
      details: { reason: "too_large_for_devices", bytes: 65_536, devices: 65, maxDevices: 64, maxBytes: 4_194_304 },
    });
    expect((await many.send({ deviceIds: deviceIds.slice(1), payload })).result.counts.refused).toBe(64);
    expect(await countOf(tenantId)).toBe(0);
  });

  test("queues nothing and tells nobody if one of its rows cannot be written", async () => {
    const { feature, tenantId, ids, many } = await setUp(3);
    await db.query(`create function refuse_device() returns trigger language plpgsql as $$ begin
      if new.device_id = '${ids[1]}' then raise exception 'refused'; end if; return new; end $$`);
    await db.query("create trigger refuse_device before insert on commands for each row execute function refuse_device()");
    await expect(many.send({ deviceIds: ids }, "k")).rejects.toThrow("refused");
    await db.query("drop trigger refuse_device on commands");
    expect([await countOf(tenantId), feature.recorded.nudges, feature.recorded.hints]).toEqual([0, [], []]);
    expect((await many.send({ deviceIds: ids }, "k")).result.counts.created).toBe(3);
  });
});

test("a repeat is as quick when PostgreSQL has planned its statements for empty tables", { timeout: 60_000 }, async () => {
  const url = await createTestDatabase();
  await withClient(url, async (client) => {
    await client.query("vacuum analyze");
    await client.query(`alter database "${new URL(url).pathname.slice(1)}" set plan_cache_mode = force_generic_plan`);
  });
  // One connection, which keeps its plans.
  const young = await openTestDb(url, 1);
  try {
    const feature = createCommandsFeature(young);
    const first = await addDevice(young);
    const many = callerOf(feature, first);
    await many.send({ deviceIds: [first.deviceId] }, "first");
    const others = Array.from({ length: 499 }, () => addDevice(young, { tenantId: first.tenantId }));
    const deviceIds = [first, ...(await Promise.all(others))].map(({ deviceId }) => deviceId);
    expect((await many.send({ deviceIds }, "k")).result.counts.created).toBe(500);
    // Beyond five seconds the gateway ends a statement.
    expect((await many.send({ deviceIds }, "k")).result.counts.replayed).toBe(500);
  } finally {
    await young.close();
  }
});

describe("a selector", () => {
  /** Many rows at once, because the test needs more than a thousand. */
  const addTagged = async (device: { readonly tenantId: TenantId; readonly deviceId: string }, count: number, tag: string): Promise<void> => {
    const sample = await sampleRow(db, "devices", { tenant_id: device.tenantId, tags: [tag], status: "online" });
    const own: Readonly<Record<string, string>> = { device_id: "id", agent_id: "'agt_' || id", fingerprint: "'fp_' || id" };
    const columns = Object.keys(sample).map((name) => own[name] ?? `r.${name}`);
    await db.query(
      `insert into devices (${Object.keys(sample).join(", ")}) select ${columns.join(", ")} from json_populate_record(null::devices, $1) r, unnest($2::text[]) id`,
      [JSON.stringify(sample), Array.from({ length: count }, () => newId("dev"))],
    );
  };

  test("chooses the tenant's devices that match all that it names, in the order of their ids", async () => {
    const { tenantId, ids, many } = await setUp(4);
    const elsewhere = await addDevice(db);
    await db.query("update devices set tags = '{site:x,ring:1}' where device_id = any($1)", [[ids[0], ids[2], elsewhere.deviceId]]);
    await db.query("update devices set tags = '{site:x}' where device_id = $1", [ids[1]]);
    const { result } = await many.send({ selector: { tags: ["site:x", "ring:1"] } }, "k");
    expect(result.items.map(({ deviceId }) => deviceId)).toEqual([ids[0], ids[2]].toSorted());
    // A repeat chooses again, and a device that matched before has its one command.
    await db.query("update devices set tags = '{site:x,ring:1}' where device_id = $1", [ids[3]]);
    expect((await many.send({ selector: { tags: ["ring:1"] } }, "k")).result.counts).toEqual({ created: 1, replayed: 2, refused: 0 });
    expect(await countOf(tenantId)).toBe(3);
  });

  test("that matches nothing queues nothing", async () => {
    const { feature, many } = await setUp(1);
    expect((await many.send({ selector: { tags: ["none"] } })).result).toEqual({ items: [], counts: { created: 0, replayed: 0, refused: 0 } });
    expect(feature.recorded.nudges).toEqual([]);
  });

  test("takes a thousand devices; more are refused with their number", async () => {
    const { tenantId, devices, many } = await setUp(1);
    await addTagged(devices[0] as never, 1_000, "all");
    expect((await many.send({ selector: { tags: ["all"] } }, "k")).result.counts).toEqual({ created: 1_000, replayed: 0, refused: 0 });
    expect((await many.send({ selector: { tags: ["all"] } }, "k")).result.counts).toEqual({ created: 0, replayed: 1_000, refused: 0 });
    await addTagged(devices[0] as never, 2, "all");
    await expect(many.send({ selector: { tags: ["all"] } })).rejects.toMatchObject({
      code: "VALIDATION_FAILED",
      details: { reason: "too_many_matches", matches: 1_002, issues: [{ path: "selector", message: expect.stringContaining("1002 devices match") }] },
    });
    expect(await countOf(tenantId)).toBe(1_000);
  });
});
