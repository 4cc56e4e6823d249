// What a console reads of commands: all of a tenant, counts, some by their ids, types, and a timeline that needs no second call.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { listAllCommands } from "../../../server/features/commands/store/list.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { type Answer, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" });
});
afterAll(() => world.close());

interface Stage {
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly device: Device;
  get(path: string, as?: Caller): Promise<Answer>;
  queue(body?: object, as?: Caller): Promise<string>;
  ids(path: string): Promise<string[]>;
}
const stage = async (): Promise<Stage> => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const device = await tenant.device();
  const get: Stage["get"] = (path, as = owner) => world.call(as, "GET", `/v1${path}`);
  return {
    ...{ tenant, owner, device, get },
    queue: async (body = {}, as = owner) =>
      (await world.call(as, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping", ...body } })).body.data.commandId,
    ids: async (path) => {
      const { status, body } = await get(path);
      expect(status, JSON.stringify(body)).toBe(200);
      return body.data.map(({ commandId }: { commandId: string }) => commandId);
    },
  };
};
const finish = ({ device, ...rest }: Stage, commandId: string, status = "succeeded") =>
  rest.tenant && world.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status, output: { big: 1 } } });
const poll = ({ device }: Stage) => world.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands?limit=50`);

describe("the list of all commands", () => {
  test("shows open and ended ones newest first, with the names of device and creator, without payload and output", async () => {
    const at = await stage();
    await world.call(at.owner, "PATCH", `/v1/devices/${at.device.deviceId}`, { body: { name: "attic" } });
    const ids = [await at.queue(), await at.queue({}, at.tenant.apiKey), await at.queue()];
    await poll(at);
    await finish(at, ids[1] ?? "");
    const { body } = await at.get("/commands");
    expect(body.data.map(({ commandId }: { commandId: string }) => commandId)).toEqual([...ids].reverse());
    expect(body.data[1]).toMatchObject({
      status: "succeeded",
      deviceName: "attic",
      actor: { kind: "apiKey", name: expect.any(String), id: body.data[1].createdBy },
    });
    expect(body.data[0].actor).toMatchObject({ kind: "user", id: `user:${at.tenant.ownerId}` });
    expect(Object.keys(body.data[1])).not.toContain("payload");
    expect(Object.keys(body.data[1])).not.toContain("ack");
    expect(body.meta.pagination).toEqual({ nextCursor: null, pageSize: 20, limit: 20, hasMore: false, hasNext: false, hasPrev: false });
  });

  test("filters combine: states, type, creator, open, blocked and time", async () => {
    const at = await stage();
    const done = await at.queue();
    const failed = await at.queue({ type: "echo" });
    await poll(at);
    await finish(at, done);
    await finish(at, failed, "failed");
    const waiting = await at.queue({}, at.tenant.apiKey);
    const later = await at.queue({ notBefore: new Date(Date.now() + 3_600_000).toISOString() });
    expect(await at.ids("/commands?open=true")).toEqual([later, waiting]);
    expect(await at.ids("/commands?open=false")).toEqual([failed, done]);
    expect(await at.ids("/commands?blocked=true")).toEqual([waiting]);
    expect(await at.ids("/commands?blocked=false")).toEqual([later, failed, done]);
    expect(await at.ids("/commands?status=failed,succeeded")).toEqual([failed, done]);
    expect(await at.ids("/commands?status=queued,failed&type=echo")).toEqual([failed]);
    const { createdBy } = (await at.get(`/commands/${waiting}`)).body.data;
    expect(await at.ids(`/commands?createdBy=${createdBy}`)).toEqual([waiting]);
    expect(await at.ids(`/commands?since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
    expect(await at.ids("/commands?since=0001-01-01T00:00:00Z&open=true")).toEqual([later, waiting]);
    const ofDevice = `/devices/${at.device.deviceId}/commands`;
    expect(await at.ids(`${ofDevice}?status=failed,succeeded`)).toEqual([failed, done]);
    expect(await at.ids(`${ofDevice}?open=true&createdBy=${createdBy}`)).toEqual([waiting]);
    for (const query of [
      "status=done",
      "status=",
      "open=1",
      "page=1",
      "offset=0",
      "limit=5",
      "pageSize=501",
      "since=0000-01-01T00:00:00Z",
      "sort=type",
      "type=%00",
      "order=priority",
    ])
      expect((await at.get(`/commands?${query}`)).status, query).toBe(400);
  });

  test.each(["/commands", "device"])("%s is complete by cursor while commands are added and end", async (which) => {
    const at = await stage();
    const path = which === "device" ? `/devices/${at.device.deviceId}/commands` : which;
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) ids.unshift(await at.queue());
    await poll(at);
    const shown: string[] = [];
    for (let cursor: string | null = "*"; cursor !== null; ) {
      const { body }: Answer = await at.get(`${path}?pageSize=2&cursor=${cursor}`);
      shown.push(...body.data.map(({ commandId }: { commandId: string }) => commandId));
      cursor = body.meta.pagination.nextCursor;
      await at.queue();
      await finish(at, ids[3] ?? "");
    }
    expect(shown).toEqual(ids);
  });

  test("oldest first is complete by cursor too, and one device's commands can be asked for", async () => {
    const at = await stage();
    const other = await at.tenant.device();
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await at.queue());
    const elsewhere = (await world.call(at.owner, "POST", `/v1/devices/${other.deviceId}/commands`, { body: { type: "ping" } })).body.data.commandId;
    await poll(at);
    await finish(at, ids[1] ?? "");
    expect(await at.ids(`/commands?deviceId=${other.deviceId}`)).toEqual([elsewhere]);
    expect(await at.ids(`/commands?deviceId=${at.device.deviceId}&order=oldest&open=true`)).toEqual(ids.filter((id) => id !== ids[1]));
    const shown: string[] = [];
    for (let cursor: string | null = "*"; cursor !== null; ) {
      const { body }: Answer = await at.get(`/commands?order=oldest&pageSize=2&cursor=${cursor}`);
      shown.push(...body.data.map(({ commandId }: { commandId: string }) => commandId));
      cursor = body.meta.pagination.nextCursor;
    }
    expect(shown).toEqual([...ids, elsewhere]);
    const { nextCursor } = (await at.get("/commands?order=oldest&pageSize=1")).body.meta.pagination;
    expect((await at.get(`/commands?cursor=${nextCursor}`)).body.details.reason).toBe("invalid_cursor");
  });

  test("a cursor of a device's list is refused in another device's", async () => {
    const at = await stage();
    const other = await at.tenant.device();
    for (let n = 0; n < 2; n += 1) await at.queue();
    const { nextCursor } = (await at.get(`/devices/${at.device.deviceId}/commands?pageSize=1`)).body.meta.pagination;
    expect((await at.get(`/devices/${other.deviceId}/commands?cursor=${nextCursor}`)).body.details.reason).toBe("invalid_cursor");
  });

  test("shows nothing of another tenant", async () => {
    const [at, other] = [await stage(), await stage()];
    const foreign = await other.queue();
    expect(await at.ids("/commands")).toEqual([]);
    expect(await at.ids(`/commands/batch?ids=${foreign}`)).toEqual([]);
    expect((await at.get("/commands/summary")).body.data).toEqual({
      open: {},
      pastDeadline: 0,
      blocked: 0,
      endedLastDay: {},
      endedSince: null,
      version: expect.any(Number),
    });
  });
});

