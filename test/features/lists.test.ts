// Every list: cursors lose and repeat nothing while rows are added, belong to one query of one tenant, and sorting follows the contract.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { type Answer, type Caller, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const get = (path: string, as = owner): Promise<Answer> => world.call(as, "GET", `/v1${path}`);
const refusal = ({ status, body }: Answer) => [status, body.code, body.details?.reason ?? body.details?.issues?.[0]?.path];
const addDevices = async (of: TestTenant, as: Caller, count: number, change?: (n: number) => object): Promise<string[]> => {
  const { body } = await world.call(as, "POST", "/v1/devices/provision", { body: { count } });
  const ids = body.data.map(({ device_id: id }: { device_id: string }) => id);
  if (change !== undefined) await Promise.all(ids.map((id: string, n: number) => world.call(as, "PATCH", `/v1/devices/${id}`, { body: change(n) })));
  expect(of.tenantId).toBeTruthy();
  return ids;
};
const fresh = async (): Promise<{ of: TestTenant; as: Caller }> => {
  const of = await world.tenant();
  return { of, as: await of.user("owner") };
};

/** All pages from the first to the last, with something that happens between them. */
const walk = async (path: string, as: Caller, between: (page: number) => Promise<void> = async () => undefined) => {
  const rows: Record<string, string>[] = [];
  let cursor: string | null = "*";
  for (let page = 1; cursor !== null; page += 1) {
    const { status, body }: Answer = await get(`${path}${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`, as);
    expect(status, JSON.stringify(body)).toBe(200);
    rows.push(...body.data);
    cursor = body.meta.pagination.nextCursor;
    expect(body.meta.pagination.hasMore).toBe(cursor !== null);
    await between(page);
  }
  return rows;
};

