// Saved views: who sees and changes whose, how many there may be, and who learns of a change.
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { asBearer, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let operator: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off" }, { inProcess: true });
  tenant = await world.tenant();
  [owner, operator] = [await tenant.user("owner"), await tenant.user("operator")];
});
afterAll(() => world.close());

const FIELDS = { place: "devices", name: "Offline", search: "status=offline", shared: false };
const call = (as: Caller, route: string, body?: object) => {
  const [method = "", path = ""] = route.split(" ");
  return world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
};
const save = async (as: Caller, more: object = {}) => (await call(as, "POST /views", { ...FIELDS, ...more })).body.data;
const namesFor = async (as: Caller, query = "") => (await call(as, `GET /views${query}`)).body.data.map(({ name }: { name: string }) => name);
const eventsOf = async (viewId: string): Promise<readonly string[]> =>
  (await world.sql.query("select data ->> 'change' as change from outbox_events where subject_id = $1 order by position", [viewId])).rows.map(
    ({ change }) => change,
  );

test("a person sees their own views and shared ones, with who saved them, and nothing else", async () => {
  const [mine, shared] = [await save(owner, { name: "mine" }), await save(owner, { name: "for all", shared: true })];
  await save(operator, { name: "theirs", place: "apps" });
  expect(await namesFor(owner)).toEqual(["for all", "mine"]);
  expect(await namesFor(operator)).toEqual(["for all", "theirs"]);
  expect(await namesFor(operator, "?place=apps")).toEqual(["theirs"]);
  expect(await namesFor(await tenant.user("viewer"))).toEqual(["for all"]);
  expect((await call(operator, `GET /views/${shared.viewId}`)).body.data.actor).toMatchObject({ kind: "user", deleted: false });
  for (const [route, body] of [["GET"], ["PATCH", { name: "x" }], ["DELETE"]] as const)
    expect((await call(operator, `${route} /views/${mine.viewId}`, body)).body.code).toBe("VIEW_NOT_FOUND");
});

test("whoever may save views changes and deletes a shared one, but only who saved it takes it back", async () => {
  const { viewId } = await save(owner, { shared: true });
  const path = `/views/${viewId}`;
  expect((await call(await tenant.user("viewer"), `PATCH ${path}`, { name: "x" })).status).toBe(403);
  expect((await call(operator, `PATCH ${path}`, { name: "better", version: 1 })).body.data).toMatchObject({ name: "better", version: 2 });
  expect((await call(operator, `PATCH ${path}`, { name: "late", version: 1 })).body).toMatchObject({
    code: "VERSION_CONFLICT",
    details: { currentVersion: 2 },
  });
  expect((await call(operator, `PATCH ${path}`, { shared: false })).body).toMatchObject({ code: "FORBIDDEN", details: { reason: "view_of_another" } });
  expect((await call(owner, `PATCH ${path}`, { shared: false })).status).toBe(200);
  expect((await call(owner, `PATCH ${path}`, { shared: true })).status).toBe(200);
  expect((await call(operator, `DELETE ${path}`)).status).toBe(204);
  expect(await eventsOf(viewId)).toEqual(["created", "updated", "deleted", "created", "deleted"]);
});

test("a view that nobody shares tells nobody of itself", async () => {
  const { viewId } = await save(owner);
  await call(owner, `PATCH /views/${viewId}`, { name: "x" });
  await call(owner, `DELETE /views/${viewId}`);
  expect(await eventsOf(viewId)).toEqual([]);
});

test("a caller who is limited to some devices has no views: they may name devices of others", async () => {
  const own = await world.tenant();
  await save(await own.user("owner"), { shared: true, search: "tag=secret-site" });
  const { deviceId } = await own.device();
  const viewer = await own.user("viewer");
  expect(await namesFor(viewer)).toHaveLength(1);
  const { token } = await world.app.mint({ userId: "limited", tenantId: own.tenantId, role: "viewer", ttlSeconds: 600 });
  const limit = JSON.stringify({ deviceIds: [deviceId], tags: [], fleetIds: [] });
  await world.sql.query(
    "insert into memberships (member_id, tenant_id, user_id, role, selector) values ($1, $2, 'limited', 'viewer', $3) on conflict (tenant_id, user_id) do update set selector = $3",
    [newId("mem"), own.tenantId, limit],
  );
  expect((await call(asBearer(token), "GET /views")).status).toBe(403);
});

test("a person keeps 100 views at most, also when many are saved at once", async () => {
  const own = await world.tenant();
  const as = await own.user("owner");
  await world.sql.query(
    `insert into saved_views (view_id, tenant_id, place, name, search, shared, created_by, updated_at)
     select 'vw_' || md5($1 || n), $1, 'devices', 'v', '', false, $2, now() from generate_series(1, 98) n`,
    [own.tenantId, `user:${own.ownerId}`],
  );
  const answers = await Promise.all(Array.from({ length: 8 }, () => call(as, "POST /views", FIELDS)));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409, 409, 409]);
  expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({ code: "VIEW_LIMIT_REACHED", details: { limit: 100 } });
});

test.each([
  ["a place that is no word", { place: "../devices" }],
  ["no name", { name: "  " }],
  ["a name of 61 characters", { name: "x".repeat(61) }],
  ["a search of 2,001 characters", { search: "x".repeat(2_001) }],
  ["a search that leaves the query", { search: "a=1#hash" }],
])("%s is refused", async (_, wrong) => {
  expect((await call(owner, "POST /views", { ...FIELDS, ...wrong })).status).toBe(400);
});
