// Logs of apps: their end and what comes, from a real agent over one node or two, to those who may read them and no further. Each test has
// a device of its own, and most wait for its agent, so they run beside each other; the last one takes Redis away from all.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CUT_MARK, type LogBatch, MAX_CHUNK_BYTES } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { failureSaid } from "../../../server/features/apps/failures.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, type Caller, startWorld, type World } from "../../kit/gateway/world.ts";
import { startRedis, type TestRedis } from "../../kit/stores/redis.ts";
import { insertApp, type LoggedDevice, openLoggedDevice, openViewer, type Viewer } from "./logs-kit.ts";

const SOON_MS = 20_000;
const becomes = (ask: () => unknown, wanted: unknown): Promise<void> => eventually(async () => expect(await ask()).toEqual(wanted), SOON_MS);
const SETTINGS = { appLogs: { renewEveryMs: 100, tailBudgetMs: 3_000 } };

let redis: TestRedis;
let world: World;
let second: World;
const open: { stop(): Promise<void> }[] = [];
const viewers: Viewer[] = [];
beforeAll(async () => {
  redis = await startRedis();
  const env = { REDIS_URL: redis.url, RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" };
  world = await startWorld(env, { settings: SETTINGS });
  second = await startWorld(env, { beside: { databaseUrl: world.databaseUrl, dataDir: world.dataDir }, settings: SETTINGS });
});
afterAll(async () => {
  for (const viewer of viewers) viewer.close();
  await Promise.all(open.map((each) => each.stop()));
  await second.close();
  await world.close();
  await redis.close();
});

const logged = async (url?: string): Promise<LoggedDevice> => {
  const device = await openLoggedDevice(world, url);
  open.push(device);
  return device;
};
const watch = async ({ tenant, appId }: Pick<LoggedDevice, "tenant" | "appId">, { url = world.url, as = tenant.apiKey as Caller } = {}): Promise<Viewer> => {
  const viewer = await openViewer(url, `/apps/${appId}/logs/stream`, as);
  viewers.push(viewer);
  return viewer;
};
const read = ({ tenant, appId }: Pick<LoggedDevice, "tenant" | "appId">, query = "", as: Caller = tenant.apiKey, at = world): Promise<Answer> =>
  at.call(as, "GET", `/v1/apps/${appId}/logs${query}`);
const send = (as: Caller, lines: readonly (object | string)[], at = world): Promise<Answer> =>
  at.call(as, "POST", "/v1/agent/logs", { rawBody: lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n") });

const head = (followId: string = newId("flw")) => ({ followId, n: 1 });
const line = (text = "x") => ({ at: "2026-11-22T10:00:00.000Z", stream: "stdout", text });
/** Of the only order to the tenant's devices. */
const followIdOf = async ({ tenant }: LoggedDevice): Promise<string> => {
  const { rows } = await world.sql.query("select payload->>'followId' as id from commands where tenant_id = $1", [tenant.tenantId]);
  expect(rows).toHaveLength(1);
  return rows[0].id;
};

describe.concurrent("the end of a log", () => {
  test("comes from the device, the newest lines, oldest first", async () => {
    const device = await logged();
    device.host.write("one", "two", "three");
    const { status, body } = await read(device, "?tail=2");
    expect([status, body.data.truncated, body.data.lines.map(({ text }: { text: string }) => text)]).toEqual([200, false, ["two", "three"]]);
    expect(body.data.lines[0]).toMatchObject({ stream: "stdout", at: expect.stringMatching(/^\d{4}-.*Z$/) });
  });
  test("leaves out lines that are older than `since`, and says when it was cut short", async () => {
    const device = await logged();
    device.host.lines.push("2026-01-01T00:00:00.000Z old", "2026-01-02T00:00:00.000Z\tnew");
    const { body } = await read(device, "?since=2026-01-01T12:00:00Z");
    expect(body.data).toEqual({ lines: [{ at: "2026-01-02T00:00:00.000Z", stream: "stderr", text: "new" }], truncated: false });
    device.host.write(...Array.from({ length: 1_000 }, (_, n) => `${n} ${"x".repeat(8_000)}`));
    const long = (await read(device, "?tail=1000")).body.data;
    expect(long.truncated).toBe(true);
    expect(long.lines.at(-1).text).toMatch(/^999 /);
  });
  test("reaches a viewer on another node than the agent's", async () => {
    const device = await logged(second.url);
    device.host.write("from afar");
    expect((await read(device)).body.data.lines).toMatchObject([{ text: "from afar" }]);
  });
  test("of an app that no agent has reported is empty, and of a device that is away is refused", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const away = await read({ tenant, appId: await insertApp(world, tenant, device) });
    expect([away.status, away.body.code]).toEqual([409, "DEVICE_OFFLINE"]);
    expect((await read({ tenant, appId: await insertApp(world, tenant, device, { reported: false }) })).body.data).toEqual({ lines: [], truncated: false });
  });
  test("of an agent that does not answer ends the call in its time", async () => {
    const device = await logged();
    device.host.tail = () => new Promise(() => undefined);
    const { status, body } = await read(device);
    expect([status, body.code, body.details]).toEqual([503, "SERVICE_UNAVAILABLE", { reason: "agent_timeout", seconds: 3 }]);
  });
  test("is nowhere in the database", async () => {
    const device = await logged();
    device.host.write("only for your eyes");
    await read(device);
    const stored = async () => (await world.sql.query("select output from commands where tenant_id = $1", [device.tenant.tenantId])).rows;
    await becomes(stored, [{ output: { lines: 1 } }]);
  });
});

describe.concurrent("a log that is followed", () => {
  test("shows every viewer on every node the lines in their order", async () => {
    const device = await logged(second.url);
    const [here, there] = [await watch(device), await watch(device, { url: second.url })];
    await becomes(() => device.host.followers(), 2);
    const lines = Array.from({ length: 300 }, (_, n) => `line ${n}`);
    device.host.write(...lines);
    await becomes(() => [here.texts(), there.texts()], [lines, lines]);
  });
  test("asks the agent once for all viewers of a node, and not for longer than somebody watches", async () => {
    const device = await logged();
    const [one, other] = [await watch(device), await watch(device)];
    device.host.write("hello");
    await becomes(() => [one.texts(), other.texts()], [["hello"], ["hello"]]);
    expect(device.host.followers()).toBe(1);
    one.close();
    device.host.write("still here");
    await becomes(() => other.texts(), ["hello", "still here"]);
    other.close();
    device.host.write("nobody");
    await becomes(() => device.host.followers(), 0);
    const { rows } = await world.sql.query("select count(*)::int as n from commands where tenant_id = $1 and type = 'app.logs.follow'", [
      device.tenant.tenantId,
    ]);
    expect(rows).toEqual([{ n: 1 }]);
  });
  test("tells a viewer that the device is away, and goes on when it is back", async () => {
    const device = await logged();
    await device.stop();
    await becomes(async () => (await read(device)).body.code, "DEVICE_OFFLINE");
    const viewer = await watch(device);
    await becomes(() => viewer.batches.at(-1)?.notice, "device_offline");
    await device.start();
    await becomes(() => device.host.followers(), 1);
    device.host.write("back");
    await becomes(() => viewer.texts(), ["back"]);
    expect(viewer.batches.at(-1)?.notice).toBeNull();
  });
  test("ends for an app that is not on its device", async () => {
    const tenant = await world.tenant();
    const appId = await insertApp(world, tenant, await tenant.device(), { reported: false });
    const viewer = await watch({ tenant, appId });
    await viewer.ended;
    expect(viewer.batches.map(({ notice }) => notice)).toContain("not_installed");
  });
  test("drops the oldest lines of a viewer that does not read, counts them, and goes on", async () => {
    const device = await logged();
    const stop = new AbortController();
    const response = await fetch(`${world.url}/v1/apps/${device.appId}/logs/stream`, { headers: device.tenant.apiKey.headers(""), signal: stop.signal });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    await becomes(() => device.host.followers(), 1);
    const followId = await followIdOf(device);
    const [chunks, perChunk] = [80, 30];
    // Far more than the sockets take.
    const lines = Array.from({ length: perChunk }, (_, n) => line(`${n} ${"x".repeat(8_000)}`));
    for (let n = 0; n < chunks; n += 1) expect((await send(device.device.as, [{ followId, n: 1_000 + n }, ...lines])).body.data).toEqual({ watched: true });
    await send(device.device.as, [{ followId, n: 2_000, skipped: 7 }, line("the end")]);
    let text = "";
    while (!text.includes("the end")) text += (await reader?.read())?.value ?? "";
    stop.abort();
    const batches: LogBatch[] = text.split("\n\n").flatMap((event) => (event.startsWith("data: ") && event.endsWith("}") ? [JSON.parse(event.slice(6))] : []));
    const skipped = batches.reduce((sum, batch) => sum + batch.skipped, 0);
    const shown = batches.reduce((sum, batch) => sum + batch.lines.length, 0);
    expect(skipped).toBeGreaterThan(7);
    expect(skipped + shown).toBe(chunks * perChunk + 1 + 7);
  });
  test("is bounded per device", async () => {
    const device = await logged();
    const statuses = [];
    for (let n = 0; n < 9; n += 1) {
      const appId = await insertApp(world, device.tenant, device.device);
      const viewer = await watch({ ...device, appId });
      statuses.push(viewer.status === 200 ? 200 : [viewer.status, viewer.body?.code, viewer.body?.details]);
    }
    expect(statuses).toEqual([...Array(8).fill(200), [429, "STREAM_LIMIT_REACHED", { per: "device", limit: 8 }]]);
  });
  test("of a deployment is that of its app", async () => {
    const device = await logged();
    const deploymentId = newId("dep");
    const content = "'key-value', '1.0.0', $3, '{}', 1, 1";
    await world.sql.query(
      `insert into deployments (deployment_id, tenant_id, name, status, template, template_version, device_id, configuration, revision, current_revision)
       values ($1, $2, 'logged', 'active', ${content})`,
      [deploymentId, device.tenant.tenantId, device.device.deviceId],
    );
    await world.sql.query("update apps set deployment_id = $1 where app_id = $2", [deploymentId, device.appId]);
    device.host.write("by deployment");
    const tail = await world.call(device.tenant.apiKey, "GET", `/v1/deployments/${deploymentId}/logs`);
    expect(tail.body.data.lines).toMatchObject([{ text: "by deployment" }]);
    const viewer = await openViewer(world.url, `/deployments/${deploymentId}/logs/stream`, device.tenant.apiKey);
    viewers.push(viewer);
    await becomes(() => device.host.followers(), 1);
    device.host.write("and on");
    await becomes(() => viewer.texts(), ["and on"]);
  });
});

test("the last lines of a failure are at most 20 and 4 KiB, and show no secret, not even a line of one", () => {
  const lines = Array.from({ length: 50 }, (_, n) => `${n} ${"ä".repeat(150)} first half of a secret, -----second half`);
  const said = { stage: "running", reason: "EXITED", message: "first half of a secret", revision: 1, lines } as const;
  const failure = failureSaid(said, null, ["first half of a secret\n-----second half"]);
  expect(failure.lines.length).toBeLessThanOrEqual(20);
  expect(Buffer.byteLength(failure.lines.join("\n"))).toBeLessThanOrEqual(4_096);
  expect(failure.lines.at(-1)).toMatch(/^49 .*\*\*\*, \*\*\*$/);
  expect(JSON.stringify(failure)).not.toMatch(/half/);
});

describe.concurrent("who may read", () => {
  test("operators may, viewers may not, and other tenants find no such app", async () => {
    const device = await logged();
    const [viewer, stranger] = [await device.tenant.user("viewer"), await (await world.tenant()).user("owner")];
    const ask = async (as: Caller) => [(await read(device, "", as)).body.code, (await watch(device, { as })).body?.code];
    expect(await ask(viewer)).toEqual(["FORBIDDEN", "FORBIDDEN"]);
    expect(await ask(stranger)).toEqual(["APP_NOT_FOUND", "APP_NOT_FOUND"]);
    expect((await read(device, "", await device.tenant.user("operator"))).status).toBe(200);
  });
  test("a stream ends when its reader loses the right to it", async () => {
    const device = await logged();
    const operator = await device.tenant.user("operator");
    const viewer = await watch(device, { as: operator });
    expect(viewer.status).toBe(200);
    await world.sql.query("delete from memberships where tenant_id = $1 and role = 'operator'", [device.tenant.tenantId]);
    await viewer.ended;
  }, 20_000);
});

describe.concurrent("what an agent sends", () => {
  test("is told that nobody watches", async () => {
    const { device } = await logged();
    expect((await send(device.as, [head(), line()])).body.data).toEqual({ watched: false });
  });
  test.each([
    ["a head that is none", ["{}"], 1],
    ["no JSON", [head(), line(), "nonsense"], 3],
    ["a line without a time", [head(), { stream: "stdout", text: "x" }], 2],
    ["a line that is no object", [head(), "[1]"], 2],
  ])("with %s is refused with the number of the line", async (_, lines, number) => {
    const { device } = await logged();
    const { status, body } = await send(device.as, lines);
    expect([status, body.code, body.details.line]).toEqual([400, "VALIDATION_FAILED", number]);
  });
  test("larger than a chunk is refused, and people may not send at all", async () => {
    const { device, tenant } = await logged();
    expect((await send(device.as, [head(), line("x".repeat(MAX_CHUNK_BYTES))])).body.code).toBe("PAYLOAD_TOO_LARGE");
    expect((await send(tenant.apiKey, [head()])).body.code).toBe("FORBIDDEN");
  });
  test("is cleaned of NUL and broken characters, and cut where it is too long", async () => {
    const device = await logged();
    const viewer = await watch(device);
    await becomes(() => device.host.followers(), 1);
    const followId = await followIdOf(device);
    const raw = `{"at":"2026-11-22T10:00:00.000Z","stream":"stdout","text":"a\\u0000b\\ud800c"}`;
    const { body } = await send(device.device.as, [{ followId, n: 1_000 }, raw, line("y".repeat(20_000))], second);
    expect(body.data).toEqual({ watched: true });
    await becomes(() => viewer.texts(), ["a\ufffdb\ufffdc", `${"y".repeat(16_384)}${CUT_MARK}`]);
  });
  test("for another device's viewer reaches nobody", async () => {
    const device = await logged();
    await watch(device);
    await becomes(() => device.host.followers(), 1);
    const other = await device.tenant.device();
    expect((await send(other.as, [head(await followIdOf(device)), line("forged")])).body.data).toEqual({ watched: false });
  });
});

test("a gateway whose nodes do not reach each other says so, and still shows what its own agents send", async () => {
  const device = await logged();
  await redis.kill();
  try {
    const viewer = await watch(device);
    await eventually(() => expect(viewer.batches.map(({ notice }) => notice)).toContain("nodes_apart"));
    await becomes(() => device.host.followers(), 1);
    device.host.write("all the same");
    await becomes(() => viewer.texts(), ["all the same"]);
  } finally {
    await redis.start();
  }
});
