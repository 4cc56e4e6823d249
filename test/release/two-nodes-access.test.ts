// Two gateways on one database: whom one of them refuses from now on, the other refuses within five seconds too, open streams and sockets included.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { online } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { asBearer, asKey, type Caller, emailOf, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

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
const watch = async (world: World, as: Caller): Promise<{ readonly ended: Promise<string> }> => {
  const stream = await fetch(`${world.url}/trpc/live.watch?input={}`, { headers: { accept: "text/event-stream", ...as.headers("") } });
  expect(stream.status).toBe(200);
  return { ended: stream.text() };
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
    expect(await statusAt(a, as)).toBe(401);
    await eventually(async () => expect(await statusAt(b, as)).toBe(401), REFUSED_WITHIN_MS);
    for (const { ended } of streams) await withTimeout(ended, REFUSED_WITHIN_MS, "the stream did not end");
  }, 20_000);
});

test("a removed member is refused on both nodes, and the member's open streams end", async () => {
  const userId = newId("usr");
  const { token } = await a.app.mint({ userId, email: emailOf(userId), tenantId: tenant.tenantId, role: "operator", ttlSeconds: 600 });
  const as = asBearer(token);
  const streams = [await watch(a, as), await watch(b, as)];
  expect([await statusAt(a, as), await statusAt(b, as)]).toEqual([200, 200]);
  const { body } = await a.call(owner, "GET", "/v1/members?pageSize=100");
  const { memberId } = body.data.find((member: { userId: string }) => member.userId === userId);
  expect((await a.call(owner, "DELETE", `/v1/members/${memberId}`)).status).toBe(204);
  expect(await statusAt(a, as)).toBe(403);
  await eventually(async () => expect(await statusAt(b, as)).toBe(403), REFUSED_WITHIN_MS);
  for (const { ended } of streams) await withTimeout(ended, REFUSED_WITHIN_MS, "the stream did not end");
}, 20_000);

test("a suspended tenant changes nothing on either node, and its live streams and agent sockets end", async () => {
  const other = await a.tenant();
  const as = await other.user();
  const streams = [await watch(a, as), await watch(b, as)];
  const nodes = [a, b].map(({ url }) => ({ url: url.replace(/^http/, "ws"), clock: { now: () => new Date() } }));
  const sockets = await Promise.all(nodes.map(async (node) => online(node, await other.device())));
  const changeAt = async (world: World): Promise<string | null> =>
    (await world.call(as, "PATCH", `/v1/tenants/${other.tenantId}`, { body: { name: "still here" } })).body.code ?? null;
  expect([await changeAt(a), await changeAt(b)]).toEqual([null, null]);
  expect((await a.call(await a.operator(), "POST", `/v1/admin/tenants/${other.tenantId}/suspend`, { body: { reason: "unpaid" } })).status).toBe(200);
  expect(await changeAt(a)).toBe("TENANT_SUSPENDED");
  await eventually(async () => expect(await changeAt(b)).toBe("TENANT_SUSPENDED"), REFUSED_WITHIN_MS);
  for (const { ended } of streams) await withTimeout(ended, REFUSED_WITHIN_MS, "the stream did not end");
  for (const socket of sockets) expect((await socket.closed()).code).toBe(4503);
}, 30_000);

test("a key that is rotated with grace keeps working on both nodes, old and new", async () => {
  const { as, keyId } = await newKey();
  expect([await statusAt(a, as), await statusAt(b, as)]).toEqual([200, 200]);
  const { apiKey } = (await a.call(owner, "POST", `/v1/api-keys/${keyId}/rotate`, { body: { graceSeconds: 60 } })).body.data;
  const rotated = asKey(apiKey, tenant.tenantId);
  for (const world of [a, b]) expect([await statusAt(world, as), await statusAt(world, rotated)]).toEqual([200, 200]);
});
