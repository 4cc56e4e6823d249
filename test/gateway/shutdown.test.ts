// Graceful shutdown as callers of REST see it, from the notice to the last answer. Each test has a leaving node of its own, whose notice is in whole
// seconds, so the nodes leave beside each other.
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { withClient } from "../kit/stores/database.ts";
import { openRaw } from "./raw.ts";

const NOTICE = { LEAVE_NOTICE_SECONDS: "5" };
/** A node looks this often whether an operator drains it. */
const BEATS = { admin: { beatEveryMs: 200 } };
let stays: World;
let tenant: TestTenant;
beforeAll(async () => {
  stays = await startWorld({ NODE_ID: "stays" });
  tenant = await stays.tenant();
});
afterAll(() => stays.close());

/** A node beside the one that stays. It knows the other from its first beat on. */
const startLeavingNode = (env: Readonly<Record<string, string>> = NOTICE): Promise<World> =>
  startWorld({ NODE_ID: newId("node"), ...env }, { beside: stays, settings: BEATS });
const isReady = async ({ call }: World): Promise<boolean> => (await call(anonymous, "GET", "/v1/health/ready")).status === 200;

const ask = (url: string, agent: Agent): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const asked = httpRequest(url, { agent }, (response) => response.resume().once("end", () => resolve(response)));
    asked.once("error", reject).end();
  });

describe.concurrent("shutdown beside another node", () => {
  test("a node announces its shutdown at once and serves requests until its notice is over, closing each connection with its answer", async () => {
    const world = await startLeavingNode();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await ask(`${world.url}/v1/health/live`, agent)).headers.connection).not.toBe("close");
    const closed = world.app.close();
    const last = await ask(`${world.url}/v1/health/live`, agent);
    expect([last.statusCode, last.headers.connection]).toEqual([200, "close"]);
    expect(await isReady(world)).toBe(false);
    const operator = await stays.operator();
    await eventually(async () => {
      const listed = await stays.call(operator, "GET", "/v1/admin/nodes");
      expect(listed.body.data.find(({ nodeId }: { nodeId: string }) => nodeId === world.app.nodeId)).toMatchObject({ draining: true });
    });
    expect((await world.call(tenant.apiKey, "GET", "/v1/devices")).status).toBe(200);
    await closed;
    await expect(ask(`${world.url}/v1/health/live`, agent)).rejects.toThrow("ECONNREFUSED");
    agent.destroy();
    await world.close();
  });

  test("a node that shuts down closes connections after HEAD and OPTIONS too, with a correct length", async () => {
    const world = await startLeavingNode();
    // Open these before the shutdown: the node answers them like new ones.
    const [head, preflight] = await Promise.all([openRaw(world.url), openRaw(world.url)]);
    const closed = world.app.close();
    await head.write("HEAD /v1/health/live HTTP/1.1\r\nHost: gateway\r\n\r\n");
    await preflight.write("OPTIONS /v1/devices HTTP/1.1\r\nHost: gateway\r\n\r\n");
    await head.until(() => /^connection: close\r\n(.*\r\n)*content-length: [1-9]\d{1,3}\r$/im.test(head.seen.text));
    await preflight.closed();
    expect(preflight.seen.text).toMatch(/^HTTP\/1.1 204 .*\r\n(.+\r\n)*connection: close\r\n(.+\r\n)*content-length: 0\r\n/i);
    head.end();
    await closed;
    await world.close();
  });

  test("a node that shuts down ends a long poll early with no commands", async () => {
    const world = await startLeavingNode({ LEAVE_NOTICE_SECONDS: "1" });
    const device = await tenant.device();
    const polled = world.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands?wait=50`);
    await eventually(async () =>
      expect(
        await withClient(
          stays.databaseUrl,
          async (client) => (await client.query("select 1 from device_presence where device_id = $1 and connectivity = 'polling'", [device.deviceId])).rows,
        ),
      ).toHaveLength(1),
    );
    const closed = world.app.close();
    expect(await withTimeout(polled, 10_000, "the poll did not end")).toMatchObject({ status: 200, body: { data: [] } });
    await closed;
    await world.close();
  });

  test("a node that shuts down answers a request in progress, however long it takes", async () => {
    const world = await startLeavingNode({ LEAVE_NOTICE_SECONDS: "0" });
    const device = await tenant.device();
    const status = await withClient(stays.databaseUrl, async (client) => {
      await client.query("begin");
      await client.query("lock table commands in exclusive mode");
      const held = world.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" } });
      await eventually(async () =>
        expect((await client.query("select 1 from pg_locks where not granted and relation = 'commands'::regclass")).rows.length).toBeGreaterThan(0),
      );
      const closed = world.app.close();
      await eventually(() => expect(fetch(`${world.url}/v1/health/live`)).rejects.toThrow());
      await client.query("commit");
      const answer = await held;
      await closed;
      return answer.status;
    });
    expect(status).toBe(201);
    await world.close();
  });

  test("a node that an operator drains closes connections with their answers and keeps running", async () => {
    const world = await startLeavingNode({ LEAVE_NOTICE_SECONDS: "0" });
    expect((await stays.call(await stays.operator(), "POST", `/v1/admin/nodes/${world.app.nodeId}/drain`)).status).toBe(200);
    await eventually(async () => expect(await isReady(world)).toBe(false), 15_000);
    expect((await world.call(tenant.apiKey, "GET", "/v1/devices")).headers.get("connection")).toBe("close");
    await world.close();
  });
});

test("a node that shuts down keeps idle connections open for a while, because a request may be on its way", async () => {
  const world = await startWorld({ NODE_ID: "lingers", LEAVE_NOTICE_SECONDS: "0" }, { beside: stays, settings: { lingerMs: 20_000 } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  await ask(`${world.url}/v1/health/live`, agent);
  const closed = world.app.close();
  await eventually(() => expect(fetch(`${world.url}/v1/health/live`)).rejects.toThrow());
  expect((await ask(`${world.url}/v1/health/live`, agent)).statusCode).toBe(200);
  // That was the last connection, so the node waits no longer.
  await withTimeout(closed, 10_000, "the node did not close");
  agent.destroy();
  await world.close();
});
