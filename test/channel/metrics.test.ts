// The metrics page while one device goes through its life: each documented metric changes when its cause happens.

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { commit, version } from "../../server/version.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { insertOpenCommand } from "../kit/gateway/open-commands.ts";
import { type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { withClient } from "../kit/stores/database.ts";
import { startDeafProxy, startRedis, type TestRedis } from "../kit/stores/redis.ts";
import { type AgentSocket, attempt, connect, greet } from "./harness.ts";

const NODE = "node-watched";
/** The sessions for calls that read. */
const POOL = 8;
let redis: TestRedis;
let proxy: Awaited<ReturnType<typeof startDeafProxy>>;
let world: World;
let tenant: TestTenant;
let device: Device;
let page: Map<string, number>;

const fetchPage = async (): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${world.app.internalPort()}/internal/metrics`, {
    headers: { authorization: `Bearer ${world.app.internalToken}` },
  });
  return response.text();
};
const scrape = async (): Promise<Map<string, number>> => {
  const lines = (await fetchPage()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
};
/** Waits until the metric has grown, and returns by how much since the test began. */
const grown = (name: string, by = 1): Promise<void> =>
  eventually(async () => expect((await scrape()).get(name) ?? 0, name).toBeGreaterThanOrEqual((page.get(name) ?? 0) + by));
const becomes = (name: string, value: number): Promise<void> => eventually(async () => expect((await scrape()).get(name), name).toBe(value));

beforeAll(async () => {
  redis = await startRedis();
  proxy = await startDeafProxy(redis.port);
  world = await startWorld(
    { REDIS_URL: proxy.url, NODE_ID: NODE, ACCEPT_PER_SECOND: "1000", RATE_LIMIT_CONNECT: "off", DATABASE_SESSIONS_LISTS: `${POOL}` },
    {
      settings: {
        cluster: { bus: { probeEveryMs: 100 } },
        commands: { ackTimeoutMs: 1_500, pollLeaseMs: 60_000, redeliveryBackoffMs: [20], reaperEveryMs: 50, sweepEveryMs: 100 },
        channel: { flushEveryMs: 100, tickMs: 50, slowMs: 60_000 },
      },
    },
  );
  tenant = await world.tenant();
  device = await tenant.device();
});
beforeEach(async () => {
  page = await scrape();
});
afterAll(async () => {
  await world.close();
  await proxy.close();
  await redis.close();
});

const at = (): { url: string; clock: { now(): Date } } => ({ url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } });
const online = async (of: Device = device, more: object = {}): Promise<AgentSocket> => {
  const socket = await connect(at(), of);
  await greet(at(), socket, of, more);
  return socket;
};
const queue = async (body: object = {}, of: Device = device): Promise<string> => {
  const answer = await world.call(tenant.apiKey, "POST", `/v1/devices/${of.deviceId}/commands`, { body: { type: "ping", ...body } });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.data.commandId;
};
const eachInTurn = async (count: number, run: () => Promise<unknown>): Promise<void> => {
  for (let n = 0; n < count; n += 1) await run();
};
/** Queues commands without a nudge. They become visible together, so one claim takes as many as it may. */
const slipIn = (count: number, { payload = "{}", requiresAck = true } = {}) =>
  withClient(world.databaseUrl, async (client) => {
    const { deviceId } = device;
    await client.query("begin");
    await eachInTurn(count, () =>
      insertOpenCommand((text, values) => client.query(text, values), { commandId: newId("cmd"), ...tenant, deviceId, payload, requiresAck }),
    );
    await client.query("commit");
  });

test("the metric that must be 0 comes first, every metric has a help text, and no label names a tenant or a device", async () => {
  const text = await fetchPage();
  expect(text.split("\n").find((line) => !line.startsWith("#"))).toBe("mooring_commands_past_deadline 0");
  const named = (kind: "HELP" | "TYPE") => new Map([...text.matchAll(new RegExp(`^# ${kind} (\\S+) (.+)$`, "gm"))].map(([, name, rest]) => [name, rest]));
  const help = named("HELP");
  for (const [name, type] of named("TYPE")) {
    expect(help.get(name), name).toMatch(/\S+ \S+/);
    if (type === "histogram" && name?.startsWith("mooring_") === true) expect(help.get(name), name).toContain("Seconds");
  }
  expect(text).not.toContain(tenant.tenantId);
  expect(text).not.toContain(device.deviceId);
});

test("our metrics begin with mooring_, and the runtime's keep the names that stock dashboards know", async () => {
  const names = [...(await fetchPage()).matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name);
  expect(names.filter((name) => !/^(mooring|process|nodejs)_/.test(name))).toEqual([]);
  expect(names).toEqual(expect.arrayContaining(["process_resident_memory_bytes", "nodejs_eventloop_lag_p99_seconds", "mooring_commands_open"]));
});

