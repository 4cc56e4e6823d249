// A tenant's life: suspended and reactivated by administrators, deleted by its owner after days in which it can be restored, and then gone from every table.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { insertRow, readForeignKeys } from "../../kit/gateway/rows.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { asBearer, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let operator: Caller;
beforeAll(async () => {
  // No job may take the rows of invented values for what it has to end.
  world = await startWorld({ RATE_LIMIT_STANDARD: "off" }, { settings: { withoutJobs: true } });
  operator = await world.operator();
});
afterAll(() => world.close());

const slugOf = async (tenantId: string): Promise<string> => (await world.sql.query("select slug from tenants where tenant_id = $1", [tenantId])).rows[0].slug;
const eventsOf = async (tenantId: string): Promise<readonly string[]> =>
  (await world.sql.query("select type from outbox_events where tenant_id = $1 and type like 'tenant.%' order by position", [tenantId])).rows.map(
    ({ type }) => type,
  );
const suspend = (tenantId: string, body: object = { reason: "unpaid" }) => world.call(operator, "POST", `/v1/admin/tenants/${tenantId}/suspend`, { body });
const reactivate = (tenantId: string) => world.call(operator, "POST", `/v1/admin/tenants/${tenantId}/reactivate`);
const opened = async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const rename = (body: object = { name: "New" }) => world.call(owner, "PATCH", `/v1/tenants/${tenant.tenantId}`, { body });
  const remove = (query: string) => world.call(owner, "DELETE", `/v1/tenants/${tenant.tenantId}?${query}`);
  const get = () => world.call(owner, "GET", `/v1/tenants/${tenant.tenantId}`);
  const restore = () => world.call(owner, "POST", `/v1/tenants/${tenant.tenantId}/restore`);
  return { ...tenant, owner, slug: await slugOf(tenant.tenantId), rename, remove, get, restore };
};

describe("suspension", () => {
  test("a suspended tenant can be read and not changed, its agents still report, and its members learn why", async () => {
    const { tenantId, owner, device, get, rename, apiKey } = await opened();
    const machine = await device();
    expect((await suspend(tenantId)).body.data).toMatchObject({ status: "suspended", statusReason: "unpaid" });
    expect((await get()).body.data).toMatchObject({ status: "suspended" });
    expect((await rename()).body).toMatchObject({ code: "TENANT_SUSPENDED", details: { status: "suspended", reason: "unpaid", since: expect.any(String) } });
    const order = { body: { type: "ping" } };
    for (const caller of [owner, apiKey])
      expect((await world.call(caller, "POST", `/v1/devices/${machine.deviceId}/commands`, order)).body.code).toBe("TENANT_SUSPENDED");
    expect((await world.call(machine.as, "POST", `/v1/devices/${machine.deviceId}/heartbeat`, { body: { cpu: 1 } })).status).toBe(200);
    expect((await reactivate(tenantId)).body.data).toMatchObject({ status: "active" });
    expect((await rename()).status).toBe(200);
    expect(await eventsOf(tenantId)).toEqual(["tenant.suspended", "tenant.reactivated", "tenant.updated"]);
  });

  test("a tenant is suspended and reactivated once, however many administrators ask at the same time", async () => {
    const { tenantId } = await opened();
    const answers = await Promise.all(Array.from({ length: 8 }, () => suspend(tenantId)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 409)]);
    const refused = answers.find(({ status }) => status === 409);
    expect(refused?.body).toMatchObject({ code: "INVALID_STATE_TRANSITION", details: { from: "suspended", to: "suspended", allowed: ["active"] } });
    await reactivate(tenantId);
    expect((await reactivate(tenantId)).body.code).toBe("INVALID_STATE_TRANSITION");
    expect(await eventsOf(tenantId)).toEqual(["tenant.suspended", "tenant.reactivated"]);
  });

  test("administrators find tenants by status, plan and a part of the name, taken literally", async () => {
    const { tenantId, rename, slug } = await opened();
    const name = `100%_${randomUUID()}`;
    await rename({ name });
    await suspend(tenantId);
    const list = async (query: Record<string, string>) =>
      (await world.call(operator, "GET", `/v1/admin/tenants?${new URLSearchParams(query)}`)).body.data.map((each: { tenantId: string }) => each.tenantId);
    expect(await list({ q: name.slice(0, 20) })).toEqual([tenantId]);
    expect(await list({ q: slug.slice(2), status: "suspended", plan: "starter" })).toEqual([tenantId]);
    expect(await list({ q: slug.slice(2), status: "active" })).toEqual([]);
    expect(await list({ q: "100_%" })).toEqual([]);
    expect((await world.call(operator, "GET", `/v1/admin/tenants/${tenantId}`)).body.data).toMatchObject({ tenantId, name, owner: expect.any(String) });
  });

  test.each(["", "   ", "x".repeat(501), "a\u0000b"])("the reason %j is refused", async (reason) => {
    const { tenantId } = await opened();
    expect((await suspend(tenantId, { reason })).status).toBe(400);
    expect((await suspend("ten_unknown")).body.code).toBe("TENANT_NOT_FOUND");
  });
});

