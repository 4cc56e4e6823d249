// Canaries: secrets of every kind go through a real gateway at debug level, in calls that succeed and calls that fail. The test then
// searches for them in everything that remains: output, metrics, every row of the database, Redis and every command that Redis received.
import { once } from "node:events";
import net from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import pg from "pg";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HEADERS, signedHeaders } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { attempt, connect, greet } from "../../channel/harness.ts";
import { bootstrapTenant, createSandbox, type GatewayProcess, type Sandbox, startGatewayProcess, withDatabase } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startRedis, type TestRedis } from "../../kit/stores/redis.ts";

const CONTROL = "control-9f3a71";
const planted = (kind: string): string => `canary-${kind}-${newId("x").slice(2)}`;

/** Secrets that must be nowhere. */
const credentials = new Map<string, string>();
/** Contents that the owner stores, which must not leave the database. */
const contents = new Map<string, string>();
const everywhere: Record<"output" | "metrics" | "database" | "redis" | "said to redis", string> = {
  output: "",
  metrics: "",
  database: "",
  redis: "",
  "said to redis": "",
};

let sandbox: Sandbox;
let redis: TestRedis;
let gateway: GatewayProcess;

interface Said {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
  readonly body: any;
}
const call = async (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: unknown): Promise<Said> => {
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: { ...(text === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(text === undefined ? {} : { body: text }),
  });
  const answer = await response.text();
  return { status: response.status, body: answer.startsWith("{") || answer.startsWith("[") ? JSON.parse(answer) : answer };
};
const must = ({ status, body }: Said) => {
  expect(status, JSON.stringify(body)).toBeLessThan(300);
  return body?.data;
};

const startMonitor = async (port: number): Promise<net.Socket> => {
  const socket = net.connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("data", (chunk: Buffer) => {
    everywhere["said to redis"] += chunk.toString("latin1");
  });
  socket.write("MONITOR\r\n");
  await eventually(() => expect(everywhere["said to redis"]).toContain("+OK"));
  return socket;
};

const dumpRedis = async (url: string): Promise<string> => {
  const client = createClient({ url, RESP: 2 });
  await client.connect();
  const parts: string[] = [];
  for await (const keys of client.scanIterator())
    for (const key of keys) {
      const type = await client.type(key);
      const read: Readonly<Record<string, readonly string[]>> = { string: ["GET"], hash: ["HGETALL"], set: ["SMEMBERS"], zset: ["ZRANGE"], list: ["LRANGE"] };
      const [command = "TYPE"] = read[type] ?? [];
      parts.push(key, JSON.stringify(await client.sendCommand([command, key, ...(type === "zset" || type === "list" ? ["0", "-1"] : [])])));
    }
  client.destroy();
  return parts.join("\n");
};

const dumpDatabase = async (sql: pg.Client): Promise<string> => {
  const { rows: tables } = await sql.query<{ name: string }>("select quote_ident(tablename) as name from pg_tables where schemaname = 'public'");
  const texts: string[] = [];
  for (const { name } of tables) texts.push(...(await sql.query<{ row: string }>(`select t::text as row from ${name} t`)).rows.map(({ row }) => row));
  return texts.join("\n");
};

const setUp = async (): Promise<{ readonly monitor: net.Socket }> => {
  redis = await startRedis();
  const password = planted("redis-password");
  credentials.set("Redis password", password);
  await redis.ask("ACL", "SETUSER", "canary", "on", `>${password}`, "~*", "&*", "+@all");
  const monitor = await startMonitor(redis.port);
  const settings = { INTERNAL_TOKEN: planted("internal-token"), MASTER_KEY: Buffer.from(planted("k").slice(-32).padStart(32, "k")).toString("base64") };
  credentials.set("internal token", settings.INTERNAL_TOKEN).set("master key", settings.MASTER_KEY);
  sandbox = await createSandbox({
    ...settings,
    REDIS_URL: `redis://canary:${password}@127.0.0.1:${redis.port}`,
    LOG_LEVEL: "debug",
    NODE_ID: CONTROL,
    INTERNAL_PORT: "0",
    EDGE_PORT: "0",
    RATE_LIMIT_PAIRING: "off",
    RATE_LIMIT_FAILED_AUTH: "off",
  });
  gateway = await startGatewayProcess(sandbox.env);
  return { monitor };
};