describe("summary, batch and types", () => {
  test("the summary counts open states, what is blocked or past its deadline, and what ended", async () => {
    const at = await stage();
    const [done = "", overdue = ""] = [await at.queue(), await at.queue()];
    await poll(at);
    await finish(at, done);
    await world.sql.query("update command_queue set deadline_at = now() - interval '1 second' where command_id = $1", [overdue]);
    await at.queue();
    const { body } = await at.get("/commands/summary");
    expect(body.data).toMatchObject({ blocked: expect.any(Number), endedLastDay: { succeeded: 1 } });
    const { open, pastDeadline } = body.data;
    expect(open.queued + (open.sent ?? 0)).toBe(2);
    expect(pastDeadline).toBeLessThanOrEqual(1);
  });

  test("getMany leaves out unknown ids and refuses more than 200", async () => {
    const at = await stage();
    const id = await at.queue();
    expect(await at.ids(`/commands/batch?ids=${id},cmd_unknown,${id}`)).toEqual([id]);
    expect((await at.get(`/commands/batch?ids=${Array.from({ length: 201 }, () => "x").join(",")}`)).status).toBe(400);
    expect((await at.get("/commands/batch")).status).toBe(400);
  });

  test("types describe what a caller may queue, with risk and schema, and what only the gateway orders", async () => {
    const at = await stage();
    const types = new Map<string, Record<string, unknown>>((await at.get("/commands/types")).body.data.map((each: { type: string }) => [each.type, each]));
    expect(types.get("ping")).toMatchObject({ risk: "none", orderedBy: "caller", permission: "device:command" });
    expect(types.get("shell")).toMatchObject({
      ...{ risk: "danger", permission: "device:shell", redeliverSafe: false },
      payload: { properties: { command: { type: "string", minLength: 1 } }, required: ["command"] },
    });
    expect(types.get("svc.rotate-secret")).toMatchObject({ orderedBy: "gateway" });
    const told = [...types.values()].map(({ type, summary, payload, output }) => [
      type,
      typeof summary,
      typeof payload,
      output !== null && typeof output === "object",
    ]);
    expect(told).toEqual([...types.keys()].map((type) => [type, "string", "object", true]));
    // It has rules of its own, but nobody can say what it gives back.
    expect(types.has("deploy")).toBe(false);
  });

  test("a timeline has the command, names, and what it waits for as fields", async () => {
    const at = await stage();
    const first = await at.queue({ lane: "app:x" });
    await poll(at);
    await world.call(at.device.as, "POST", `/v1/devices/${at.device.deviceId}/commands/${first}/ack`, { body: { status: "received" } });
    await world.call(at.owner, "PATCH", `/v1/devices/${at.device.deviceId}`, { body: { name: "attic" } });
    const { events } = (await at.get(`/commands/${first}/timeline`)).body.data;
    expect(events.at(-1)).toMatchObject({ to: "acknowledged", by: { kind: "agent", name: "attic" } });
    const second = await at.queue({ lane: "app:x" });
    const { data } = (await at.get(`/commands/${second}/timeline`)).body;
    expect(data.command).toMatchObject({ commandId: second, payload: {}, actor: { kind: "user" }, deviceName: "attic" });
    expect(data.events[0]).toMatchObject({ to: "queued", by: { kind: "user", id: data.events[0].actor } });
    expect(data.blockedBy).toMatchObject({
      ...{ kind: "lane", lane: "app:x", commandId: first, until: null },
      ahead: { commandId: first, type: "ping", status: "acknowledged" },
      deadlineAt: expect.any(String),
      explanation: expect.stringContaining(first),
    });
    const notBefore = new Date(Date.now() + 3_600_000).toISOString();
    const held = await at.queue({ notBefore });
    expect((await at.get(`/commands/${held}/timeline`)).body.data.blockedBy).toMatchObject({ kind: "window", until: notBefore });
  });
});

