// Webhooks against a running node: what a tenant subscribes to arrives, signed, in order and once; other tenants see none of it.
import { Webhook as Verifier } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { type Receiver, startReceiver, status } from "../../kit/net/receiver.ts";

let world: World;
let receiver: Receiver;
beforeAll(async () => {
  [world, receiver] = await Promise.all([startWorld(), startReceiver()]);
});
afterEach(() => receiver.respond());
afterAll(() => Promise.all([world.close(), receiver.close()]));

interface Owner {
  readonly tenant: TestTenant;
  readonly as: Caller;
}
const newOwner = async (): Promise<Owner> => {
  const tenant = await world.tenant();
  return { tenant, as: await tenant.user("owner") };
};
let paths = 0;
const newPath = (): string => {
  paths += 1;
  return `/hook-${paths}`;
};
const call = async ({ as }: Owner, route: string, body?: object) => {
  const [method = "", path = ""] = route.split(" ");
  const { status: code, body: answer } = await world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
  return { code, data: answer?.data, error: answer?.error };
};
const subscribe = async (owner: Owner, more: object = {}) => {
  const path = newPath();
  const { data, code } = await call(owner, "POST /webhooks", { url: receiver.url(path), events: ["*"], ...more });
  expect(code).toBe(201);
  return { ...data, path };
};
/** Causes `fleet.created` and returns the fleet's id. */
const makeFleet = async (owner: Owner, name = "kiosks"): Promise<string> => (await call(owner, "POST /fleets", { name })).data.fleetId;
const arrived = (path: string, count: number) => eventually(() => expect(receiver.at(path)).toHaveLength(count));

describe("a subscription", () => {
  test("is created with exactly what the interface states, and its secret is shown to nobody again", async () => {
    const owner = await newOwner();
    const url = receiver.url(newPath());
    const { code, data } = await call(owner, "POST /webhooks", {
      url,
      events: ["device.offline", "deployment.failed"].slice(0, 1),
      secret: "my signing secret".replaceAll(" ", "-"),
    });
    expect(code).toBe(201);
    expect(data).toMatchObject({ url, events: ["device.offline"], status: "active", secretHint: "cret", warnings: ["WEAK_SECRET"] });
    expect([data.id, data.secret]).toEqual([data.webhookId, undefined]);
    const { data: shown } = await call(owner, `GET /webhooks/${data.webhookId}`);
    const { data: listed } = await call(owner, "GET /webhooks");
    const { rows } = await world.sql.query("select changes from audit_logs where tenant_id = $1", [owner.tenant.tenantId]);
    expect(JSON.stringify([shown, listed, rows])).not.toContain("my-signing-secret");
    expect(listed).toEqual([shown]);
  });

  test("gets a secret from the server if the caller sends none, once", async () => {
    const owner = await newOwner();
    const made = await subscribe(owner);
    expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(made.warnings).toEqual([]);
    expect((await call(owner, `GET /webhooks/${made.webhookId}`)).data.secret).toBeUndefined();
  });

  test("refuses addresses that are not public, unknown events, and what it has already", async () => {
    const owner = await newOwner();
    const { path } = await subscribe(owner, { events: ["fleet.created"] });
    const attempt = async (body: object) => (await call(owner, "POST /webhooks", { url: receiver.url(newPath()), events: ["*"], ...body })).error?.code;
    expect(await attempt({ url: "http://10.0.0.1/" })).toBe("WEBHOOK_URL_NOT_ALLOWED");
    expect(await attempt({ url: "ftp://example.com/" })).toBe("VALIDATION_FAILED");
    expect(await attempt({ events: ["device.exploded"] })).toBe("EVENT_TYPE_UNKNOWN");
    expect(await attempt({ url: receiver.url(path), events: ["fleet.created", "fleet.created"] })).toBe("WEBHOOK_ALREADY_EXISTS");
    expect(await attempt({ secret: "short" })).toBe("VALIDATION_FAILED");
    expect(await attempt({ headers: { "webhook-id": "x" } })).toBe("VALIDATION_FAILED");
  });

  test("of another tenant is unknown in every operation", async () => {
    const [owner, other] = await Promise.all([newOwner(), newOwner()]);
    const { webhookId } = await subscribe(owner);
    await call(owner, `POST /webhooks/${webhookId}/test`);
    const [{ deliveryId, eventId }] = (await call(owner, `GET /webhooks/${webhookId}/deliveries`)).data;
    const window = { since: "2026-01-01T00:00:00Z", status: "all" };
    for (const [route, body] of [
      [`GET /webhooks/${webhookId}`],
      [`PATCH /webhooks/${webhookId}`, { description: "mine" }],
      [`DELETE /webhooks/${webhookId}`],
      [`POST /webhooks/${webhookId}/rotate-secret`, {}],
      [`POST /webhooks/${webhookId}/test`, {}],
      [`POST /webhooks/${webhookId}/replay`, window],
      [`GET /webhooks/${webhookId}/deliveries`],
      [`GET /webhooks/${webhookId}/deliveries/${deliveryId}`],
      [`POST /webhooks/${webhookId}/deliveries/${deliveryId}/redeliver`],
    ] as const)
      expect((await call(other, route, body)).error, route).toMatchObject({ code: "WEBHOOK_NOT_FOUND" });
    const { webhookId: mine } = await subscribe(other);
    for (const route of [`GET /webhooks/${mine}/deliveries/${deliveryId}`, `POST /webhooks/${mine}/deliveries/${deliveryId}/redeliver`])
      expect((await call(other, route)).error, route).toMatchObject({ code: "DELIVERY_NOT_FOUND" });
    for (const route of [`GET /events/${eventId}`, `GET /events?after=${eventId}`])
      expect((await call(other, route)).error, route).toMatchObject({ code: "EVENT_NOT_FOUND" });
  });
});

