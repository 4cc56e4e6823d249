// A node lets go of an endpoint that has nothing to do, and something comes in that moment.
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { nameOfStatement } from "../../../server/core/statements.ts";
import type { Sending } from "../../../server/features/webhooks/delivery/attempt.ts";
import { createDeliverySession, WORKER_DEFAULTS } from "../../../server/features/webhooks/delivery/delivery-session.ts";
import { markDue } from "../../../server/features/webhooks/store/fan-out.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { createTestDatabase, namedStatements, withClient } from "../../kit/stores/database.ts";

let url: string;
let db: Db;
beforeAll(async () => {
  url = await createTestDatabase();
  db = await openDb({ clock: systemClock, url, poolSize: 4, log: silentLog, namedStatements });
});
afterAll(() => db.close());

const SECRET = `whsec_${Buffer.alloc(24).toString("base64")}`;
/** No node but the session of the test works on it. */
const openEndpoint = async () => {
  const [tenantId, webhookId] = await withClient(url, async (sql) => {
    const { tenant_id, webhook_id } = await insertRow(sql, "webhooks", { status: "active", deleted_at: null, previous_secret: null, headers: null });
    await insertRow(sql, "webhook_endpoints", { tenant_id, webhook_id, next_due_at: null, leased_until: null, holder: null });
    return [String(tenant_id), String(webhook_id)];
  });
  const add = async (deliveryId: string): Promise<void> => {
    await withClient(url, (sql) =>
      sql.query(
        `insert into webhook_deliveries (delivery_id, tenant_id, webhook_id, event_id, event_type, subject_id, position, body) values ($1, $2, $3, $1, 'fleet.created', $1, 1, '{}')`,
        [deliveryId, tenantId, webhookId],
      ),
    );
    await db.sqlTx((tx) => markDue(tx, [webhookId]));
  };
  return { tenantId, webhookId, add };
};

test("what comes while a node lets go of its endpoint is sent once, and what comes later at once", async () => {
  const { tenantId, add } = await openEndpoint();
  const sent: string[] = [];
  let isMet = false;
  let isClaimed = false;
  let hasRead: () => void = () => undefined;
  /** The next holder has looked for what is due. */
  const read = new Promise<void>((resolve) => {
    hasRead = resolve;
  });
  const query: Db["query"] = async (text, values) => {
    const name = nameOfStatement(text);
    // PostgreSQL is slow with the claim: whatever else can send what has come has time to do so.
    if (name === "webhooks.claim" && isMet) await db.query("select pg_sleep(0.1)");
    const rows = await db.query(text, values);
    if (name === "webhooks.claim" && isMet) isClaimed = true;
    if (name === "webhooks.readDue" && isClaimed) hasRead();
    if (name === "webhooks.release" && rows.length > 0 && !isMet) {
      isMet = true;
      await add("second");
      session.wake([tenantId]);
      await eventually(() => expect(sent).toContain("second"));
    }
    return rows;
  };
  const session = createDeliverySession({
    db: { ...db, query },
    clock: systemClock,
    log: silentLog,
    secretBox: { open: () => SECRET },
    emit: () => Promise.reject(new Error("nothing is told")),
    disable: () => Promise.reject(new Error("nothing is disabled")),
    attempt: async (_, { deliveryId, attemptsBefore, trigger }: Sending) => {
      sent.push(deliveryId);
      // Long enough to be sent a second time beside it.
      if (deliveryId === "second") await read;
      const attempt = { number: attemptsBefore + 1, trigger, startedAt: new Date().toISOString(), durationMs: 1, statusCode: 204, error: null };
      return { attempt: { ...attempt, responseHeaders: {}, responseBody: "", ip: "127.0.0.1" }, retryAfter: null };
    },
    holder: "nod_1",
    // Nobody gets it back before the test is over by waiting for the end of a lease.
    settings: { ...WORKER_DEFAULTS, leaseSeconds: 600, renewEveryMs: 200_000, tickMs: 20 },
  });
  await add("first");
  const stop = new AbortController();
  const running = session.run(stop.signal);
  await eventually(() => expect(isMet && sent.includes("second")).toBe(true));
  await eventually(async () => {
    const { rows } = await withClient(url, (sql) => sql.query("select count(*)::int as open from webhook_deliveries where status = 'pending'"));
    expect(rows).toEqual([{ open: 0 }]);
  });
  await add("third");
  session.wake([tenantId]);
  await eventually(() => expect(sent).toContain("third"));
  stop.abort();
  await running;
  expect(sent).toEqual(["first", "second", "third"]);
});