const HISTORY = 30_000;

test("the newest page of a tenant's history reads a page of it, however long it is", async () => {
  const db: Db = await openDb({ clock: systemClock, url: world.databaseUrl, poolSize: 1, log: silentLog });
  const [at, other] = [await stage(), await stage()];
  for (const [n, { tenant, device }] of [at, other].entries())
    await db.query(
      `insert into commands (command_id, tenant_id, device_id, seq, lane, priority, type, payload, requires_ack, available_at, max_attempts, redeliver_safe, exec_timeout_s,
         created_by, issued_at, status, finished_at)
       select 'cmd_' || lpad(n::text, 8, '0') || $4, $1, $2, -n, 'old', 5, 'ping', '{}', true, now(), 10, true, 60, 'test', now(), 'succeeded', now() from generate_series(1, $3::int) n`,
      [tenant.tenantId, device.deviceId, HISTORY, String(n)],
    );
  await db.query("analyze commands");
  const read = async (): Promise<number> => {
    await db.query("select pg_stat_force_next_flush()");
    const [row] = await db.query<{ read: number }>(
      "select sum(idx_tup_read + coalesce(idx_tup_fetch, 0))::int8 as read from pg_stat_user_indexes where relname = 'commands'",
    );
    return row?.read ?? 0;
  };
  const before = await read();
  for (let n = 0; n < 10; n += 1) expect((await listAllCommands(db, at.tenant, {}, { after: null, limit: 21 })).rows).toHaveLength(21);
  expect((await read()) - before).toBeLessThan(HISTORY / 2);
  await db.close();
});
