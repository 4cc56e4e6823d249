// Retention of rows by their time: no batch reads what earlier batches deleted, also while an open dump keeps a vacuum from cleaning up.
import { encodeTime } from "ulid";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SqlTx } from "../../../server/core/events.ts";
import { newId } from "../../../server/core/ids.ts";
import { type ExpiryBatch, type ExpiryStep, inRounds } from "../../../server/core/rows/retention.ts";
import { deleteOldSecurityAlerts, deleteOldSecurityEvents } from "../../../server/features/security/event-rows.ts";
import { forgetMetrics } from "../../../server/features/tenants/store/metrics.ts";
import { deleteOldDeliveries } from "../../../server/features/webhooks/store/maintenance.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { deleteExpiredKeys } from "../../../server/platform/idempotency.ts";
import { deleteOldEvents } from "../../../server/platform/outbox/outbox-rows.ts";
import { deleteExpiredSignatures } from "../../../server/platform/signature-memory.ts";
import { openTestDb } from "../../features/commands/kit.ts";
import { createTestDatabase, withClient } from "../../kit/stores/database.ts";
import { counted, pagesRead } from "../../kit/stores/pages-read.ts";

const ROWS = 5_000;
const LIMIT = 50;
/** Of rows that are numbered, each a second younger than the one before; all too old. */
const AT = `now() - interval '500 days' + make_interval(secs => n)`;
const NUMBERS = `from generate_series(1, ${ROWS}) n`;

let url: string;
let db: Db;
beforeAll(async () => {
  url = await createTestDatabase();
  db = await openTestDb(url);
});
afterAll(() => db.close());

/** Returns true when there may be more. */
type RunBatch = (tx: SqlTx) => Promise<boolean>;

/** The pages of the table and of its indexes that each whole batch read. */
const pagesOfBatches = async (table: string, insert: string, values: readonly unknown[], runBatch: RunBatch): Promise<readonly number[]> => {
  await counted(db, (tx) => tx.query(insert, values));
  await db.query(`analyze ${table}`);
  return withClient(url, async (dump) => {
    await dump.query("begin isolation level repeatable read");
    await dump.query("select 1 from tenants limit 1");
    const pages: number[] = [];
    for (let more = true; more; ) {
      const start = await pagesRead(db, table);
      more = await counted(db, runBatch);
      pages.push((await pagesRead(db, table)) - start);
    }
    await dump.query("rollback");
    return pages.slice(0, ROWS / LIMIT);
  });
};

const EVENTS = `insert into security_events (event_id, tenant_id, type, severity, entity_type, entity_id, minute, first_at, last_at, count, pending)
  select 'sev_' || n, $1, 'x', 'low', 'device', 'd' || n, ${AT}, ${AT}, ${AT}, 1, false ${NUMBERS}`;
const ALERTS = `insert into security_alerts (alert_id, tenant_id, rule_id, type, severity, entity_type, entity_id, count, last_event_at, resolved_at)
  select 'sal_' || n, $1, 'r', 'x', 'low', 'device', 'd' || n, 1, ${AT}, ${AT} ${NUMBERS}`;
const KEYS = `insert into idempotency_keys (tenant_id, scope, fingerprint, status, answer, expires_at) select $1, n::text, '', 200, '', ${AT} ${NUMBERS}`;
const SIGNATURES = `insert into used_signatures (agent_id, signature, route, expires_at) select $1, int4send(n), '', ${AT} ${NUMBERS}`;
const METRICS = `insert into device_metrics (tenant_id, device_id, step_seconds, at, samples) select $1, 'd' || n % 10, 60, ${AT}, 1 ${NUMBERS}`;
const TENANT_METRICS = `insert into tenant_metrics (tenant_id, step_seconds, at) select $1, 60, ${AT} ${NUMBERS}`;
const DISPATCHES = `insert into outbox_dispatches (tenant_id, last_sequence, positions, highest_position, dispatched_at) select $1, n, array[n], n, ${AT} ${NUMBERS}`;
const DELIVERIES = `insert into webhook_deliveries (delivery_id, tenant_id, webhook_id, event_id, event_type, subject_id, position, status, body, created_at)
  select 'whd_' || n, $1, 'whk_1', $2 || lpad(n::text, 16, '0'), 'x', 'y', n, 'succeeded', '', ${AT} ${NUMBERS}`;