describe("a cursor", () => {
  test.each(["-createdAt", "createdAt", "name", "-name", "status,-name", "agentVersion,-name"])(
    "sorted by %s shows every device once, also while devices are added",
    async (sort) => {
      const { of, as } = await fresh();
      // Two share each name, and some have none.
      const ids = await addDevices(of, as, 11, (n) => ({ name: n % 4 === 0 ? null : `n${n % 3}` }));
      await world.sql.query("update devices set agent_version = '1.' || right(device_id, 1) where device_id = any($1)", [ids.slice(2, 8)]);
      const shown = (await walk(`/devices?pageSize=3&sort=${sort}`, as, async () => void (await addDevices(of, as, 1)))).map(({ deviceId }) => deviceId);
      expect(new Set(shown).size).toBe(shown.length);
      expect(ids.filter((id) => !shown.includes(id))).toEqual([]);
    },
  );

  test("sorted by a field with nulls shows them last and the others in order", async () => {
    const { of, as } = await fresh();
    await addDevices(of, as, 6, (n) => ({ name: n < 2 ? null : `n${n % 3}` }));
    const names = async (sort: string) => (await walk(`/devices?pageSize=2&sort=${sort}`, as)).map(({ name }) => name ?? null);
    expect(await names("name")).toEqual(["n0", "n1", "n2", "n2", null, null]);
    expect(await names("-name")).toEqual(["n2", "n2", "n1", "n0", null, null]);
  });

  test.each(["/api-keys", "/pairing/enrollment-tokens"])("of %s shows every row once, and its links lead through all pages", async (path) => {
    const { as } = await fresh();
    const before = (await get(`${path}?pageSize=100`, as)).body.meta.pagination.total;
    for (let n = 0; n < 5; n += 1) await world.call(as, "POST", `/v1${path}`, { body: { name: `same ${n % 2}` } });
    expect(await walk(`${path}?pageSize=2&sort=name`, as)).toHaveLength(5 + before);
    const first = await get(`${path}?pageSize=2&cursor=*`, as);
    expect(first.headers.get("link")).toMatch(/cursor=\*>; rel="first", <.*cursor=[\w-]+>; rel="next"$/);
  });

  test("of the audit log shows every record once, oldest or newest first", async () => {
    const { as } = await fresh();
    for (let n = 0; n < 5; n += 1) await world.call(as, "POST", "/v1/api-keys", { body: { name: `k${n}` } });
    const sequences = (await walk("/audit-logs?pageSize=2&sort=sequence&action=apiKeys.create", as)).map(({ sequence }) => Number(sequence));
    expect(sequences).toHaveLength(5);
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
  });

  test("of the caller's tenants and of an administrator's list shows every tenant once", async () => {
    const operator = await world.operator();
    const mine = await world.tenant();
    expect(await walk("/tenants?pageSize=1", await mine.user("owner"))).toHaveLength(1);
    const all = (await walk("/admin/tenants?pageSize=2&sort=-statusSince,slug", operator)).map(({ tenantId }) => tenantId);
    expect(all).toContain(mine.tenantId);
    expect(new Set(all).size).toBe(all.length);
  });

  test("continues a list that began with pages", async () => {
    const { of, as } = await fresh();
    const ids = await addDevices(of, as, 4);
    const { body } = await get("/devices?page=1&pageSize=2", as);
    expect(body.meta.pagination).toMatchObject({ total: 4, page: 1, hasMore: true });
    const rest = await get(`/devices?cursor=${body.meta.pagination.nextCursor}`, as);
    expect([...body.data, ...rest.body.data].map(({ deviceId }) => deviceId)).toEqual([...ids].reverse());
    expect(rest.body.meta.pagination).toEqual({ nextCursor: null, pageSize: 20, limit: 20, hasMore: false, hasNext: false, hasPrev: true });
  });

  test("takes up to 500 at once, pages and offsets up to 100", async () => {
    const { of, as } = await fresh();
    await addDevices(of, as, 120);
    expect((await get("/devices?cursor=*&pageSize=500", as)).body.data).toHaveLength(120);
    expect((await get("/devices?cursor=*&limit=500", as)).body.data).toHaveLength(120);
    expect(refusal(await get("/devices?cursor=*&pageSize=501"))).toEqual([400, "VALIDATION_FAILED", "pageSize"]);
    expect(refusal(await get("/devices?pageSize=101"))).toEqual([400, "VALIDATION_FAILED", "pageSize"]);
    expect(refusal(await get("/devices?limit=101"))).toEqual([400, "VALIDATION_FAILED", "limit"]);
  });

  test.each(["page=1", "offset=0", "page=1&pageSize=5", "limit=5&offset=5"])("cannot be combined with %s", async (query) => {
    expect(refusal(await get(`/devices?cursor=*&${query}`))).toEqual([400, "VALIDATION_FAILED", "mixed_pagination"]);
  });

  test("of another list, sort, filter or tenant is refused", async () => {
    const { of, as } = await fresh();
    await addDevices(of, as, 3);
    const { nextCursor } = (await get("/devices?pageSize=1&sort=-createdAt", as)).body.meta.pagination;
    expect((await get(`/devices?cursor=${nextCursor}&pageSize=7`, as)).status).toBe(200);
    const other = await fresh();
    await addDevices(other.of, other.as, 3);
    const refused = [400, "VALIDATION_FAILED", "invalid_cursor"];
    for (const [path, caller] of [
      [`/devices?cursor=${nextCursor}&sort=createdAt`, as],
      [`/devices?cursor=${nextCursor}&tag=a`, as],
      [`/api-keys?cursor=${nextCursor}`, as],
      [`/commands?cursor=${nextCursor}`, as],
      [`/devices?cursor=${nextCursor}`, other.as],
    ] as const)
      expect(refusal(await get(path, caller)), path).toEqual(refused);
  });

  test("that nobody gave is refused, whatever it holds", async () => {
    const { nextCursor } = await (async () => {
      const { of, as } = await fresh();
      await addDevices(of, as, 2);
      const { pagination } = (await get("/devices?pageSize=1", as)).body.meta;
      const [binding, at, id] = JSON.parse(Buffer.from(pagination.nextCursor, "base64url").toString());
      const made = (...values: unknown[]) => Buffer.from(JSON.stringify([binding, ...values])).toString("base64url");
      for (const cursor of [
        ...[made(at), made(at, id, id), made(null, id), made(at, null), made(1, id), made(at, {}), made("0000-01-01T00:00:00.000Z", id)],
        ...[made("+020000-01-01T00:00:00.000Z", id), made("2026-13-01T00:00:00.000Z", id), made(at, "a\u0000b"), made(at, "\ud800"), made([at], id)],
      ])
        expect(refusal(await get(`/devices?cursor=${cursor}`, as)), cursor).toEqual([400, "VALIDATION_FAILED", "invalid_cursor"]);
      return pagination;
    })();
    expect(nextCursor).toBeTruthy();
    for (const cursor of ["**", "x", "e30", "W10", "null", Buffer.from('{"__proto__":1}').toString("base64url")])
      expect(refusal(await get(`/devices?cursor=${cursor}`)), cursor).toEqual([400, "VALIDATION_FAILED", "invalid_cursor"]);
    for (const cursor of ["", "%F0%9F%98%80", "a.b", "x".repeat(4_001)])
      expect(refusal(await get(`/devices?cursor=${cursor}`))).toEqual([400, "VALIDATION_FAILED", "cursor"]);
    expect(refusal(await get("/devices?cursor=%00"))).toEqual([400, "VALIDATION_FAILED", "unstorable"]);
  });

  test("works over tRPC in the same way", async () => {
    const { of, as } = await fresh();
    await addDevices(of, as, 3);
    const client = await of.trpc("owner");
    const first = await client.devices.list.query({ cursor: "*", pageSize: 2 });
    expect(first.total).toBeUndefined();
    const second = await client.devices.list.query({ cursor: first.nextCursor, pageSize: 2 });
    expect([first.items.length, second.items.length, second.nextCursor]).toEqual([2, 1, undefined]);
  });
});

