// The catalogue as a tenant sees it (contract.apps): filters, pages, and what the tenant's plan allows.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AppTemplate } from "../../../protocol/index.ts";
import { type Caller, startWorld, type World } from "../../kit/gateway/world.ts";

let world: World;
let viewer: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" });
  viewer = await withPlan("free");
});
afterAll(() => world.close());

/** A viewer of a new tenant with this plan. */
const withPlan = async (plan: string, limitOverrides = {}): Promise<Caller> => {
  const tenant = await world.tenant();
  await world.sql.query("update tenants set plan = $2, limit_overrides = $3 where tenant_id = $1", [tenant.tenantId, plan, limitOverrides]);
  return tenant.user("viewer");
};
const read = (path: string, as = viewer) => world.call(as, "GET", `/v1/app-templates${path}`);
const listed = async (query: string, as = viewer): Promise<AppTemplate[]> => {
  const { status, body } = await read(`?pageSize=500${query}`, as);
  expect([status, body.code]).toEqual([200, undefined]);
  return body.data;
};
const idsOf = (templates: readonly AppTemplate[]): string[] => templates.map(({ id }) => id);

test("the pages of the list have every application once, in the order of their ids", async () => {
  const all = idsOf(await listed(""));
  expect(all).toEqual([...all].sort());
  const paged: string[] = [];
  for (let cursor: string | null = "*"; cursor !== null; ) {
    const { body } = await read(`?pageSize=7&cursor=${cursor}`);
    expect(body.data.length).toBeLessThanOrEqual(7);
    paged.push(...idsOf(body.data));
    cursor = body.meta.pagination.nextCursor;
  }
  expect(paged).toEqual(all);
});

test("a cursor of another filter is refused", async () => {
  const { body } = await read("?pageSize=1&category=media");
  const { status, body: refused } = await read(`?pageSize=1&category=news&cursor=${body.meta.pagination.nextCursor}`);
  expect([status, refused.code, refused.details.reason]).toEqual([400, "VALIDATION_FAILED", "invalid_cursor"]);
});

test("filters by category and by text, whatever its case", async () => {
  const media = await listed("&category=media");
  expect(idsOf(media)).toEqual(expect.arrayContaining(["jellyfin", "navidrome"]));
  for (const { categories } of media) expect(categories).toContain("media");
  expect(idsOf(await listed("&q=VAULTWARDEN"))).toEqual(["vaultwarden"]);
  expect(idsOf(await listed("&q=bitwarden"))).toEqual(["vaultwarden"]);
  expect(idsOf(await listed("&q=bitwarden&category=media"))).toEqual([]);
  expect((await read("?category=games")).status).toBe(400);
});

test("the tenant's plan decides what is available, and what it lacks names the plan that it needs", async () => {
  const starter = await withPlan("starter");
  const [free, paid] = [await listed("&available=false"), await listed("&available=false", starter)];
  expect(idsOf(free)).toEqual(expect.arrayContaining(["mattermost", "plausible"]));
  expect(idsOf(paid)).toContain("mattermost");
  expect(idsOf(paid)).not.toContain("plausible");
  for (const template of free) expect(template).toMatchObject({ available: false, requiredPlan: template.minPlan });
  const all = await listed("");
  expect(idsOf(await listed("&available=true"))).toEqual(idsOf(all.filter(({ minPlan }) => minPlan === "free")));
  expect(await listed("&available=false", await withPlan("business"))).toEqual([]);
});

test("a tenant without limits may install everything, whatever its plan", async () => {
  expect(await listed("&available=false", await withPlan("free", { "*": null }))).toEqual([]);
  expect(idsOf(await listed("&available=false", await withPlan("free", { apps: null })))).toContain("mattermost");
});

test("one application is returned with its configuration schema and its secrets, and without the plan if it is available", async () => {
  const { status, body } = await read("/key-value");
  expect(status).toBe(200);
  expect(body.data).toMatchObject({
    id: "key-value",
    kind: "process",
    available: true,
    configSchema: { type: "object", properties: { port: { type: "integer", default: 8_701 } }, required: [], additionalProperties: false },
    secrets: [{ name: "KV_TOKEN", required: true, generated: true }],
    ports: [{ name: "http", protocol: "tcp", config: "port", default: 8_701 }],
    volumes: ["data"],
    healthPath: "/health",
  });
  expect(body.data).not.toHaveProperty("requiredPlan");
  expect((await read("/mattermost")).body.data).toMatchObject({ kind: "compose", available: false, requiredPlan: "pro" });
});

test("an id that is none is not found, whatever its form", async () => {
  for (const id of ["unknown", "..%2Fkey-value", "Key-Value", "__proto__"]) {
    const { status, body } = await read(`/${id}`);
    expect([id, status, body.code]).toEqual([id, 404, "APP_TEMPLATE_NOT_FOUND"]);
  }
});