test("build_info names the release, its commit and the version of Node", () => {
  expect(page.get(`mooring_build_info{version="${version}",commit="${commit}",node="${process.versions.node}"}`)).toBe(1);
});

test("the pool metrics count connections to the database and the calls that wait for one", async () => {
  expect(page.get('mooring_db_pool_connections{state="total"}')).toBeGreaterThan(0);
  const held = await withClient(world.databaseUrl, async (client) => {
    await client.query("begin");
    // A table that no scrape reads.
    await client.query("lock table saved_views in access exclusive mode");
    const calls = Array.from({ length: 12 }, () => world.call(tenant.apiKey, "GET", "/v1/views"));
    // All connections wait for the lock, so the other calls wait for a connection.
    const blocked = "select count(*)::int as sessions from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await eventually(async () => expect((await world.sql.query(blocked)).rows[0].sessions).toBeGreaterThanOrEqual(POOL));
    await eventually(async () => expect((await scrape()).get("mooring_db_pool_waiting")).toBeGreaterThan(0));
    await client.query("rollback");
    return Promise.all(calls);
  });
  expect(held).toHaveLength(12);
  await becomes("mooring_db_pool_waiting", 0);
});

test("the outbox metrics count waiting events and the age of the oldest", async () => {
  await withClient(world.databaseUrl, async (client) => {
    // Takes the relay's lock and does nothing with it.
    await client.query("begin");
    await eventually(async () => expect((await client.query("select pg_try_advisory_xact_lock(7266530021) as mine")).rows[0].mine).toBe(true));
    await world.sql.query(
      `insert into outbox_events (event_id, tenant_id, type, subject_id, data, created_at)
       select 'evt_waits_' || n, $1, 'device.online', 'dev_x', '{"deviceId":"dev_x"}', now() - interval '1 hour' from generate_series(1, 3) as n`,
      [tenant.tenantId],
    );
    await eventually(async () => expect((await scrape()).get("mooring_outbox_undispatched_events")).toBe(3));
    expect((await scrape()).get("mooring_outbox_oldest_undispatched_seconds")).toBeGreaterThan(3_599);
    await client.query("rollback");
  });
  await becomes("mooring_outbox_undispatched_events", 0);
  await becomes("mooring_outbox_oldest_undispatched_seconds", 0);
});

test("connects, heartbeats and closes are counted", async () => {
  const socket = await online(device, { clockOffsetMs: -12_000 });
  await grown('mooring_agent_connects_total{result="accepted",reason=""}');
  await becomes(`mooring_agent_connections{node="${NODE}",state="ready"}`, 1);
  await grown("mooring_agent_handshake_seconds_count");
  await grown('mooring_agent_clock_offset_seconds_bucket{le="60"}');
  expect((await scrape()).get('mooring_agent_clock_offset_seconds_bucket{le="10"}') ?? 0, "12 s ahead").toBe(
    page.get('mooring_agent_clock_offset_seconds_bucket{le="10"}') ?? 0,
  );
  socket.say("heartbeat", { cpu: 1, rttMs: 42 });
  await socket.next("heartbeat_ack");
  await grown('mooring_agent_heartbeat_rtt_seconds_bucket{le="0.05"}');
  expect((await scrape()).get('mooring_agent_heartbeat_rtt_seconds_bucket{le="0.025"}')).toBe(
    page.get('mooring_agent_heartbeat_rtt_seconds_bucket{le="0.025"}'),
  );
  await grown("mooring_presence_flush_seconds_count");
  socket.socket.close(4242);
  await grown('mooring_agent_closes_total{code="other"}');
  await becomes(`mooring_agent_connections{node="${NODE}",state="open"}`, 0);
});

test("a refused upgrade is counted with its reason", async () => {
  const wrong = { ...device, identity: { ...device.identity, secret: "not-the-secret" } };
  expect(await attempt(at(), wrong)).toMatchObject({ status: 401 });
  await grown('mooring_agent_connects_total{result="refused",reason="bad_signature"}');
});

test("a command is counted when it is sent, redelivered, acknowledged and ended", async () => {
  const socket = await online();
  const commandId = await queue();
  await grown('mooring_nudges_total{result="local"}');
  await socket.next("command");
  await grown('mooring_command_delivery_seconds_count{channel="ws"}');
  await becomes('mooring_commands_open{status="sent"}', 1);
  expect((await socket.next("command")).data.delivery.attempt).toBe(2);
  // At once, because another timeout would take the command back.
  socket.say("ack", { commandId, status: "received" });
  await socket.next("ack_ok");
  await grown('mooring_command_redeliveries_total{cause="ack_timeout"}');
  await grown("mooring_command_ack_seconds_count");
  socket.say("ack", { commandId, status: "succeeded" });
  await socket.next("ack_ok");
  await grown("mooring_command_end_to_end_seconds_count");
  socket.end();
  await grown('mooring_agent_closes_total{code="1006"}');
});

