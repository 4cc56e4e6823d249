// Every operation that takes an Idempotency-Key has one effect, which commits with the key or not at all.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { CASES, type Case, callerFor, openStock, type Stock, sample, toRequest } from "./samples.ts";

let world: World;
let stock: Stock;
beforeAll(async () => {
  const free = { RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off", RATE_LIMIT_INVITES: "off", RATE_LIMIT_AGENT: "off" };
  world = await startWorld({ ...free, TENANTS_PER_USER: "100" }, { inProcess: true });
  stock = await openStock(world);
});
afterAll(() => world.close());

const KEYED = CASES.filter(({ op }) => op.idempotency !== "none").map((each) => [each.id, each] as const);
const KEPT_IN = { key: "idempotency_keys", own: "commands", none: "" } as const;

/** The columns to compare in tables that background jobs update at any time. */
const STABLE: Readonly<Record<string, string>> = {
  alert_channels: "to_jsonb(t) - 'last_sent_at' - 'last_error' - 'last_error_at'",
  alert_notifications: "null",
  alert_rules: "case when created_by <> 'system' then t end",
  alert_states: "null",
  alert_tenants: "null",
  alerts: "(alert_id, status, version)",
  api_keys: "to_jsonb(t) - 'last_used_at' - 'last_used_ip'",
  job_runs: "null",
  load_tests: "(load_test_id, status, cancel_asked_at)",
  outbox_dispatches: "null",
  outbox_events: "event_id",
  outbox_pending: "null",
  webhook_deliveries: "delivery_id",
  webhook_endpoints: "null",
  webhook_hours: "null",
  metric_progress: "null",
  device_metrics: "null",
  tenant_metrics: "null",
  // Each call of an agent leaves its own.
  used_signatures: "null",
  gateway_nodes: "(node_id, drain_asked_at)",
  sessions: "to_jsonb(t) - 'last_seen_at'",
};

/** A digest of all rows of each table. */
const digestTables = async (): Promise<Readonly<Record<string, string>>> => {
  const { rows } = await world.sql.query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
  );
  const digests = await Promise.all(
    rows.map(async ({ name }) => {
      const row = `(${STABLE[name] ?? "t"})::text`;
      const found = await world.sql.query<{ digest: string }>(`select md5(coalesce(string_agg(${row}, '|' order by ${row}), '')) as digest from "${name}" t`);
      return [name, found.rows[0]?.digest ?? ""] as const;
    }),
  );
  return Object.fromEntries(digests);
};

const caller = async (each: Case) => {
  const { method, path, body } = toRequest(each.op, await sample(each, stock));
  const input = body ?? {};
  const as = callerFor(each, stock);
  return (key: string) => world.call(as, method, `/v1${path}`, { ...(body === undefined ? {} : { body: input }), headers: { "idempotency-key": key } });
};

/** Its caller may not repeat it: the first call has made somebody else the owner. */
const GIVES_AWAY_ITS_RIGHT: ReadonlySet<string> = new Set(["roles.transferOwnership"]);

/** The commands of a call for many devices are the same; how many of them the call made is not. */
const repeated = (data: Record<string, unknown> | undefined) => (data !== undefined && "counts" in data ? { ...data, counts: null } : data);

describe("operations with an Idempotency-Key", () => {
  test.each(KEYED)("%s has one effect: a repeat gets the first answer and changes nothing", async (_, each) => {
    const call = await caller(each);
    const key = newId("k");
    const first = await call(key);
    expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([each.op.status, null]);
    const before = await digestTables();
    const again = await call(key);
    if (GIVES_AWAY_ITS_RIGHT.has(each.id)) expect([again.status, again.body.code]).toEqual([403, "FORBIDDEN"]);
    else {
      expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([first.status, "true"]);
      expect(repeated(again.body?.data)).toEqual(repeated(first.body?.data));
    }
    expect(await digestTables()).toEqual(before);
  });

  test.each(KEYED)("%s changes nothing if its key cannot be stored", async (_, each) => {
    const call = await caller(each);
    const table = KEPT_IN[each.op.idempotency];
    // If the key is inserted before the effect, the trigger refuses the update that adds the answer.
    await world.sql.query(`create or replace function refuse_keys() returns trigger language plpgsql as $$ begin
        if to_jsonb(new) -> 'answer' is distinct from 'null'::jsonb then raise exception 'keys are refused'; end if; return new; end $$;
      create trigger refuse_keys before insert or update on ${table} for each row execute function refuse_keys()`);
    try {
      const before = await digestTables();
      expect((await call(newId("k"))).status).toBe(500);
      expect(await digestTables()).toEqual(before);
    } finally {
      await world.sql.query(`drop trigger refuse_keys on ${table}`);
    }
    expect((await call(newId("k"))).status).toBe(each.op.status);
  });
});

test("every mutation by an authenticated caller takes a key, unless repeating it does no harm", () => {
  const without = CASES.filter(({ op }) => op.kind === "mutation" && op.idempotency === "none" && !op.auth.includes("public")).map(({ id }) => id);
  // Exporters repeat a batch of spans, which is stored once. Agents repeat their reports anyway, and an extra ticket or token does no harm.
  const harmless = ["general.streamTicket", "sessions.token", "traces.ingest"];
  expect(without.sort()).toEqual(
    ["agent.reportInventory", "agent.reportState", "agent.sendLogs", "commands.ack", "devices.heartbeat", "pairing.updateDeviceProgress", ...harmless].sort(),
  );
});
