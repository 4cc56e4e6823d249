// How webhooks deliver: verifiable by others, in order per subject, without one endpoint delaying another, and until they are given up.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { CloudEvent, HTTP } from "cloudevents";
import { Webhook as Verifier } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Respond, status } from "../../kit/net/receiver.ts";
import { type HookOwner, type Hooks, namesIn, openHooks } from "./kit.ts";

let hooks: Hooks;
beforeAll(async () => {
  hooks = await openHooks({ SMTP_URL: "smtp://127.0.0.1:9", MAIL_FROM: "mooring@example.com" });
  hooks.receiver.respond((received, response) => (answers.get(received.path) ?? status(200))(received, response));
});
afterAll(() => hooks.close());

/** By path; 200 by default. */
const answers = new Map<string, Respond>();
const statusOf = async (owner: HookOwner, webhookId: string) => (await hooks.call(owner, `GET /webhooks/${webhookId}`)).data;
/** The only event that the receiver was told: it arrives at least once, so the same one again is no second. */
const toldAt = (path: string) =>
  eventually(() => {
    const [event, ...more] = hooks.receiver.at(path).map(({ body }) => JSON.parse(body));
    if (event === undefined) throw new Error("nothing arrived yet");
    expect(more.filter(({ id }) => id !== event.id)).toEqual([]);
    return event;
  });

describe.concurrent("a receiver", () => {
  test("can verify a delivery with the Python of docs/webhooks.md, also by the old secret while it is rotated", async () => {
    const owner = await hooks.newOwner();
    const { path, webhookId } = await hooks.subscribe(owner, { secret: "a-raw-secret-of-the-client" });
    await hooks.call(owner, `POST /webhooks/${webhookId}/rotate-secret`, { secret: `whsec_${Buffer.alloc(32, 9).toString("base64")}` });
    await hooks.makeFleet(owner, "küche");
    const [received] = await hooks.arrived(path, 1);
    const [, code] = /```python\n([\s\S]*?)```/.exec(await readFile("docs/webhooks.md", "utf8")) ?? [];
    const program = `${code}
import sys, json
given = json.loads(sys.argv[1])
body = given["body"].encode()
for secret in given["secrets"]:
    print(is_genuine(secret, given["headers"], body), is_genuine(secret, given["headers"], body + b" "))
`;
    const secrets = ["a-raw-secret-of-the-client", `whsec_${Buffer.alloc(32, 9).toString("base64")}`, "another-secret-altogether"];
    const { stdout } = await promisify(execFile)("python3", ["-c", program, JSON.stringify({ ...received, secrets })]);
    expect(stdout.trim().split("\n")).toEqual(["True False", "True False", "False False"]);
  });

  test("verifies by Standard Webhooks with the old and the new secret during the grace, and by the new one alone after it", async () => {
    const owner = await hooks.newOwner();
    const { path, webhookId, secret: old } = await hooks.subscribe(owner);
    const { data } = await hooks.call(owner, `POST /webhooks/${webhookId}/rotate-secret`, { graceSeconds: 60 });
    await hooks.makeFleet(owner);
    const [during] = await hooks.arrived(path, 1);
    for (const secret of [old, data.secret]) new Verifier(secret).verify(during?.body ?? "", during?.headers as Record<string, string>);
    await hooks.world.sql.query("update webhooks set previous_secret_until = now() - interval '1 second' where webhook_id = $1", [webhookId]);
    // The node reads the endpoint's row at least once a second.
    await eventually(async () => {
      const count = hooks.receiver.at(path).length;
      await hooks.makeFleet(owner);
      const last = (await hooks.arrived(path, count + 1)).at(-1);
      expect(() => new Verifier(old).verify(last?.body ?? "", last?.headers as Record<string, string>)).toThrow();
      new Verifier(data.secret).verify(last?.body ?? "", last?.headers as Record<string, string>);
    });
  });

  test("gets CloudEvents in structured mode if it wants them", async () => {
    const owner = await hooks.newOwner();
    const { path } = await hooks.subscribe(owner, { format: "cloudevents" });
    const fleetId = await hooks.makeFleet(owner);
    const [received] = await hooks.arrived(path, 1);
    const event = HTTP.toEvent({ headers: received?.headers as Record<string, string>, body: received?.body ?? "" });
    if (!(event instanceof CloudEvent)) throw new Error("one event, not a batch");
    expect(event.validate()).toBe(true);
    expect(event).toMatchObject({ type: "fleet.created", subject: fleetId, source: `/tenants/${owner.tenant.tenantId}`, tenantid: owner.tenant.tenantId });
    expect(event.id).toBe(received?.headers["webhook-id"]);
  });

  test("that hangs delays nobody else", async () => {
    const owner = await hooks.newOwner();
    const [slow, fast] = [await hooks.subscribe(owner), await hooks.subscribe(owner)];
    answers.set(slow.path, () => undefined);
    for (const name of ["1", "2", "3", "4", "5", "6"]) await hooks.makeFleet(owner, name);
    expect(await hooks.arrived(fast.path, 6, 3_000)).toHaveLength(6);
    expect(hooks.receiver.at(slow.path)).toHaveLength(4);
    await hooks.call(owner, `DELETE /webhooks/${slow.webhookId}`);
  });
});

