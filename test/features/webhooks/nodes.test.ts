// Webhooks on several nodes: they share the endpoints, and one takes over from another that has died.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { createRunner } from "../../../server/features/webhooks/delivery/endpoint-runner.ts";
import { settle } from "../../../server/features/webhooks/delivery/results.ts";
import { delayAfter, isGivenUp } from "../../../server/features/webhooks/delivery/retry-schedule.ts";
import { type DueRow, writeResults } from "../../../server/features/webhooks/store/work.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { namedStatements } from "../../kit/stores/database.ts";
import { type Hooks, openHooks } from "./kit.ts";

/** Twelve endpoints take one node longer than the other one's job pauses. */
const TIGHT = { claimChunk: 2, claimPauseMs: 400 };
let hooks: Hooks;
let second: World;
let db: Db;
beforeAll(async () => {
  hooks = await openHooks({}, { settings: { webhooks: TIGHT } });
  const { databaseUrl, dataDir } = hooks.world;
  second = await startWorld({}, { beside: { databaseUrl, dataDir }, settings: { webhooks: TIGHT } });
  db = await openDb({ clock: systemClock, url: databaseUrl, poolSize: 1, log: silentLog, namedStatements });
});
afterAll(async () => {
  await db.close();
  await second.close();
  await hooks.close();
});

const burst = (tenantId: string, count: number) =>
  hooks.world.sql.query(
    `insert into outbox_events (event_id, tenant_id, type, subject_id, data)
     select 'evt_' || md5($1 || n || clock_timestamp()), $1, 'device.offline', 'dev_' || n, '{}' from generate_series(1, $2::int) as n`,
    [tenantId, count],
  );

test("two nodes share the endpoints, and every event arrives once", async () => {
  const owner = await hooks.newOwner();
  const made = [];
  for (let each = 0; each < 12; each += 1) made.push(await hooks.subscribe(owner, { events: ["device.offline"] }));
  const ids = made.map(({ webhookId }) => webhookId);
  await burst(owner.tenant.tenantId, 30);
  const holders = new Set<string>();
  await eventually(async () => {
    const { rows } = await hooks.world.sql.query("select distinct holder from webhook_endpoints where webhook_id = any($1) and holder is not null", [ids]);
    for (const { holder } of rows) holders.add(holder);
    expect(holders.size).toBe(2);
  }, 20_000);
  for (const { path } of made) {
    const received = await hooks.arrived(path, 30, 30_000);
    expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(30);
  }
});

describe("a lease", () => {
  test("of a node that has died ends by itself, and another node goes on", async () => {
    const owner = await hooks.newOwner();
    const { path, webhookId } = await hooks.subscribe(owner, { events: ["device.offline"] });
    const { rows: leases } = await hooks.world.sql.query(
      "update webhook_endpoints set holder = 'dead', fence = 7, leased_until = now() + interval '3 seconds', next_due_at = now() where webhook_id = $1 returning leased_until",
      [webhookId],
    );
    await burst(owner.tenant.tenantId, 1);
    await hooks.arrived(path, 1, 15_000);
    const { rows: now } = await hooks.world.sql.query("select now() >= $1 as over", [leases[0].leased_until]);
    expect(now).toEqual([{ over: true }]);
  });

  test("that another node has got since fences what its old holder still writes", async () => {
    const owner = await hooks.newOwner();
    const { path, webhookId } = await hooks.subscribe(owner, { events: ["device.offline"] });
    await burst(owner.tenant.tenantId, 1);
    await hooks.arrived(path, 1);
    const read = async () =>
      (
        await hooks.world.sql.query(
          "select d.status, d.attempt_count, e.fence, e.consecutive_failures from webhook_deliveries d join webhook_endpoints e using (webhook_id) where webhook_id = $1",
          [webhookId],
        )
      ).rows[0];
    await eventually(async () => expect(await read()).toMatchObject({ status: "succeeded" }));
    await hooks.world.sql.query("update webhook_deliveries set status = 'pending', next_attempt_at = 'infinity' where webhook_id = $1", [webhookId]);
    const { rows } = await hooks.world.sql.query("select delivery_id from webhook_deliveries where webhook_id = $1", [webhookId]);
    const result = { webhookId, deliveryId: rows[0].delivery_id, attemptsBefore: 1, status: "exhausted", delay: null, attempt: {} } as const;
    const before = await read();
    const health = (fence: number) => [{ webhookId, fence, consecutiveFailures: 3, failingSince: new Date(), succeeded: 0, failed: 1 }];
    await writeResults(db, health(Number(before.fence) - 1), [result]);
    expect(await read()).toEqual(before);
    await writeResults(db, health(Number(before.fence)), [result]);
    expect(await read()).toMatchObject({ status: "exhausted", attempt_count: 2, consecutive_failures: 3 });
  });
});

