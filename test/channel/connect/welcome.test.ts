// Agents learn every wait from the gateway before they need it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { CAPABILITIES, contract } from "../../../protocol/index.ts";
import { callable, inside, userOf } from "../../kit/gateway/call.ts";
import { connect, startNode, type TestNode } from "../harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

test("welcome carries the waits for resends, heartbeats, polls and reconnects", async () => {
  const socket = await connect(node, await node.device());
  expect((await socket.next("welcome")).data).toMatchObject({
    capabilities: [...CAPABILITIES],
    ack: { resendMs: 15_000, capMs: 300_000 },
    heartbeat: { intervalSec: 30, jitterPct: 10, graceMs: 10_000 },
    poll: { intervalSec: 30, safetySec: 900 },
    reconnect: { firstWindowMs: 5_000, baseMs: 1_000, capMs: 300_000, stableAfterSec: 60 },
  });
  socket.end();
});

test("a provisioned device gets the address of its socket and the spread of its first connect", async () => {
  const { provision } = callable(contract.devices, node.devices.handlers, node.db);
  const { items } = await provision(inside(await node.tenant(), userOf("u")), { count: 2, tags: [] });
  const connect = { url: "wss://api.example/v1/agent/connect", coldStartMs: 30_000 };
  expect(items).toMatchObject([{ connect }, { connect }]);
});
