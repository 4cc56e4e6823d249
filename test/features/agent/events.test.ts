// What agents report to have happened: events of their device, which webhooks deliver and alert rules count.

import { afterAll, beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { createEvaluation } from "../../../server/features/alerts/evaluate.ts";
import { openDb } from "../../../server/platform/database/db.ts";
import { createOutbox } from "../../../server/platform/outbox/outbox.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import type { Device } from "../../kit/gateway/world.ts";
import { namedStatements } from "../../kit/stores/database.ts";
import { type Hooks, openHooks } from "../webhooks/kit.ts";

let hooks: Hooks;
beforeAll(async () => {
  hooks = await openHooks();
});
afterAll(() => hooks.close());

const failure = { type: "disk.smart_failure", severity: "critical", timestamp: "2026-11-22T12:00:00+02:00", details: { disk: "/dev/sda", sectors: 12 } };
const report = ({ as }: Device, events: readonly object[], headers: Readonly<Record<string, string>> = {}) =>
  hooks.world.call(as, "POST", "/v1/agent/events", { body: { events }, headers });

test("a webhook gets each event, of the agent's own device", async () => {
  const owner = await hooks.newOwner();
  const device = await owner.tenant.device();
  const { path } = await hooks.subscribe(owner, { events: ["device.reported"] });
  const { status, body } = await report(device, [failure, { ...failure, type: "fan.stopped", severity: "info" }]);
  expect([status, body.data]).toEqual([200, { accepted: 2 }]);
  const sent = (await hooks.arrived(path, 2)).map(({ body: text }) => JSON.parse(text));
  expect(sent.map(({ type }) => type)).toEqual(["device.reported", "device.reported"]);
  expect(sent.map(({ data }) => data)).toMatchObject([
    { ...failure, deviceId: device.deviceId, timestamp: "2026-11-22T10:00:00.000Z" },
    { deviceId: device.deviceId, type: "fan.stopped", severity: "info" },
  ]);
});

test("an alert rule counts them per device", async () => {
  const owner = await hooks.newOwner();
  const device = await owner.tenant.device();
  const rule = { name: "Reported", metric: "event", eventType: "device.reported", operator: "gte", threshold: 2, clearForSeconds: 0 };
  expect((await hooks.call(owner, "POST /alert-rules", rule)).code).toBe(201);
  await report(device, [failure, failure]);
  const db = await openDb({ clock: systemClock, url: hooks.world.databaseUrl, poolSize: 2, log: silentLog, namedStatements });
  try {
    const { emit } = createOutbox({ db, onError: () => undefined });
    const evaluation = createEvaluation({ db, emit, portalUrl: () => "https://portal.example" });
    await eventually(async () => {
      while (await evaluation.run());
      const { data } = await hooks.call(owner, "GET /alerts");
      expect(data).toMatchObject([{ title: expect.stringContaining("Reported"), status: "open" }]);
    }, 20_000);
  } finally {
    await db.close();
  }
});

test("a report that comes twice under one key is one", async () => {
  const { tenant } = await hooks.newOwner();
  const device = await tenant.device();
  for (let attempt = 0; attempt < 2; attempt += 1) expect((await report(device, [failure], { "idempotency-key": "once" })).status).toBe(200);
  const { rows } = await hooks.world.sql.query("select 1 from outbox_events where tenant_id = $1 and type = 'device.reported'", [tenant.tenantId]);
  expect(rows).toHaveLength(1);
});

test.each([
  ["none", []],
  ["more than 100", Array(101).fill(failure)],
  ["a word that is none", [{ ...failure, type: "Disk failure!" }]],
  ["details that are too large", [{ ...failure, details: { text: "x".repeat(5_000) } }]],
  ["details that PostgreSQL cannot keep", [{ ...failure, details: { text: "\u0000" } }]],
  ["a time that is none", [{ ...failure, timestamp: "yesterday" }]],
])("%s are refused", async (_, events) => {
  const device = await (await hooks.newOwner()).tenant.device();
  const { status, body } = await report(device, events);
  expect([status, body.code]).toEqual([400, "VALIDATION_FAILED"]);
});

test("an agent reports a bounded number of times a minute", async () => {
  const device = await (await hooks.newOwner({ unlimited: false })).tenant.device();
  const [{ limit }] = LIMITS.events;
  const codes = (await Promise.all(Array.from({ length: 2 * limit }, () => report(device, [failure])))).map(({ status }) => status);
  expect([...new Set(codes)].sort()).toEqual([200, 429]);
  expect(codes.filter((code) => code === 200).length).toBeGreaterThanOrEqual(limit);
});
