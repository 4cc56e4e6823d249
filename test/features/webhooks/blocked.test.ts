// Webhooks that point at private addresses: nothing is called, the delivery is over, and the tenant's security events tell of it.
import { Resolver } from "node:dns/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { startDnsServer } from "../../kit/net/dns-server.ts";
import { type CountingListener, startListener } from "../../kit/net/listeners.ts";
import { RECEIVER_HOST } from "../../kit/net/receiver.ts";
import { type HookOwner, type Hooks, openHooks } from "./kit.ts";

const PRIVATE = "127.0.0.1";
let hooks: Hooks;
let dns: Awaited<ReturnType<typeof startDnsServer>>;
let decoy: CountingListener;
let allowed: CountingListener;
/** By name; what is not here has the allowed address. */
const moved = new Set<string>();
beforeAll(async () => {
  dns = await startDnsServer((name) => ({ addresses: [moved.has(name) ? PRIVATE : RECEIVER_HOST] }));
  decoy = await startListener(PRIVATE);
  // On the same port, so that a call that follows the name reaches the decoy.
  allowed = await startListener(
    RECEIVER_HOST,
    (socket) => {
      let got = "";
      socket.on("data", (data) => {
        got += data.toString();
        if (got.endsWith("}")) socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      });
    },
    decoy.port,
  );
  const newResolver = () => {
    const resolver = new Resolver({ timeout: 500, tries: 2 });
    resolver.setServers([dns.server]);
    return resolver;
  };
  hooks = await openHooks({}, { settings: { outbound: { newResolver, systemLookup: null } } });
});
afterAll(async () => {
  await hooks.close();
  await Promise.all([decoy.close(), allowed.close(), dns.close()]);
});

const blockedOf = async (owner: HookOwner) => (await hooks.call(owner, "GET /security/events?type=webhook.ssrf_blocked")).data;
const told = (owner: HookOwner, entityId: string) =>
  eventually(async () => {
    const event = (await blockedOf(owner)).find(({ details }: { details: { entityId: string } }) => details.entityId === entityId);
    expect(event).toMatchObject({ type: "webhook.ssrf_blocked", severity: "high", details: { entityType: "webhook", entityId } });
    return event;
  });

test("a webhook to a private address is refused, by literal and by name, when made and when changed, and each refusal is told to its tenant alone", async () => {
  const [owner, other] = [await hooks.newOwner(), await hooks.newOwner()];
  const wanted = (host: string) => ({ url: `http://${host}:${decoy.port}/hook`, events: ["fleet.*"] });
  moved.add("private.example");
  for (const host of [PRIVATE, "2130706433", "private.example"])
    expect((await hooks.call(owner, "POST /webhooks", wanted(host))).error).toMatchObject({ code: "WEBHOOK_URL_NOT_ALLOWED" });
  for (const host of [PRIVATE, "private.example"]) await told(owner, host);

  const changing = await hooks.newOwner();
  const { webhookId } = await hooks.subscribe(changing);
  expect((await hooks.call(changing, `PATCH /webhooks/${webhookId}`, { url: wanted(PRIVATE).url })).error.code).toBe("WEBHOOK_URL_NOT_ALLOWED");
  await told(changing, PRIVATE);
  expect(await blockedOf(other)).toEqual([]);
  expect(decoy.connections()).toBe(0);
});

test("a name that turns private after the webhook was made ends the delivery as blocked without a connection, and is told", async () => {
  const owner = await hooks.newOwner();
  const url = `http://turning.example:${decoy.port}/hook`;
  const { webhookId } = await hooks.subscribe(owner, { url });
  const statusOf = async () => (await hooks.deliveries(owner, webhookId))[0]?.status;
  await hooks.makeFleet(owner, "before");
  await eventually(async () => expect(await statusOf()).toBe("succeeded"));
  const reached = allowed.connections();
  expect(reached).toBeGreaterThan(0);
  expect(await blockedOf(owner)).toEqual([]);

  moved.add("turning.example");
  await hooks.makeFleet(owner, "after");
  await eventually(async () => expect(await statusOf()).toBe("blocked"));
  const [{ deliveryId }] = await hooks.deliveries(owner, webhookId);
  const { data } = await hooks.call(owner, `GET /webhooks/${webhookId}/deliveries/${deliveryId}`);
  expect(data).toMatchObject({
    ...{ nextAttemptAt: null, completedAt: expect.any(String), attemptCount: 1 },
    attempts: [{ statusCode: null, error: { code: "BLOCKED" }, ip: PRIVATE }],
  });
  expect((await told(owner, "turning.example")).details.reason).toEqual(expect.stringContaining(PRIVATE));
  expect((await hooks.call(owner, "GET /security/alerts?type=webhook.ssrf_blocked")).code).toBe(200);
  await eventually(async () => expect((await hooks.call(owner, "GET /security/alerts?type=webhook.ssrf_blocked")).data).toHaveLength(1));
  expect([decoy.connections(), allowed.connections()]).toEqual([0, reached]);
});

test("a test of a webhook whose name has turned private is logged as blocked, and is told", async () => {
  const owner = await hooks.newOwner();
  const { webhookId } = await hooks.subscribe(owner, { url: `http://tested.example:${decoy.port}/hook` });
  moved.add("tested.example");
  expect((await hooks.call(owner, `POST /webhooks/${webhookId}/test`)).data).toMatchObject({ statusCode: null, error: { code: "BLOCKED" } });
  expect(await hooks.deliveries(owner, webhookId)).toMatchObject([{ status: "blocked", nextAttemptAt: null }]);
  await told(owner, "tested.example");
  expect(decoy.connections()).toBe(0);
});