const minutes = (of: "devices" | "tenants") => (tx: SqlTx, batch: ExpiryBatch) => forgetMetrics(tx, { of, step: 60, keepSeconds: 0 }, batch);
type DeleteBatch = (tx: SqlTx, batch: ExpiryBatch) => Promise<ExpiryStep>;
const STATEMENTS: readonly (readonly [table: string, insert: string, deleteBatch: DeleteBatch])[] = [
  ["security_events", EVENTS, deleteOldSecurityEvents],
  ["security_alerts", ALERTS, deleteOldSecurityAlerts],
  ["idempotency_keys", KEYS, deleteExpiredKeys],
  ["used_signatures", SIGNATURES, deleteExpiredSignatures],
  ["device_metrics", METRICS, minutes("devices")],
  ["tenant_metrics", TENANT_METRICS, minutes("tenants")],
  ["outbox_dispatches", DISPATCHES, (tx, batch) => deleteOldEvents(tx, 30, batch)],
];

/** The first one plans the statement. */
const expectAlike = ([, ...pages]: readonly number[]): void => {
  expect(pages).toHaveLength(ROWS / LIMIT - 1);
  expect(Math.max(...pages)).toBeLessThan(1.1 * Math.min(...pages));
};

/** Each batch of a round in its own transaction. */
const rounds = (deleteBatch: DeleteBatch): RunBatch => {
  const current: { tx: SqlTx | null } = { tx: null };
  const run = inRounds(LIMIT, (batch) => {
    if (current.tx === null) throw new Error("no transaction");
    return deleteBatch(current.tx, batch);
  });
  return (tx) => {
    current.tx = tx;
    return run();
  };
};

describe("a batch reads no page of what earlier batches deleted", () => {
  test.each(STATEMENTS)("%s", async (table, insert, deleteBatch) => {
    expectAlike(await pagesOfBatches(table, insert, [newId("ten")], rounds(deleteBatch)));
    expect(await db.query(`select 1 from ${table} limit 2`)).toHaveLength(table === "outbox_dispatches" ? 1 : 0);
  });

  test("webhook_deliveries", async () => {
    const tenantId = newId("ten");
    const before = new Date(Date.now() - 400 * 86_400_000);
    let after: string | null | undefined;
    const pages = await pagesOfBatches("webhook_deliveries", DELIVERIES, [tenantId, `evt_${encodeTime(before.getTime() - 86_400_000, 10)}`], async (tx) => {
      after = await deleteOldDeliveries(tx, { tenantId, webhookId: "whk_1", before, limit: LIMIT, ...(after != null && { after }) });
      return after !== null;
    });
    expectAlike(pages);
    expect(await db.query("select 1 from webhook_deliveries")).toEqual([]);
  });

  test("control: one that begins with the oldest rows each time reads more and more", async () => {
    const pages = await pagesOfBatches("device_metrics", METRICS, [newId("ten")], async (tx) => {
      const { looked } = await minutes("devices")(tx, { since: new Date(0), limit: LIMIT });
      return looked === LIMIT;
    });
    expect(pages.at(-1)).toBeGreaterThan(1.3 * (pages[1] ?? Number.NaN));
  });
});

test("a round that has come to its end begins again with the oldest rows", async () => {
  const seen: Date[] = [];
  const steps: ExpiryStep[] = [
    { looked: 2, last: new Date(5) },
    { looked: 1, last: new Date(9) },
    { looked: 0, last: null },
  ];
  const run = inRounds(2, async ({ since }) => {
    seen.push(since);
    return steps[seen.length - 1] ?? { looked: 0, last: null };
  });
  expect([await run(), await run(), await run()]).toEqual([true, false, false]);
  expect(seen.map(Number)).toEqual([0, 5, 0]);
});