/** Makes every call that succeeds and collects the secrets that it returns. */
const succeed = async () => {
  const bootstrapped = await bootstrapTenant(sandbox);
  credentials.set("JWT", bootstrapped.token).set("API key", bootstrapped.apiKey).set("enrollment token", bootstrapped.enrollmentToken);
  const user = { authorization: `Bearer ${bootstrapped.token}` };
  const key = { "x-api-key": bootstrapped.apiKey, "x-svc-tenant-id": bootstrapped.tenantId };
  const initiate = async () =>
    must(await call("POST", "/v1/pairing/initiate", {}, { device_fingerprint: newId("fp"), device_name: "c", platform: "linux" })).pairing_code as string;
  const code = await initiate();
  const { activation_token: activation } = must(
    await call("POST", "/v1/pairing/prepare-activation", user, { pairing_code: code, tenant_id: bootstrapped.tenantId }),
  );
  const paired = must(await call("POST", "/v1/pairing/activate", {}, { pairing_code: code, activation_token: activation, user_email: "a@example.com" }));
  const another = must(await call("POST", "/v1/pairing/auto-activate", {}, { enrollment_token: bootstrapped.enrollmentToken, pairing_code: await initiate() }));
  credentials.set("secret of another device", another.shared_secret);
  const { ticket } = must(await call("POST", "/v1/auth/stream-ticket", user, {}));
  credentials.set("pairing code", code).set("activation token", activation).set("device secret", paired.shared_secret).set("stream ticket", ticket);
  const identity = { agentId: paired.agent_id, tenantId: paired.tenant_id, secret: paired.shared_secret };
  const device = { deviceId: paired.device_id, identity };
  const at = { url: gateway.url.replace(/^http/, "ws"), clock: { now: () => new Date() } };
  const socket = await connect(at, device);
  await greet(at, socket, device);
  const payload = planted("payload");
  contents.set("command payload", payload);
  must(await call("POST", `/v1/devices/${device.deviceId}/commands`, { ...key, "idempotency-key": newId("k") }, { type: "echo", payload: { payload } }));
  const { data } = await socket.next("command");
  socket.say("ack", { commandId: data.command.commandId, status: "succeeded", output: { payload } });
  await socket.next("ack_ok");
  const polled = signedHeaders(identity, "", new Date(Date.now() + 5));
  must(await call("GET", `/v1/devices/${device.deviceId}/commands`, polled));
  return { bootstrapped, user, key, device, at, socket, ticket, activation, code };
};

