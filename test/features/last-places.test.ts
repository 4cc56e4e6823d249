// The race for the last places under a limit: however many ask at once, as many get one as the limit allows.
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { winnersOf } from "../kit/gateway/races.ts";
import { type Answer, asBearer, startWorld, type World } from "../kit/gateway/world.ts";

const RACERS = 64;
const MOST = 5;

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", TENANTS_PER_USER: String(MOST) });
});
afterAll(() => world.close());

const race = async (attempt: (racer: number) => Promise<Answer>, refusal: string): Promise<void> => {
  const answers = await Promise.all(Array.from({ length: RACERS }, (_, racer) => attempt(racer)));
  expect(winnersOf(answers, refusal)).toBe(MOST);
};
const count = async (from: string, id: string): Promise<number> => (await world.sql.query(`select count(*)::int as n from ${from} = $1`, [id])).rows[0].n;

test("64 tenants at once leave their owner as many as one person may own", async () => {
  const userId = newId("usr");
  const as = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
  const slug = userId.toLowerCase().replace("_", "-");
  const create = (racer: number) => world.call(as, "POST", "/v1/tenants", { body: { name: "Racer", slug: `${slug}-${racer}`, userId } });
  await race(create, "TENANT_LIMIT_REACHED");
  expect(await count("tenants where owner_user_id", userId)).toBe(MOST);
});

test("64 API keys at once leave a tenant as many as its limit allows", async () => {
  const tenant = await world.tenant();
  const before = await count("api_keys where tenant_id", tenant.tenantId);
  const owner = await tenant.user("owner");
  await world.sql.query("update tenants set limit_overrides = $2 where tenant_id = $1", [tenant.tenantId, { apiKeys: before + MOST }]);
  await race((racer) => world.call(owner, "POST", "/v1/api-keys", { body: { name: `Key ${racer}` } }), "PLAN_LIMIT_EXCEEDED");
  expect(await count("api_keys where tenant_id", tenant.tenantId)).toBe(before + MOST);
});