describe("a runner", () => {
  const leased = { webhook_id: "wh_1", tenant_id: "ten_1", fence: 1, consecutive_failures: 0, failing_since: null };
  const due = (position: number, subject: string): DueRow => ({
    webhook_id: "wh_1",
    delivery_id: `whd_${position}`,
    event_id: `evt_${position}`,
    event_type: "device.offline",
    subject_id: subject,
    trigger: "scheduled",
    body: "{}",
    traceparent: null,
    tries: 0,
    attempt_count: 0,
  });
  const state = { webhookId: "wh_1", tenantId: "ten_1", url: "", format: "standard", keys: [], headers: {}, epoch: 0, maxPerSecond: 10, isOpen: true } as const;

  test("sends at most so many per second", () => {
    const runner = createRunner(leased, 1_000_000);
    runner.state = state;
    runner.loaded(Array.from({ length: 100 }, (_, at) => due(at, `dev_${at}`)));
    let sent = 0;
    for (let atMs = 1; atMs <= 2_000; atMs += 1)
      while (runner.pause(atMs) === 0) {
        const one = runner.take();
        if (one !== undefined) runner.ended(one, true);
        sent += 1;
      }
    expect(sent).toBeGreaterThanOrEqual(19);
    expect(sent).toBeLessThanOrEqual(21);
  });

  test("begins nothing once its lease may be over", () => {
    const runner = createRunner(leased, 500);
    runner.state = state;
    runner.loaded([due(1, "dev_1")]);
    expect([runner.pause(499), runner.pause(500)]).toEqual([0, null]);
  });

  test("drops the later events of a subject that failed, and asks for no subject of which it still has something", () => {
    const runner = createRunner(leased, 1_000_000);
    runner.state = { ...state, maxPerSecond: 50 };
    runner.loaded([due(1, "a"), due(2, "a"), due(3, "b"), due(4, "c")]);
    const take = () => (runner.pause(10_000) === 0 ? runner.take() : undefined);
    const [a, b] = [take(), take()];
    expect([a?.deliveryId, b?.deliveryId]).toEqual(["whd_1", "whd_3"]);
    if (a !== undefined) runner.ended(a, false);
    expect([...runner.wanted().busy].sort()).toEqual(["a", "b", "c"]);
    expect(take()?.deliveryId).toBe("whd_4");
    runner.written("a");
    expect([...runner.wanted().busy].sort()).toEqual(["b", "c"]);
  });

  test("reads again after news that came while it read", () => {
    const runner = createRunner(leased, 1_000_000);
    runner.wanted();
    runner.stir();
    runner.loaded([]);
    expect(runner.wants()).toBe(true);
    runner.wanted();
    runner.loaded([]);
    expect(runner.wants()).toBe(false);
  });

  test("reads on while it still has a few, and reads again what it left out of a subject once nothing of it is here", () => {
    const runner = createRunner(leased, 1_000_000);
    runner.state = { ...state, maxPerSecond: 50 };
    runner.wanted();
    runner.loaded([due(1, "a"), due(2, "a")]);
    runner.stir();
    expect([runner.wants(), runner.wanted().busy]).toEqual([true, ["a"]]);
    runner.loaded([]);
    const send = (atMs: number): void => {
      const one = runner.pause(atMs) === 0 ? runner.take() : undefined;
      if (one !== undefined) runner.ended(one, true);
      runner.written("a");
    };
    send(10_000);
    expect(runner.wants()).toBe(false);
    send(20_000);
    expect(runner.wants()).toBe(true);
  });
});

describe("the schedule", () => {
  const now = systemClock.now();
  const failed = (statusCode: number | null, retryAfter: string | null = null, code = "HTTP_STATUS") => ({ code, statusCode, retryAfter });

  test("follows the table with 20 % of jitter, and ends after ten attempts", () => {
    const table = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (const [at, base] of table.entries()) {
      expect(delayAfter(at + 1, failed(500), now, () => 0)).toBeCloseTo(base * 0.8);
      expect(delayAfter(at + 1, failed(500), now, () => 1)).toBeCloseTo(base * 1.2);
    }
    expect(delayAfter(10, failed(500), now)).toBeNull();
  });

  test("heeds Retry-After of 429 and 503 between the table's time and twice of it", () => {
    expect(delayAfter(2, failed(503, "400"), now)).toBe(400);
    expect(delayAfter(2, failed(503, "1"), now)).toBe(300);
    expect(delayAfter(2, failed(503, "999999"), now)).toBe(600);
    expect(delayAfter(2, failed(503, new Date(now.getTime() + 450_000).toUTCString()), now)).toBeCloseTo(450, -1);
    expect(delayAfter(2, failed(503, "soon"), now, () => 0.5)).toBe(300);
    expect(delayAfter(2, failed(500, "400"), now, () => 0.5)).toBe(300);
    expect([delayAfter(1, failed(429), now), delayAfter(1, failed(null, null, "TIMEOUT"), now)]).toEqual([60, 60]);
  });

  test("gives a webhook up after 120 hours and ten failures, not before", () => {
    const since = (hours: number) => new Date(now.getTime() - hours * 3_600_000);
    expect([isGivenUp(since(120), 10, now), isGivenUp(since(119.9), 10, now), isGivenUp(since(120), 9, now), isGivenUp(null, 10, now)]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  test("a blocked address ends the delivery, and a webhook's own event is not told of again", () => {
    const waiting = {
      deliveryId: "whd_1",
      eventId: "evt_1",
      eventType: "webhook.disabled",
      subjectId: "s",
      body: "{}",
      traceparent: null,
      attemptsBefore: 0,
      tries: 9,
      trigger: "scheduled",
    } as const;
    const attempt = (code: "BLOCKED" | "CONNECT") =>
      ({
        number: 1,
        trigger: "scheduled",
        startedAt: "",
        durationMs: 1,
        statusCode: null,
        error: { code, message: "" },
        responseHeaders: {},
        responseBody: "",
        ip: null,
      }) as const;
    const settled = (code: "BLOCKED" | "CONNECT") => settle(createRunner(leasedRow, 0), waiting, { attempt: attempt(code), retryAfter: null }, now);
    const leasedRow = { webhook_id: "wh_1", tenant_id: "ten_1", fence: 1, consecutive_failures: 0, failing_since: null };
    expect(settled("BLOCKED")).toMatchObject({ result: { status: "blocked", delay: null }, effects: [] });
    expect(settled("CONNECT")).toMatchObject({ result: { status: "exhausted", delay: null }, effects: [] });
  });
});