describe.concurrent("order", () => {
  test("a later event of a subject waits for an earlier one that failed, and other subjects do not", async () => {
    const owner = await hooks.newOwner();
    const { path, webhookId } = await hooks.subscribe(owner);
    const first = await hooks.makeFleet(owner, "first");
    await hooks.arrived(path, 1);
    answers.set(path, ({ body }, response) => void response.writeHead(JSON.parse(body).data.name === "bad" ? 500 : 200).end());
    await hooks.rename(owner, first, "bad");
    await eventually(async () => expect((await hooks.deliveries(owner, webhookId))[0]).toMatchObject({ status: "retrying" }));
    for (const name of ["after", "last"]) await hooks.rename(owner, first, name);
    await hooks.makeFleet(owner, "other");
    await eventually(() => expect(namesIn(hooks.receiver.at(path))).toEqual(["first", "bad", "other"]));
    answers.delete(path);
    await hooks.hurry(webhookId);
    await eventually(() => expect(namesIn(hooks.receiver.at(path))).toEqual(["first", "bad", "other", "bad", "after", "last"]));
  });

  test("an event that cannot be delivered holds its subject back for an hour and no longer", async () => {
    const owner = await hooks.newOwner();
    const { path, webhookId } = await hooks.subscribe(owner);
    answers.set(path, ({ body }, response) => void response.writeHead(JSON.parse(body).data.name === "poison" ? 500 : 200).end());
    const fleetId = await hooks.makeFleet(owner, "poison");
    await eventually(async () => expect((await hooks.deliveries(owner, webhookId))[0]).toMatchObject({ status: "retrying" }));
    const { rows } = await hooks.world.sql.query(
      "select extract(epoch from holds_until - created_at)::int as held from webhook_deliveries where webhook_id = $1",
      [webhookId],
    );
    expect(rows).toEqual([{ held: 3_600 }]);
    await hooks.rename(owner, fleetId, "after");
    await hooks.world.sql.query(
      "update webhook_deliveries set holds_until = now() - interval '1 second', next_attempt_at = now() + interval '1 hour' where webhook_id = $1 and status = 'retrying'",
      [webhookId],
    );
    await eventually(() => expect(namesIn(hooks.receiver.at(path))).toContain("after"));
  });

  test("a burst of events of few subjects arrives complete and in order", async () => {
    const owner = await hooks.newOwner();
    const { path } = await hooks.subscribe(owner, { events: ["device.offline"], maxPerSecond: 50 });
    const { tenantId } = owner.tenant;
    await hooks.world.sql.query(
      `insert into outbox_events (event_id, tenant_id, type, subject_id, data)
       select 'evt_' || md5($1 || n), $1, 'device.offline', 'dev_' || n % 5, jsonb_build_object('name', n::text) from generate_series(1, 150) as n order by n`,
      [tenantId],
    );
    const received = await hooks.arrived(path, 150, 20_000);
    for (const subject of [0, 1, 2, 3, 4]) {
      const numbers = namesIn(received.filter(({ body }) => JSON.parse(body).subjectId === `dev_${subject}`)).map(Number);
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    }
    expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(150);
  });
});

