// Three nodes behind a load balancer restart one after another under load: no call is lost, no agent goes offline, every command ends.
import { Agent, request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRandom, IssuedIdentity, type PairedDevice, systemTime, toPairedDevice } from "../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../agent-sim/fleet/command-tracker.ts";
import { type BootstrapCredentials, bootstrapTenant, createSandbox, type GatewayProcess, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { freePort } from "../kit/net/free-port.ts";
import { createTestDatabase, withClient } from "../kit/stores/database.ts";
import { startRedis, type TestRedis } from "../kit/stores/redis.ts";
import { type Balancer, startBalancer } from "./balancer.ts";

const NODES = 3;
const AGENTS = 24;
const CALLERS = 6;
/** Without a pause between calls the test would measure the machine. */
const PAUSE_MS = 20;
const START_MS = 120_000;

let sandbox: Sandbox;
let redis: TestRedis;
let balancer: Balancer;
let databaseUrl: string;
let credentials: BootstrapCredentials;
let members: readonly PairedDevice[];
const nodes: { readonly env: Readonly<Record<string, string>>; gateway: GatewayProcess }[] = [];

const limitsOff = Object.fromEntries(["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "CONNECT"].map((name) => [`RATE_LIMIT_${name}`, "off"]));

interface Told {
  readonly status: number;
  readonly body: string;
}
/** One call without any retry: a call without an answer is lost. */
const call = (agent: Agent, method: "GET" | "POST", path: string, body?: object): Promise<Told> =>
  new Promise((resolve, reject) => {
    const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId, "content-type": "application/json" };
    const asked = request(`${balancer.url}${path}`, { agent, method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, body: text })).once("error", reject);
    });
    asked.once("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });

beforeAll(async () => {
  redis = await startRedis();
  databaseUrl = await createTestDatabase();
  sandbox = await createSandbox({
    ...limitsOff,
    DATABASE_URL: databaseUrl,
    DATABASE_POOL: "8",
    MASTER_KEY: Buffer.alloc(32, 5).toString("base64"),
    REDIS_URL: redis.url,
    ACCEPT_PER_SECOND: "2000",
    HEARTBEAT_SECONDS: "10",
    LEAVE_NOTICE_SECONDS: "4",
    DRAIN_WINDOW_SECONDS: "1",
    SHUTDOWN_SECONDS: "25",
  });
  for (let index = 0; index < NODES; index += 1) {
    const env = { ...sandbox.env, NODE_ID: `node-${index}`, PORT: String(await freePort()) };
    nodes.push({ env, gateway: await startGatewayProcess(env) });
  }
  credentials = await bootstrapTenant(sandbox, "--unlimited");
  balancer = await startBalancer(nodes.map(({ env }) => Number(env["PORT"])));
  await eventually(() => expect(balancer.ready()).toHaveLength(NODES), START_MS);
  const { status, body } = await call(new Agent(), "POST", "/v1/devices/provision", { count: AGENTS });
  expect(status).toBe(201);
  members = IssuedIdentity.array().parse(JSON.parse(body).data).map(toPairedDevice);
}, 300_000);
afterAll(async () => {
  await balancer.close();
  await sandbox.remove();
  await redis.close();
});

test("a rolling restart of three nodes under load loses no call and leaves no agent offline", { timeout: 400_000 }, async () => {
  const tracker = createCommandTracker(systemTime.elapsedMs);
  const alarms: string[] = [];
  let reconnected = 0;
  const group = createAgentGroup({
    url: balancer.url,
    members,
    tracker,
    time: systemTime,
    random: createRandom(7),
    seed: 7,
    heartbeatSec: null,
    pollOnlyPct: 0,
    rampPerSecond: 100,
    onAlarm: (text) => alarms.push(text),
    tune: (_member, base) => ({
      ...base,
      on: {
        ...base.on,
        away: () => {
          reconnected += 1;
        },
      },
    }),
  });
  group.start();
  await eventually(() => expect(group.connected).toBe(AGENTS), 60_000);

  const failed: string[] = [];
  const commandIds: string[] = [];
  let calls = 0;
  let over = false;
  const caller = async (index: number): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let n = index; !over; n += 1) {
      calls += 1;
      const deviceId = members[n % AGENTS]?.deviceId ?? "";
      const asked = n % 2 === 0 ? call(agent, "GET", `/v1/devices/${deviceId}`) : call(agent, "POST", `/v1/devices/${deviceId}/commands`, { type: "ping" });
      await asked.then(
        ({ status, body }) => {
          if (status >= 300) failed.push(`${status} ${body}`);
          else if (n % 2 === 1) commandIds.push((JSON.parse(body) as { data: { commandId: string } }).data.commandId);
        },
        (error: unknown) => failed.push(String(error)),
      );
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    agent.destroy();
  };
  const callers = Array.from({ length: CALLERS }, (_, index) => caller(index));

  const codes: (number | null)[] = [];
  for (const node of nodes) {
    codes.push((await node.gateway.end("SIGTERM")).code);
    node.gateway = await startGatewayProcess(node.env);
    await eventually(() => expect(balancer.ready()).toHaveLength(NODES), START_MS);
  }
  over = true;
  await Promise.all(callers);

  expect(codes).toEqual([0, 0, 0]);
  expect({ failed, alarms }).toEqual({ failed: [], alarms: [] });
  expect(calls).toBeGreaterThan(100);
  await withClient(databaseUrl, async (client) => {
    await eventually(async () => {
      const { rows } = await client.query("select count(*)::int as total, count(*) filter (where status = 'succeeded')::int as done from commands_now");
      expect(rows[0]).toEqual({ total: commandIds.length, done: commandIds.length });
    }, 60_000);
    expect((await client.query("select data from outbox_events where type = 'device.offline'")).rows).toEqual([]);
  });
  // Each agent moved by a handoff: it was never disconnected in between.
  expect({ reconnected, connected: group.connected }).toEqual({ reconnected: 0, connected: AGENTS });
  expect(group.reconnects).toBeGreaterThan(0);
  await group.stop();
});
