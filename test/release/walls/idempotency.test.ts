// Every operation that takes an Idempotency-Key has one effect, which commits with the key or not at all.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { CASES, type Case, callerFor, NEEDS_PROVIDER, openStock, type Stock, sample, toRequest } from "../../contract/samples.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";

let world: World;
let stock: Stock;
beforeAll(async () => {
  const free = { RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off", RATE_LIMIT_INVITES: "off", RATE_LIMIT_AGENT: "off" };
  world = await startWorld(
    { ...free, TENANTS_PER_USER: "100" },
    { inProcess: true, settings: { many: { lanes: 0 }, dataExports: { places: 0 }, imports: { places: 0 } } },
  );
  stock = await openStock(world);
});
afterAll(() => world.close());

const KEYED = CASES.filter(({ id, op }) => op.idempotency !== "none" && !NEEDS_PROVIDER.has(id)).map((each) => [each.id, each] as const);
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
  cost_ledgers: "null",
  job_runs: "null",
  mesh_routers: "(route_id, device_id, metric)",
  // Probes go on.
  mesh_routes: "to_jsonb(t) - 'probe_at' - 'status' - 'active_router' - 'since' - 'updated_at'",
  load_tests: "(load_test_id, status, cancel_asked_at)",
  outbox_dispatches: "null",
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

const digestOf = (name: string): string => {
  const row = `(${STABLE[name] ?? "t"})::text`;
  return `select '${name}' as name, md5(coalesce(string_agg(${row}, '|' order by ${row}), '')) as digest from "${name}" t`;
};
/** Digests all tables in one statement: each test asks for several. */
let digestAll = "";
beforeAll(async () => {
  const { rows } = await world.sql.query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
  );
  digestAll = rows
    .filter(({ name }) => STABLE[name] !== "null")
    .map(({ name }) => digestOf(name))
    .join(" union all ");
});
/** A digest of all rows of each table. */
const digestTables = async (): Promise<Readonly<Record<string, string>>> => {
  // Named, so that PostgreSQL plans its hundred parts once.
  const { rows } = await world.sql.query<{ name: string; digest: string }>({ name: "digest of all tables", text: digestAll });
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
};

/** While it holds, no key can be stored: a change of the schema for each test would have every plan made again. */
const refuseKeys = (isRefused: boolean) => world.sql.query("update keys_refused set holds = $1", [isRefused]);
beforeAll(async () => {
  // If a key is inserted before the effect, the trigger refuses the update that adds the answer.
  await world.sql.query(`create table keys_refused as select false as holds;
    create function refuse_keys() returns trigger language plpgsql as $$ begin
      if to_jsonb(new) -> 'answer' is distinct from 'null'::jsonb and (select holds from keys_refused) then raise exception 'keys are refused'; end if;
      return new; end $$`);
  const tables = new Set(KEYED.map(([, { op }]) => KEPT_IN[op.idempotency]));
  for (const table of tables)
    await world.sql.query(`create trigger refuse_keys before insert or update on ${table} for each row execute function refuse_keys()`);
});

const caller = async (each: Case) => {
  const { method, path, body, rawBody, headers = {} } = toRequest(each.op, await sample(each, stock));
  const as = callerFor(each, stock);
  const sent = { ...(body === undefined ? {} : { body }), ...(rawBody === undefined ? {} : { rawBody }) };
  return (key: string) => world.call(as, method, `/v1${path}`, { ...sent, headers: { ...headers, "idempotency-key": key } });
};

/** Its caller may not repeat it: the first call has made somebody else the owner. */
const GIVES_AWAY_ITS_RIGHT: ReadonlySet<string> = new Set(["roles.transferOwnership"]);

/** The commands of a call for many devices are the same; how many of them the call made is not. */
const repeated = (data: Record<string, unknown> | undefined) => (data !== undefined && "counts" in data ? { ...data, counts: null } : data);

describe.each(KEYED)("%s", (_, each) => {
  let call: Awaited<ReturnType<typeof caller>>;
  beforeAll(async () => {
    call = await caller(each);
  });

  test("changes nothing if its key cannot be stored", async () => {
    await refuseKeys(true);
    try {
      const before = await digestTables();
      expect((await call(newId("k"))).status).toBe(500);
      expect(await digestTables()).toEqual(before);
    } finally {
      await refuseKeys(false);
    }
  });

  // Its first call is the control of the test above: the same call succeeds once its key can be stored.
  test("has one effect: a repeat gets the first answer and changes nothing", async () => {
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
});

test("every mutation by an authenticated caller takes a key, unless repeating it does no harm", () => {
  const without = CASES.filter(({ op }) => op.kind === "mutation" && op.idempotency === "none" && !op.auth.includes("public")).map(({ id }) => id);
  // The items of a batch take keys. Exporters repeat a batch of spans, which is stored once. Agents repeat their reports anyway, and an extra ticket or token does no harm.
  const harmless = ["batch.run", "general.streamTicket", "sessions.token", "traces.ingest"];
  expect(without.sort()).toEqual(
    [
      "agent.reportInventory",
      "agent.reportState",
      "agent.sendLogs",
      "commands.ack",
      "devices.heartbeat",
      "pairing.updateDeviceProgress",
      "volumes.report",
      ...harmless,
    ].sort(),
  );
});