describe("a delivery", () => {
  test("verifies with the library of Standard Webhooks, and carries the event as the log has it", async () => {
    const owner = await newOwner();
    const { path, secret, webhookId } = await subscribe(owner, { events: ["fleet.*"], headers: { Authorization: "Bearer of-the-receiver" } });
    const fleetId = await makeFleet(owner);
    await arrived(path, 1);
    const [{ headers, body }] = receiver.at(path) as [Receiver["received"][number]];
    const event = new Verifier(secret).verify(body, headers as Record<string, string>);
    expect(event).toMatchObject({ type: "fleet.created", tenantId: owner.tenant.tenantId, subjectId: fleetId, data: { fleetId, name: "kiosks" } });
    expect(headers).toMatchObject({
      "content-type": "application/json",
      authorization: "Bearer of-the-receiver",
      "x-svc-attempt": "1",
      "x-svc-event": "fleet.created",
    });
    const { id, sequence } = event as { id: string; sequence: number };
    expect((await call(owner, `GET /events/${id}`)).data).toMatchObject({ eventId: id, sequence, type: "fleet.created" });
    const delivery = await eventually(async () => {
      const { data } = await call(owner, `GET /webhooks/${webhookId}/deliveries?status=succeeded`);
      expect(data).toHaveLength(1);
      return data[0];
    });
    const { data: detail } = await call(owner, `GET /webhooks/${webhookId}/deliveries/${delivery.deliveryId}`);
    expect(detail.attempts).toMatchObject([{ number: 1, trigger: "scheduled", statusCode: 200, error: null, responseBody: "ok", ip: "127.0.0.2" }]);
    expect(detail.request).toMatchObject({ body, headers: { authorization: "***", "webhook-signature": "***", "webhook-id": id } });
  });

  test("goes only to webhooks that want the event", async () => {
    const owner = await newOwner();
    const [all, some, none] = [await subscribe(owner), await subscribe(owner, { events: ["fleet.created"] }), await subscribe(owner, { events: ["tenant.*"] })];
    await makeFleet(owner);
    await Promise.all([arrived(all.path, 1), arrived(some.path, 1)]);
    expect(receiver.at(none.path)).toEqual([]);
  });

  test("is tried again after a failure, with the same id and the same bytes", async () => {
    const owner = await newOwner();
    const { path, webhookId } = await subscribe(owner, { events: ["fleet.created"] });
    let failures = 0;
    receiver.respond((one, response) => {
      if (one.path !== path || failures > 0) return status(204)(one, response);
      failures += 1;
      return status(500)(one, response);
    });
    await makeFleet(owner);
    await arrived(path, 1);
    await eventually(async () =>
      expect((await call(owner, `GET /webhooks/${webhookId}/deliveries`)).data).toMatchObject([{ status: "retrying", attemptCount: 1 }]),
    );
    await arrived(path, 2);
    const [first, second] = receiver.at(path);
    expect([second?.body, second?.headers["webhook-id"], second?.headers["x-svc-attempt"]]).toEqual([first?.body, first?.headers["webhook-id"], "2"]);
  });
});