describe("sorting", () => {
  test.each([
    "secret",
    "-",
    "",
    "name,name",
    "name,-name",
    "tenantId",
    "__proto__",
    "name;drop",
    "createdAt,name,status,agentVersion,platform,name",
    "lastSeen,name",
    "name,-lastSeen",
    "lastSeen,lastSeen",
  ])("by %s is refused", async (sort) => {
    expect(refusal(await get(`/devices?sort=${encodeURIComponent(sort)}`))).toEqual([400, "VALIDATION_FAILED", "sort"]);
  });

  test("decides between equal rows by id, so pages by number are complete too", async () => {
    const { of, as } = await fresh();
    const ids = await addDevices(of, as, 6);
    const pages = await Promise.all([1, 2, 3].map((page) => get(`/devices?sort=status&page=${page}&pageSize=2`, as)));
    expect(pages.flatMap(({ body }) => body.data.map(({ deviceId }: { deviceId: string }) => deviceId))).toEqual([...ids].sort());
  });
});

describe("sorting devices by lastSeen", () => {
  /** Seen 0, 1, 1 and 2 days ago, and two that were never seen; by the number of days, then by id. */
  const seen = async (as: Caller, of: TestTenant) => {
    const ids = await addDevices(of, as, 6, (n) => ({ name: n % 2 === 0 ? "even" : "odd", tags: [n < 3 ? "a" : "b"] }));
    for (const [n, days] of [2, 1, 1, 0].entries())
      await world.sql.query("update device_presence set last_seen_at = date_trunc('day', now()) - make_interval(days => $2) where device_id = $1", [
        ids[n],
        days,
      ]);
    return { ids, ascending: ids, descending: [3, 1, 2, 0, 4, 5].map((n) => ids[n]) };
  };
  const idsOf = ({ body }: Answer): string[] => body.data.map(({ deviceId }: { deviceId: string }) => deviceId);

  test("shows those that were never seen last, in pages, by offset and by cursor alike", async () => {
    const { of, as } = await fresh();
    const { ascending, descending } = await seen(as, of);
    for (const [sort, expected] of [
      ["lastSeen", ascending],
      ["-lastSeen", descending],
    ] as const) {
      const pages = await Promise.all([1, 2, 3, 4].map((page) => get(`/devices?sort=${sort}&page=${page}&pageSize=2`, as)));
      expect(pages.flatMap(idsOf), sort).toEqual(expected);
      expect(pages[0]?.body.meta.pagination).toMatchObject({ total: 6, totalPages: 3, hasMore: true });
      expect(idsOf(await get(`/hosts?sort=${sort}&offset=1&limit=3`, as)), sort).toEqual(expected.slice(1, 4));
      for (const size of [1, 2, 4, 6]) {
        const walked = (await walk(`/devices?sort=${sort}&pageSize=${size}`, as)).map(({ deviceId }) => deviceId);
        expect(walked, `${sort} by ${size}`).toEqual(expected);
      }
      const { items } = await (await of.trpc("owner")).devices.list.query({ sort });
      expect(items.map(({ deviceId }) => deviceId)).toEqual(expected);
    }
  });

  test("obeys every filter and counts the same devices", async () => {
    const { of, as } = await fresh();
    const { ids, ascending } = await seen(as, of);
    const deploymentId = (await get(`/devices/${ids[0]}`, as)).body.data.deploymentId;
    await world.sql.query("update devices set agent_version = '1.2', platform = 'linux', status = 'online' where device_id = any($1)", [ids.slice(1, 3)]);
    await world.sql.query("update device_presence set connectivity = 'polling' where device_id = $1", [ids[2]]);
    const [a, b, c, d, e, f] = ids;
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    for (const [filter, expected] of [
      ["tag=a", [a, b, c]],
      ["notTag=a", [d, e, f]],
      ["q=VEN", [a, c, e]],
      ["q=%25", []],
      ["status=online", [b, c]],
      ["platform=linux&notTag=b", [b, c]],
      ["agentVersion=1.2", [b, c]],
      ["connectivity=polling", [c]],
      [`seenBefore=${yesterday}`, [a, b, c]],
      [`createdAfter=${yesterday}`, ascending],
      [`createdBefore=${yesterday}`, []],
      [`deploymentId=${deploymentId}`, ascending],
      [`deploymentId=${newId("dep")}`, []],
    ] as const) {
      const answer = await get(`/devices?sort=lastSeen&${filter}`, as);
      expect([idsOf(answer), answer.body.meta.pagination.total], filter).toEqual([expected, expected.length]);
    }
  });

  test("shows a limited caller no more than the devices in reach, and no other tenant's", async () => {
    const { of, as } = await fresh();
    const { ids } = await seen(as, of);
    const other = await fresh();
    await seen(other.as, other.of);
    const limited = await of.user("viewer");
    await world.sql.query('update memberships set selector = \'{"deviceIds": [], "tags": ["a"]}\' where tenant_id = $1 and role = \'viewer\'', [of.tenantId]);
    const answer = await get("/devices?sort=-lastSeen", limited);
    expect([idsOf(answer), answer.body.meta.pagination.total]).toEqual([[ids[1], ids[2], ids[0]], 3]);
    expect((await walk("/devices?sort=lastSeen&pageSize=1", limited)).map(({ deviceId }) => deviceId)).toEqual(ids.slice(0, 3));
  });

  test("takes no cursor of another direction", async () => {
    const { of, as } = await fresh();
    await seen(as, of);
    const { nextCursor } = (await get("/devices?sort=lastSeen&pageSize=2", as)).body.meta.pagination;
    expect(refusal(await get(`/devices?sort=-lastSeen&cursor=${nextCursor}`, as))).toEqual([400, "VALIDATION_FAILED", "invalid_cursor"]);
  });
});