/** Gets refused in every way, each time with a secret where it does not belong. */
const fail = async (
  { bootstrapped, user, key, device, at, socket, ticket, activation }: Awaited<ReturnType<typeof succeed>>,
  sql: pg.Client,
): Promise<void> => {
  const secret = device.identity.secret;
  const all = [...credentials.values()];
  for (const each of all) {
    await call("GET", `/v1/devices?q=${encodeURIComponent(each)}&token=${encodeURIComponent(each)}`, user);
    await call("GET", `/v1/nowhere/${encodeURIComponent(each)}?api_key=${encodeURIComponent(each)}`);
    await call("POST", "/v1/pairing/initiate", {}, `{"device_fingerprint":"${each}`);
    await call("POST", "/v1/pairing/activate", {}, { [each]: each, pairing_code: each, activation_token: each, user_email: each });
    await call("GET", `/trpc/devices.list,${encodeURIComponent(each)}?batch=1&input=${encodeURIComponent(`{"0":{"q":"${each}"}`)}`, user);
    await call("GET", `/trpc/live.watch?connectionParams=${encodeURIComponent(`{"ticket":"${each}"`)}&input=${encodeURIComponent(each)}`, {
      accept: "text/event-stream",
    });
    await call("GET", "/v1/devices", { authorization: `Bearer ${each}x`, cookie: each, "user-agent": each, traceparent: each.slice(0) });
    await call("GET", "/v1/devices", { "x-api-key": each });
    await attempt(at, device, {
      path: `/v1/agent/connect?secret=${encodeURIComponent(each)}`,
      signed: { ...signedHeaders(device.identity, "", new Date()), [HEADERS.signature]: "0".repeat(64) },
    });
  }
  expect(
    (await call("POST", "/v1/pairing/activate", {}, { pairing_code: "AAAA-AAAA", activation_token: activation, user_email: "a@example.com" })).status,
  ).toBeGreaterThanOrEqual(400);
  for (const text of [
    `{"op":"${secret}","id":"1","data":{}}`,
    `{"op":"hello"${secret}`,
    `{"op":"ack","id":"2","data":{"commandId":"${secret}","status":"${secret}"}}`,
  ])
    socket.raw(text);
  const stream = new AbortController();
  const params = encodeURIComponent(JSON.stringify({ ticket }));
  const watching = await fetch(`${gateway.url}/trpc/live.watch?connectionParams=${params}`, {
    headers: { accept: "text/event-stream" },
    signal: stream.signal,
  });
  expect(watching.status).toBe(200);
  stream.abort();
  // PostgreSQL's message about a refused row contains the whole row.
  await sql.query("alter table commands add constraint canary check (type <> 'diagnostics')");
  const broken = await call("POST", `/v1/devices/${device.deviceId}/commands`, key, {
    type: "diagnostics",
    payload: { payload: contents.get("command payload") },
  });
  expect(broken.status).toBe(500);
  await sql.query("alter table stream_tickets rename to stream_tickets_away");
  expect((await call("POST", "/v1/auth/stream-ticket", { authorization: `Bearer ${bootstrapped.token}` }, {})).status).toBe(500);
  await sql.query("alter table stream_tickets_away rename to stream_tickets");
};

const collect = async (sql: pg.Client): Promise<void> => {
  // Plant the control in each place, so that each search must find it.
  await call("GET", "/v1/nowhere", { "x-request-id": CONTROL });
  await redis.ask("SET", CONTROL, CONTROL);
  await eventually(() => expect(gateway.output.stdout).toContain(CONTROL));
  const port = /"internalPort":(\d+)/.exec(gateway.output.stdout)?.[1];
  const page = await fetch(`http://127.0.0.1:${port}/internal/metrics`, { headers: { authorization: `Bearer ${credentials.get("internal token")}` } });
  everywhere.metrics = await page.text();
  everywhere.database = await dumpDatabase(sql);
  everywhere.redis = await dumpRedis(redis.url);
  await nextTurn();
  await gateway.end("SIGTERM");
  everywhere.output = gateway.output.stdout + gateway.output.stderr;
};

beforeAll(async () => {
  const { monitor } = await setUp();
  await withDatabase(sandbox, async (url) => {
    credentials.set("database password", decodeURIComponent(new URL(url).password));
    const sql = new pg.Client(url);
    await sql.connect();
    try {
      await fail(await succeed(), sql);
      await collect(sql);
    } finally {
      await sql.end();
    }
  });
  monitor.destroy();
}, 120_000);
afterAll(async () => {
  await redis?.close();
  await sandbox?.remove();
});

const KINDS = [
  ...["Redis password", "internal token", "master key", "database password", "JWT", "API key", "enrollment token"],
  ...["pairing code", "activation token", "device secret", "secret of another device", "stream ticket"],
];
const PLACES = ["output", "metrics", "database", "redis", "said to redis"] as const;

describe.each(PLACES)("%s", (place) => {
  test("the search finds the planted control", () => expect(everywhere[place]).toContain(CONTROL));

  test.each(KINDS)("the search finds no %s", (kind) => {
    const secret = credentials.get(kind) ?? "";
    expect(secret.length, kind).toBeGreaterThanOrEqual(6);
    for (const form of [secret, Buffer.from(secret).toString("hex"), encodeURIComponent(secret)])
      expect(everywhere[place].includes(form), `${kind} in ${place}`).toBe(false);
  });
});

test.each(["output", "metrics", "redis", "said to redis"] as const)("a command's payload never reaches %s", (place) => {
  expect(everywhere[place].includes(contents.get("command payload") ?? "")).toBe(false);
});
test("a command's payload is in the database, where its owner put it", () => expect(everywhere.database).toContain(contents.get("command payload")));
test("two of the failed calls were real defects and logged as such", () => {
  expect(everywhere.output.split("\n").filter((line) => line.includes('"msg":"call failed"'))).toHaveLength(2);
});