describe.concurrent("a webhook", () => {
  test("whose receiver is gone is disabled at once, the others and the owners hear of it, and a replay sends what was missed", async () => {
    const owner = await hooks.newOwner();
    // An earlier event must not be the one that finds the receiver gone.
    const [gone, other] = [await hooks.subscribe(owner, { events: ["fleet.*"] }), await hooks.subscribe(owner, { events: ["webhook.*"] })];
    const since = new Date().toISOString();
    answers.set(gone.path, status(410));
    await hooks.makeFleet(owner, "gone");
    expect(await toldAt(other.path)).toMatchObject({ type: "webhook.disabled", data: { webhookId: gone.webhookId, reason: "gone" } });
    expect(await statusOf(owner, gone.webhookId)).toMatchObject({ status: "disabled", disabledReason: "gone" });
    const { rows } = await hooks.world.sql.query("select recipient from mails where tenant_id = $1", [owner.tenant.tenantId]);
    expect(rows).toEqual([{ recipient: expect.stringContaining(owner.tenant.ownerId.toLowerCase()) }]);
    await hooks.makeFleet(owner, "missed");
    const [{ deliveryId }] = await hooks.deliveries(owner, gone.webhookId);
    expect((await hooks.call(owner, `POST /webhooks/${gone.webhookId}/deliveries/${deliveryId}/redeliver`)).error.code).toBe("WEBHOOK_DISABLED");
    answers.delete(gone.path);
    await eventually(async () => {
      const { data } = await hooks.call(owner, `GET /events?types=fleet.*`);
      expect(data).toHaveLength(2);
    });
    const replay = { since, status: "missing", eventTypes: ["fleet.*"] };
    expect(await hooks.call(owner, `POST /webhooks/${gone.webhookId}/replay`, replay)).toMatchObject({ code: 201, data: { events: 1 } });
    await eventually(() => expect(namesIn(hooks.receiver.at(gone.path))).toEqual(["gone", "missed"]));
    expect(await hooks.call(owner, `POST /webhooks/${gone.webhookId}/replay`, { ...replay, status: "failed" })).toMatchObject({ data: { events: 1 } });
    await eventually(() => expect(namesIn(hooks.receiver.at(gone.path))).toEqual(["gone", "missed", "gone"]));
    expect(await statusOf(owner, gone.webhookId)).toMatchObject({ status: "active", disabledReason: null });
  });

  test("is failing after four failures, tells the others when it recovers, and is disabled after five days without a success", async () => {
    const owner = await hooks.newOwner();
    const [bad, other] = [await hooks.subscribe(owner), await hooks.subscribe(owner, { events: ["webhook.*"] })];
    answers.set(bad.path, status(500));
    for (const name of ["1", "2", "3", "4"]) await hooks.makeFleet(owner, name);
    await eventually(async () => expect(await statusOf(owner, bad.webhookId)).toMatchObject({ status: "failing", stats: { failure24h: 4 } }));
    answers.delete(bad.path);
    await hooks.hurry(bad.webhookId);
    expect(await toldAt(other.path)).toMatchObject({ type: "webhook.recovered", data: { webhookId: bad.webhookId } });
    await eventually(async () =>
      expect(await statusOf(owner, bad.webhookId)).toMatchObject({ status: "active", stats: { success24h: 4, failingSince: null } }),
    );
    await eventually(async () => {
      const { rows } = await hooks.world.sql.query("select holder from webhook_endpoints where webhook_id = $1", [bad.webhookId]);
      expect(rows).toEqual([{ holder: null }]);
    });
    answers.set(bad.path, status(500));
    await hooks.world.sql.query(
      "update webhook_endpoints set failing_since = now() - interval '120 hours 1 second', consecutive_failures = 9 where webhook_id = $1",
      [bad.webhookId],
    );
    await hooks.makeFleet(owner, "5");
    await eventually(async () => expect(await statusOf(owner, bad.webhookId)).toMatchObject({ status: "disabled", disabledReason: "consecutive_failures" }));
    await eventually(async () => expect((await hooks.deliveries(owner, bad.webhookId))[0]).toMatchObject({ status: "cancelled" }));
  });

  test("tells the others when no attempt of a delivery is left", async () => {
    const owner = await hooks.newOwner();
    const [bad, other] = [await hooks.subscribe(owner), await hooks.subscribe(owner, { events: ["webhook.delivery_exhausted"] })];
    answers.set(bad.path, status(500));
    await hooks.makeFleet(owner);
    await eventually(async () => expect((await hooks.deliveries(owner, bad.webhookId))[0]).toMatchObject({ status: "retrying" }));
    await hooks.world.sql.query("update webhook_deliveries set tries = 9 where webhook_id = $1", [bad.webhookId]);
    await hooks.hurry(bad.webhookId);
    const told = await toldAt(other.path);
    const [delivery] = await hooks.deliveries(owner, bad.webhookId);
    expect(delivery).toMatchObject({ status: "exhausted", nextAttemptAt: null });
    expect(told.data).toMatchObject({ webhookId: bad.webhookId, deliveryId: delivery.deliveryId, eventType: "fleet.created" });
    answers.delete(bad.path);
    expect(await hooks.call(owner, `POST /webhooks/${bad.webhookId}/deliveries/${delivery.deliveryId}/redeliver`)).toMatchObject({ code: 201 });
    await eventually(async () => expect((await hooks.deliveries(owner, bad.webhookId))[0]).toMatchObject({ status: "succeeded", attemptCount: 3 }));
  });

  test("that is tested gets the test alone, and the log keeps it", async () => {
    const owner = await hooks.newOwner();
    const [one, other] = [await hooks.subscribe(owner, { events: ["*"] }), await hooks.subscribe(owner, { events: ["*"] })];
    const { data } = await hooks.call(owner, `POST /webhooks/${one.webhookId}/test`, { eventType: "device.offline" });
    expect(data).toMatchObject({ statusCode: 200, error: null, response: { body: "status 200" } });
    expect(JSON.parse(hooks.receiver.at(one.path)[0]?.body ?? "")).toMatchObject({
      id: data.eventId,
      type: "webhook.test",
      data: { example: { type: "device.offline" } },
    });
    await hooks.makeFleet(owner);
    await Promise.all([hooks.arrived(one.path, 2), hooks.arrived(other.path, 1)]);
    expect(await hooks.deliveries(owner, one.webhookId)).toContainEqual(expect.objectContaining({ deliveryId: data.deliveryId, status: "succeeded" }));
    await eventually(async () => expect((await hooks.call(owner, `GET /events/${data.eventId}`)).data).toMatchObject({ type: "webhook.test" }));
  });

  test("64 at once at a limit of 5 leave 5", async () => {
    const owner = await hooks.newOwner({ unlimited: false });
    await hooks.world.sql.query("update tenants set limit_overrides = '{\"webhooks\": 5}', rate_limit_overrides = '{\"*\": null}' where tenant_id = $1", [
      owner.tenant.tenantId,
    ]);
    const codes = await Promise.all(
      Array.from(
        { length: 64 },
        async () => (await hooks.call(owner, "POST /webhooks", { url: hooks.receiver.url(hooks.newPath()), events: ["fleet.*"] })).code,
      ),
    );
    expect(codes.filter((code) => code === 201)).toHaveLength(5);
    expect((await hooks.call(owner, "GET /webhooks")).data).toHaveLength(5);
  });
});