describe("a list of parts", () => {
  test("of devices shows the named fields and the id, with the filters, orders and cursors of the whole list", async () => {
    const { of, as } = await fresh();
    const [a, b, c] = await addDevices(of, as, 3, (n) => ({ name: `n${n}`, tags: ["a"] }));
    const { body } = await get("/devices/partial?fields=status,name,lastSeen,name&sort=name&pageSize=2&tag=a", as);
    expect(body.data).toEqual([
      { deviceId: a, name: "n0", status: "provisioning" },
      { deviceId: b, name: "n1", status: "provisioning" },
    ]);
    expect(body.meta.pagination).toMatchObject({ total: 3, totalPages: 2, hasMore: true });
    const rest = `cursor=${body.meta.pagination.nextCursor}&sort=name&tag=a`;
    expect((await get(`/devices/partial?fields=connection&${rest}`, as)).body.data).toEqual([{ deviceId: c, connection: { connectivity: "none", epoch: 0 } }]);
    expect((await get(`/devices?${rest}`, as)).body.data).toMatchObject([{ deviceId: c, tags: ["a"] }]);
    const { items } = await (await of.trpc("owner")).devices.listPartial.query({ fields: ["tags"], sort: "-lastSeen" });
    expect(items).toEqual([a, b, c].map((deviceId) => ({ deviceId, tags: ["a"] })));
  });

  test("of commands shows the named fields and the id", async () => {
    const { of, as } = await fresh();
    const [deviceId = ""] = await addDevices(of, as, 1, () => ({ name: "attic" }));
    const ids = await Promise.all(
      [1, 2, 3].map(async () => (await world.call(as, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } })).body.id),
    );
    const rows = await walk("/commands/partial?fields=deviceName,status,finishedAt&open=true&pageSize=2", as);
    expect(rows).toEqual(
      [...ids]
        .sort()
        .reverse()
        .map((commandId) => ({ commandId, deviceName: "attic", status: "queued", finishedAt: null })),
    );
    const { items } = await (await of.trpc("owner")).commands.listPartial.query({ fields: ["commandId"] });
    expect(items.map((item) => Object.keys(item))).toEqual([["commandId"], ["commandId"], ["commandId"]]);
  });

  test.each(["devices", "commands"])("of %s refuses unknown fields and names the known ones", async (list) => {
    for (const fields of ["secret", "status,tenant_id", "__proto__", "constructor", "status,", " status", "STATUS", "%00", "%F0%9F%98%80"])
      expect((await get(`/${list}/partial?fields=${fields}`)).status, fields).toBe(400);
    for (const query of ["", "?fields=", `?fields=${"status,".repeat(40)}status`]) expect(refusal(await get(`/${list}/partial${query}`))[2]).toBe("fields");
    const [issue] = (await get(`/${list}/partial?fields=status,secret`)).body.details.issues;
    expect([issue.path, issue.message]).toEqual(["fields[1]", expect.stringMatching(/one of .*"status"/)]);
  });
});