/** What a sample row of these tables must say: a dispatch has its events, and each command has a state. */
const SAID: ReadonlyMap<string, object> = new Map<string, object>([
  ["outbox_dispatches", { last_sequence: 1_000, positions: [-1] }],
  ["command_queue", { status: "queued" }],
  ["commands", { status: "succeeded", finished_at: new Date() }],
]);

/** The relay empties it at any time. */
const RELAYED = "outbox_pending";

/** The log outlives its tenant; only its own retention deletes from it. */
const AUDIT = ["audit_logs", "audit_chains"];

describe("deletion", () => {
  test("the owner confirms with the slug and may restore; until then nothing changes", async () => {
    const { tenantId, slug, get, remove, restore, rename } = await opened();
    expect((await remove("confirm=another")).body).toMatchObject({ code: "VALIDATION_FAILED", details: { reason: "not_confirmed" } });
    expect((await get()).body.data.status).toBe("active");
    expect((await restore()).body.code).toBe("INVALID_STATE_TRANSITION");
    expect((await remove(`confirm=${slug}`)).status).toBe(204);
    const { status, deleteAfter } = (await get()).body.data;
    expect([status, Math.round((Date.parse(deleteAfter) - Date.now()) / 86_400_000)]).toEqual(["pending_deletion", 30]);
    expect((await rename()).body).toMatchObject({ code: "TENANT_SUSPENDED", details: { status: "pending_deletion" } });
    expect((await suspend(tenantId)).body.code).toBe("INVALID_STATE_TRANSITION");
    const restored = (await restore()).body.data;
    expect(restored).toMatchObject({ status: "active" });
    expect(restored).not.toHaveProperty("deleteAfter");
    expect((await rename()).status).toBe(200);
    expect(await eventsOf(tenantId)).toEqual(["tenant.deletion_scheduled", "tenant.restored", "tenant.updated"]);
  });

  test("a tenant with devices is deleted only by force", async () => {
    const { device, slug, remove, get } = await opened();
    await device();
    expect((await remove(`confirm=${slug}`)).body).toMatchObject({ code: "TENANT_NOT_EMPTY", details: { references: { devices: 1, apps: 0 } } });
    expect((await get()).body.data.status).toBe("active");
    expect((await remove(`confirm=${slug}&force=true`)).status).toBe(204);
  });

  test("after its days a tenant is gone from every table but its audit log, another tenant keeps its rows, and nobody gets in", async () => {
    const [mine, other] = [await opened(), await opened()];
    const machine = await mine.device();
    const tables = (
      await world.sql.query<{ name: string }>(
        "select table_name as name from information_schema.columns join information_schema.tables t using (table_schema, table_name) where table_schema = 'public' and t.table_type = 'BASE TABLE' and column_name = 'tenant_id' and table_name <> all($1) order by 1",
        [["tenants", RELAYED, ...AUDIT]],
      )
    ).rows.map(({ name }) => name);
    expect((await readForeignKeys(world.sql)).length).toBeGreaterThan(10);
    for (const { tenantId } of [mine, other])
      for (const table of tables) {
        await insertRow(world.sql, table, { tenant_id: tenantId, ...SAID.get(table) });
      }
    await mine.remove(`confirm=${mine.slug}&force=true`);
    await world.sql.query("update tenants set delete_after = now() - interval '1 second' where tenant_id = $1", [mine.tenantId]);
    await runJob(world, "tenants.purge");
    expect((await mine.get()).status).toBe(403);
    const count = async (tenantId: string) => {
      const counts = await Promise.all(
        tables.map(async (table) => Number((await world.sql.query(`select count(*) from ${table} where tenant_id = $1`, [tenantId])).rows[0].count)),
      );
      return Object.fromEntries(tables.map((table, index) => [table, counts[index]]));
    };
    await eventually(async () => {
      await runJob(world, "tenants.purge");
      expect(await count(mine.tenantId)).toEqual(Object.fromEntries(tables.map((table) => [table, 0])));
      expect((await world.sql.query("select 1 from tenants where tenant_id = $1", [mine.tenantId])).rows).toEqual([]);
    });
    for (const table of AUDIT) expect((await world.sql.query(`select 1 from ${table} where tenant_id = $1`, [mine.tenantId])).rowCount).toBeGreaterThan(0);
    expect(Object.entries(await count(other.tenantId)).filter(([, rows]) => rows === 0)).toEqual([]);
    expect((await world.call(machine.as, "GET", "/v1/agent/me")).status).toBe(401);
    expect((await mine.restore()).status).toBe(403);
  });

  test("the deletion is told before the rows go", async () => {
    const { tenantId, slug, remove } = await opened();
    await remove(`confirm=${slug}`);
    const told: string[] = [];
    await world.sql.query("update tenants set delete_after = now() - interval '1 second' where tenant_id = $1", [tenantId]);
    const job = world.app.jobs.find(({ name }) => name === "tenants.purge");
    await job?.run(new AbortController().signal);
    told.push(...(await eventsOf(tenantId)));
    expect(told).toEqual(["tenant.deletion_scheduled", "tenant.deleted"]);
  });
});