test("a late result is counted", async () => {
  const socket = await online();
  const commandId = await queue();
  await socket.next("command");
  socket.say("ack", { commandId, status: "received" });
  await socket.next("ack_ok");
  await world.sql.query("update command_queue set deadline_at = now() - interval '1 second' where command_id = $1", [commandId]);
  await socket.next("cancel");
  socket.say("ack", { commandId, status: "succeeded" });
  await grown("mooring_command_late_results_total");
  socket.end();
});

test("a redelivery to a polling agent is counted", async () => {
  const poller = await tenant.device();
  await queue({}, poller);
  await grown('mooring_nudges_total{result="unowned"}');
  for (const _ of [1, 2]) await world.call(poller.as, "GET", `/v1/devices/${poller.deviceId}/commands`);
  await grown('mooring_command_delivery_seconds_count{channel="poll"}');
  await grown('mooring_command_redeliveries_total{cause="polled_again"}');
});

test("a command without a nudge is counted as found by the sweep", async () => {
  const socket = await online();
  // What the claim of a new session still finds is not counted.
  await eventually(async () => {
    await slipIn(1);
    const { data } = await socket.next("command");
    socket.say("ack", { commandId: data.command.commandId, status: "succeeded" });
    await socket.next("ack_ok");
    const name = "mooring_sweep_rescued_total";
    expect((await scrape()).get(name)).toBeGreaterThan(page.get(name) ?? 0);
  });
  socket.end();
});

test("a deadline that no reaper enforces is reported", async () => {
  const held = await world.sql.connect();
  await held.query("begin");
  await held.query("select 1 from device_presence where device_id = $1 for update", [device.deviceId]);
  await slipIn(1);
  await held.query("select 1 from command_queue where device_id = $1 and status = 'queued' for update", [device.deviceId]);
  // In the future, because the reaper must not come between this commit and the lock.
  await held.query("update command_queue set deadline_at = now() + interval '2 seconds' where device_id = $1 and status = 'queued'", [device.deviceId]);
  await held.query("commit");
  await held.query("begin");
  await held.query("select 1 from command_queue where device_id = $1 for update", [device.deviceId]);
  await becomes("mooring_commands_past_deadline", 1);
  await held.query("rollback");
  held.release();
  await becomes("mooring_commands_past_deadline", 0);
});

test("a superseded session without an eviction is counted", async () => {
  const socket = await online();
  await world.sql.query("update device_presence set epoch = epoch + 1 where device_id = $1", [device.deviceId]);
  socket.say("heartbeat", { cpu: 1 });
  expect((await socket.closed()).code).toBe(4009);
  await grown("mooring_stale_epoch_evictions_total");
  await grown('mooring_agent_closes_total{code="4009"}');
});

test("an agent that reads nothing shows as buffered bytes, then as dropped frames", async () => {
  const socket = await online(device, { maxInFlight: 32 });
  socket.socket.pause();
  // One claim that is larger than the system's buffers and the socket's together.
  await slipIn(32, { payload: JSON.stringify({ filler: "x".repeat(600_000) }), requiresAck: false });
  await eventually(async () => expect((await scrape()).get("mooring_ws_buffered_bytes")).toBeGreaterThan(0));
  await grown("mooring_ws_dropped_frames_total");
  await grown('mooring_command_redeliveries_total{cause="write_refused"}');
  await world.sql.query("delete from command_queue where device_id = $1 and status = 'queued'", [device.deviceId]);
  socket.end();
  await becomes("mooring_ws_buffered_bytes", 0);
});

test("a deaf subscription is counted", async () => {
  proxy.deafen();
  await grown("mooring_pubsub_probe_misses_total");
});

test("an upgrade that a draining node refuses is counted with its cause", async () => {
  const leaving = await startWorld({ NODE_ID: "node-leaving" }, { beside: world });
  const internal = `http://127.0.0.1:${leaving.app.internalPort()}/internal`;
  const headers = { authorization: `Bearer ${leaving.app.internalToken}` };
  await fetch(`${internal}/drain`, { method: "POST", headers });
  expect(await attempt({ ...at(), url: leaving.url.replace(/^http/, "ws") }, device)).toMatchObject({ status: 503 });
  const told = async () => (await fetch(`${internal}/metrics`, { headers })).text();
  await eventually(async () => expect(await told()).toContain('mooring_accept_rejected_total{cause="draining"} 1\n'));
  await leaving.close();
});
