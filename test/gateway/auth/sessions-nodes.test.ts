// Two nodes that cannot hear each other: a session that ends on one is refused by the other within five seconds, with all that it opened there.
import { afterAll, beforeAll, expect, test } from "vitest";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { asBearer, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { openStream } from "../../kit/net/event-stream.ts";

const FREE = { RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_FAILED_AUTH: "off" };
const REFUSED_WITHIN_MS = 5_000;

let a: World;
let b: World;
let tenant: TestTenant;
beforeAll(async () => {
  a = await startWorld(FREE);
  b = await startWorld(FREE, { beside: a });
  tenant = await a.tenant();
});
afterAll(async () => {
  await b.close();
  await a.close();
});

test("a session works on every node, whichever it began on", async () => {
  const { as } = await a.session(tenant.ownerId, tenant.tenantId);
  for (const world of [a, b]) expect((await world.call(as, "GET", "/v1/devices")).status).toBe(200);
});

test.each([["DELETE", "/v1/account/sessions"] as const, ["POST", "/v1/auth/logout"] as const])(
  "after %s %s on one node the other refuses the session, its access token and its streams within 5 s",
  async (method, path) => {
    const session = await a.session(tenant.ownerId, tenant.tenantId);
    const other = await a.session(tenant.ownerId, tenant.tenantId);
    const { accessToken } = (await b.call(session.as, "POST", "/v1/auth/token")).body.data;
    const { ticket } = (await b.call(session.as, "POST", "/v1/auth/stream-ticket")).body.data;
    const streams = await Promise.all([
      openStream(b.url, { headers: { cookie: session.cookie } }),
      openStream(b.url, { ticket }),
      openStream(b.url, { headers: { authorization: `Bearer ${accessToken}` } }),
    ]);
    // Both are in the caches of the other node.
    for (const as of [session.as, asBearer(accessToken)]) expect((await b.call(as, "GET", "/v1/devices")).status).toBe(200);
    expect((await a.call(path.endsWith("logout") ? session.as : other.as, method, path)).status).toBe(200);
    for (const as of [session.as, asBearer(accessToken)])
      await eventually(async () => {
        const { status, body } = await b.call(as, "GET", "/v1/devices");
        expect([status, body.details?.reason]).toEqual([401, "session_ended"]);
      }, REFUSED_WITHIN_MS);
    for (const { ended } of streams) expect(await withTimeout(ended, REFUSED_WITHIN_MS, "the stream did not end")).toContain("session_ended");
  },
);
