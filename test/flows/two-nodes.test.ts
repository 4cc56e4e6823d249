// Two gateways on one database and one Redis: their guarantees together. test/release/two-nodes-faults.test.ts has those that remain while Redis misbehaves.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { signedHeaders } from "../../protocol/index.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { attempt, connect } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { openStream } from "../kit/net/event-stream.ts";
import { at, BY_HINT_MS, openTwoNodes, TWO_NODES_ENV, TWO_NODES_SETTINGS, type TwoNodes } from "./two-nodes.ts";

let nodes: TwoNodes;
let a: World;
let b: World;
let tenant: TestTenant;
beforeAll(async () => {
  nodes = await openTwoNodes();
  ({ a, b, tenant } = nodes);
});
afterEach(() => nodes.settle());
afterAll(() => nodes.close());

describe("both nodes", () => {
  test("a command created on one node is pushed by the other as soon as its hint arrives", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(b, device);
    for (let n = 0; n < 20; n += 1) await nodes.delivered(a, device, socket, BY_HINT_MS);
  });

  test("the newest connection wins across nodes: the old one is closed with 4009 and commands go to the new one", async () => {
    const device = await tenant.device();
    const old = await nodes.join(a, device);
    const young = await nodes.join(b, device);
    expect((await old.closed()).code).toBe(4009);
    await nodes.delivered(a, device, young, BY_HINT_MS);
    expect(old.frames.filter(({ op }) => op === "command")).toEqual([]);
    const back = await nodes.join(a, device);
    expect((await young.closed()).code).toBe(4009);
    await nodes.delivered(b, device, back, BY_HINT_MS);
  });

  test("a disconnect and a removal close a socket on the other node by a hint, and every node refuses the removed agent", async () => {
    const device = await tenant.device();
    const first = await nodes.join(b, device);
    expect((await a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/disconnect`)).status).toBeLessThan(300);
    expect((await withTimeout(first.closed(), BY_HINT_MS, "the socket did not close")).code).toBe(1013);
    const second = await nodes.join(b, device);
    expect((await a.call(tenant.apiKey, "DELETE", `/v1/devices/${device.deviceId}`)).status).toBeLessThan(300);
    expect((await withTimeout(second.closed(), BY_HINT_MS, "the socket did not close")).code).toBe(4501);
    for (const world of [a, b]) expect(await attempt(at(world), device)).toMatchObject({ status: 403 });
  });

  test("a cancel reaches the agent through the other node", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(b, device);
    const commandId = await nodes.queue(a, device);
    await socket.next("command");
    socket.say("ack", { commandId, status: "running" });
    await socket.next("ack_ok");
    expect((await a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/cancel`)).status).toBeLessThan(300);
    expect((await socket.next("cancel")).data.commandId).toBe(commandId);
  });

  test("a signature that opened a socket on one node opens none on the other", async () => {
    const device = await tenant.device();
    const signed = signedHeaders(device.identity, "", new Date());
    nodes.keep(await connect(at(a), device, { signed }));
    expect(await attempt(at(b), device, { signed })).toMatchObject({ status: 401, body: { code: "INVALID_SIGNATURE", details: { reason: "replayed" } } });
  });

  test("a limit of 100 lets exactly 100 of 150 calls over both nodes pass", async () => {
    const limited = await a.tenant({ unlimited: false });
    const answers = await Promise.all(Array.from({ length: 150 }, (_, n) => (n % 2 === 0 ? a : b).call(limited.apiKey, "GET", "/v1/devices")));
    const statuses = answers.map(({ status }) => status);
    expect([statuses.filter((status) => status === 200).length, statuses.filter((status) => status === 429).length]).toEqual([100, 50]);
  });

  test("each node lists all nodes, and one can drain another", async () => {
    const third = await startWorld({ ...TWO_NODES_ENV, REDIS_URL: nodes.redis.url, NODE_ID: "node-c" }, { settings: TWO_NODES_SETTINGS, beside: a });
    const operator = await a.operator();
    const listed = async (world: World) =>
      (await world.call(operator, "GET", "/v1/admin/nodes")).body.data.map(({ nodeId }: { nodeId: string }) => nodeId).sort();
    expect([await listed(a), await listed(b)]).toEqual([
      ["node-a", "node-b", "node-c"],
      ["node-a", "node-b", "node-c"],
    ]);
    expect((await a.call(operator, "POST", "/v1/admin/nodes/node-c/drain")).status).toBe(200);
    await eventually(async () => expect((await third.call(anonymous, "GET", "/v1/health/ready")).status).toBe(503));
    await third.close();
    expect(await listed(b)).toEqual(["node-a", "node-b"]);
  });
});

describe("hints between nodes", () => {
  test("a viewer sees a command that is queued, sent and ended on the other node", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(a, device);
    const { seen, close } = await openStream(b.url, { headers: tenant.apiKey.headers("") });
    const commandId = await nodes.queue(a, device);
    await socket.next("command");
    await eventually(() => expect(seen()).toMatch(new RegExp(`command.changed.*${commandId}.*"sent"`)), BY_HINT_MS);
    socket.say("ack", { commandId, status: "succeeded" });
    await eventually(() => expect(seen()).toMatch(new RegExp(`command.completed.*${commandId}`)), BY_HINT_MS);
    close();
  });

  test("a long poll wakes for a command queued on the other node, and a waiting call for an outcome reported there", async () => {
    const device = await tenant.device();
    const polled = b.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands?wait=50`);
    const waited = a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands?wait=30`, { body: { type: "ping" } });
    const [command] = (await withTimeout(polled, 20_000, "the poll did not wake")).body.data;
    await b.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${command.commandId}/ack`, { body: { status: "succeeded" } });
    expect((await withTimeout(waited, 20_000, "the call did not wake")).body.data).toMatchObject({ commandId: command.commandId, status: "succeeded" });
  });
});