describe("slugs", () => {
  const change = ({ owner, tenantId }: { readonly owner: Caller } & Pick<TestTenant, "tenantId">, slug: string) =>
    world.call(owner, "PATCH", `/v1/tenants/${tenantId}`, { body: { slug } });

  test("a slug that was given up stays reserved for its tenant for 30 days", async () => {
    const [one, other] = [await opened(), await opened()];
    const renamed = `${one.slug}-b`;
    expect((await change(one, renamed)).status).toBe(200);
    expect((await change(other, one.slug)).body.code).toBe("TENANT_SLUG_TAKEN");
    const userId = `u-${randomUUID()}`;
    const newcomer = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
    const create = () => world.call(newcomer, "POST", "/v1/tenants", { body: { name: "N", slug: one.slug, userId } });
    expect((await create()).body.code).toBe("TENANT_SLUG_TAKEN");
    expect((await change(one, one.slug)).status).toBe(200);
    expect((await change(one, renamed)).status).toBe(200);
    const bootstrapped = await world.app.bootstrap({ name: "Again", slug: one.slug, userId: one.ownerId, unlimited: true });
    expect(bootstrapped.tenantId).toBe(one.tenantId);
    await world.sql.query("update slug_reservations set expires_at = now() - interval '1 second' where slug = $1", [one.slug]);
    expect((await create()).status).toBe(201);
  });

  test("of two tenants that race for a slug that a third gives up, none gets it", async () => {
    const [giver, ...takers] = await Promise.all(Array.from({ length: 5 }, opened));
    if (giver === undefined) throw new Error("five were opened");
    const answers = await Promise.all([change(giver, `${giver.slug}-c`), ...takers.map((taker) => change(taker, giver.slug))]);
    expect(answers.map(({ status }) => status)).toEqual([200, 409, 409, 409, 409]);
  });
});