describe("names of actors", () => {
  test("stand beside the ids in keys and in the audit log; a removed member or another tenant's key has none", async () => {
    const { of, as } = await fresh();
    const { keyId } = (await world.call(as, "POST", "/v1/api-keys", { body: { name: "script" } })).body.data;
    await world.sql.query("update memberships set email = 'ada@example.com' where tenant_id = $1", [of.tenantId]);
    const id = `user:${of.ownerId}`;
    expect((await get(`/api-keys/${keyId}`, as)).body.data).toMatchObject({ createdBy: id, actor: { kind: "user", id, name: "ada@example.com" } });
    const foreign = (await world.call(owner, "POST", "/v1/api-keys", { body: { name: "secret name" } })).body.data.keyId;
    await world.sql.query("update api_keys set created_by = $2 where key_id = $1", [keyId, foreign]);
    expect((await get("/api-keys", as)).body.data.find((key: { keyId: string }) => key.keyId === keyId).actor).toEqual({
      kind: "apiKey",
      id: foreign,
      name: null,
      deleted: true,
    });
    const [log] = (await get("/audit-logs?action=apiKeys.create", as)).body.data;
    expect(log.actor).toMatchObject({ type: "user", id: of.ownerId, name: "ada@example.com" });
    expect((await get(`/audit-logs/${log.auditId}`, as)).body.data.actor.name).toBe("ada@example.com");
    await world.session(of.ownerId);
    await world.sql.query("update users set name = 'Ada Example' where user_id = $1", [of.ownerId]);
    expect((await get(`/audit-logs/${log.auditId}`, as)).body.data.actor.name).toBe("Ada Example");
    await world.sql.query("update users set name = null where user_id = $1", [of.ownerId]);
    await world.sql.query("update memberships set email = null where tenant_id = $1", [of.tenantId]);
    expect((await get(`/audit-logs/${log.auditId}`, as)).body.data.actor.name).toBeNull();
  });

  test("a device's change is an event with its name, its tags and what changed", async () => {
    const { of, as } = await fresh();
    const [id = ""] = await addDevices(of, as, 1);
    await world.call(as, "PATCH", `/v1/devices/${id}`, { body: { name: "attic", tags: ["a"], version: 1 } });
    await world.call(as, "PATCH", `/v1/devices/${id}`, { body: { name: "late", version: 1 } });
    const { rows } = await world.sql.query("select data from outbox_events where subject_id = $1 and type = 'device.changed'", [id]);
    expect(rows).toEqual([
      { data: { deviceId: id, name: "attic", tags: ["a"], deploymentId: expect.any(String), maintenance: null, changed: ["name", "tags"] } },
    ]);
  });
});

