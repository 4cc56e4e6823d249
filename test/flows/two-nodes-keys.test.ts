// Two gateways on one database: a key that one of them revokes or rotates is soon refused by the other too, its open streams included.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../kit/eventually.ts";
import { asKey, type Caller, startWorld, type TestTenant, type World } from "../kit/world.ts";

const REFUSED_WITHIN_MS = 5_000;

let a: World;
let b: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  a = await startWorld({ NODE_ID: "node-a", RATE_LIMIT_FAILED_AUTH: "off" });
  b = await startWorld({ NODE_ID: "node-b", RATE_LIMIT_FAILED_AUTH: "off" }, { beside: a });
  tenant = await a.tenant();
  owner = await tenant.user();
});
afterAll(async () => {
  await b.close();
  await a.close();
});

const newKey = async () => {
  const { apiKey, keyId } = (await a.call(owner, "POST", "/v1/api-keys", { body: { name: "k" } })).body.data;
  return { apiKey, keyId, as: asKey(apiKey, tenant.tenantId) };
};
const watch = async (world: World, as: Caller): Promise<{ readonly ended: Promise<number> }> => {
  const stream = await fetch(`${world.url}/trpc/live.watch?input={}`, { headers: { accept: "text/event-stream", ...as.headers("") } });
  expect(stream.status).toBe(200);
  return { ended: stream.text().then(() => performance.now()) };
};
const statusAt = async (world: World, as: Caller): Promise<number> => (await world.call(as, "GET", "/v1/devices")).status;

describe.each([
  ["revoked", (keyId: string) => a.call(owner, "DELETE", `/v1/api-keys/${keyId}`)],
  ["rotated without grace", (keyId: string) => a.call(owner, "POST", `/v1/api-keys/${keyId}/rotate`)],
])("a key that is %s on one node", (_, end) => {
  test("is refused there at once, and within five seconds on the other node with its open streams", async () => {
    const { as, keyId } = await newKey();
    const streams = [await watch(a, as), await watch(b, as)];
    // Both nodes hold the key in their caches.
    expect([await statusAt(a, as), await statusAt(b, as)]).toEqual([200, 200]);
    expect((await end(keyId)).status).toBeLessThan(300);
    const endedAt = performance.now();
    expect(await statusAt(a, as)).toBe(401);
    await eventually(async () => expect(await statusAt(b, as)).toBe(401), REFUSED_WITHIN_MS);
    for (const { ended } of streams) expect((await ended) - endedAt).toBeLessThan(REFUSED_WITHIN_MS);
  }, 20_000);
});

test("a key that is rotated with grace keeps working on both nodes, old and new", async () => {
  const { as, keyId } = await newKey();
  expect([await statusAt(a, as), await statusAt(b, as)]).toEqual([200, 200]);
  const { apiKey } = (await a.call(owner, "POST", `/v1/api-keys/${keyId}/rotate`, { body: { graceSeconds: 60 } })).body.data;
  const rotated = asKey(apiKey, tenant.tenantId);
  for (const world of [a, b]) expect([await statusAt(world, as), await statusAt(world, rotated)]).toEqual([200, 200]);
});