describe("filters of devices", () => {
  test("find parts of names, all tags, none of tags, versions, platforms, connections and times", async () => {
    const { of, as } = await fresh();
    const [a = "", b = "", c = "", d = ""] = await addDevices(of, as, 4);
    const change = (id: string, body: object) => world.call(as, "PATCH", `/v1/devices/${id}`, { body });
    await change(a, { name: "porto-CAM-010", tags: ["site:porto", "canary"] });
    await change(b, { name: "100%_cam", tags: ["site:porto"] });
    await change(c, { tags: ["canary"] });
    await world.sql.query("update devices set agent_version = '1.2.3', platform = 'linux', hostname = 'attic-cam' where device_id = $1", [c]);
    await world.sql.query("update device_presence set connectivity = 'realtime', session_id = 's', last_seen_at = now() where device_id = $1", [a]);
    await world.sql.query("update device_presence set connectivity = 'realtime', last_seen_at = now() - interval '2 days' where device_id = $1", [b]);
    await world.sql.query("update device_presence set connectivity = 'polling', last_seen_at = now() - interval '3 days' where device_id = $1", [c]);
    const found = async (query: string) => {
      const { status, body } = await get(`/devices?sort=createdAt&${query}`, as);
      expect([status, body.meta.pagination?.total], query).toEqual([200, body.data?.length]);
      return body.data.map(({ deviceId }: { deviceId: string }) => deviceId);
    };
    expect(await found("q=cam")).toEqual([a, b, c]);
    expect(await found("q=%25_")).toEqual([b]);
    expect(await found("tag=site:porto,canary")).toEqual([a]);
    expect(await found("notTag=canary")).toEqual([b, d]);
    expect(await found("tag=site:porto&notTag=canary")).toEqual([b]);
    expect(await found("agentVersion=1.2.3")).toEqual([c]);
    expect(await found("platform=linux")).toEqual([c]);
    expect(await found("connectivity=realtime")).toEqual([a]);
    expect(await found("connectivity=polling")).toEqual([c]);
    expect(await found("connectivity=none")).toEqual([b, d]);
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    expect(await found(`seenBefore=${yesterday}`)).toEqual([b, c]);
    expect(await found(`seenBefore=${yesterday}&connectivity=none&q=cam`)).toEqual([b]);
    expect(await found(`createdAfter=${yesterday}`)).toEqual([a, b, c, d]);
    expect(await found(`createdBefore=${yesterday}`)).toEqual([]);
    expect((await walk("/devices?q=cam&pageSize=1&connectivity=none&sort=-name", as)).map(({ deviceId }) => deviceId)).toEqual([b]);
  });

  test.each([
    "tag=",
    "tag=A",
    "tag=a&tag=b",
    "seenBefore=0000-01-01T00:00:00Z",
    "createdAfter=yesterday",
    "connectivity=maybe",
    "q=",
    "tags=a",
    "platform=%00",
  ])("refuse %s", async (query) => {
    expect((await get(`/devices?${query}`)).status).toBe(400);
  });

  test("a condition of presence that more than 10,000 devices meet is refused", async () => {
    const { of, as } = await fresh();
    await world.sql.query(
      `with fleet as (
         insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, secret, updated_at)
         select 'dev_' || $2 || n, tenant_id, deployment_id, 'agt_' || $2 || n, 'print_' || n, '\\x00', now() from deployments, generate_series(1, 10001) n
          where tenant_id = $1 returning device_id, tenant_id)
       insert into device_presence (device_id, tenant_id) select device_id, tenant_id from fleet`,
      [of.tenantId, newId("x").slice(2)],
    );
    // As autovacuum does: a session may still have a plan of when there were a few.
    await world.sql.query("analyze devices, device_presence");
    expect(refusal(await get("/devices?connectivity=none", as))).toEqual([400, "VALIDATION_FAILED", "too_many_matches"]);
    await world.sql.query("update device_presence set connectivity = 'polling' where device_id = (select min(device_id) from devices where tenant_id = $1)", [
      of.tenantId,
    ]);
    expect((await get("/devices?connectivity=none", as)).body.meta.pagination.total).toBe(10_000);
  });

  test("devices.summary counts by status, version, platform and tag", async () => {
    const { of, as } = await fresh();
    const ids = await addDevices(of, as, 3, (n) => ({ tags: n === 0 ? [] : n === 1 ? ["a"] : ["a", "b"] }));
    await world.sql.query("update devices set agent_version = '2.0', platform = 'linux' where device_id = $1", [ids[0]]);
    const counts = async (groupBy: string) => (await get(`/devices/summary?groupBy=${groupBy}`, as)).body.data;
    const version = expect.any(Number) as number;
    expect(await counts("status")).toEqual({ groupBy: "status", total: 3, groups: [{ value: "provisioning", count: 3 }], version });
    expect((await counts("tag")).groups).toEqual([
      { value: "a", count: 2 },
      { value: "b", count: 1 },
      { value: null, count: 1 },
    ]);
    expect((await counts("version")).groups).toEqual([
      { value: null, count: 2 },
      { value: "2.0", count: 1 },
    ]);
    expect((await counts("platform")).groups).toContainEqual({ value: "linux", count: 1 });
    expect((await get("/devices/summary?groupBy=secret", as)).status).toBe(400);
    expect((await get("/devices/summary", (await fresh()).as)).body.data).toEqual({ groupBy: "status", total: 0, groups: [], version });
  });

  test("devices.getMany leaves out what is unknown, removed or another tenant's", async () => {
    const { of, as } = await fresh();
    const [a = "", b = ""] = await addDevices(of, as, 2);
    await world.call(as, "DELETE", `/v1/devices/${b}`);
    const foreign = await tenant.device();
    const { body } = await get(`/devices/batch?ids=${[a, b, a, foreign.deviceId, newId("dev"), "x"].join(",")}`, as);
    expect(body.data.map(({ deviceId }: { deviceId: string }) => deviceId)).toEqual([a]);
    for (const ids of ["", Array.from({ length: 201 }, () => "x").join(",")]) expect((await get(`/devices/batch?ids=${ids}`, as)).status).toBe(400);
    expect((await get(`/devices/batch?ids=${Array.from({ length: 200 }, () => newId("dev")).join(",")}`, as)).body.data).toEqual([]);
  });
});
