// A visitor reaches a carrier that another node holds, through the internal listener of that node.
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DialFailure } from "../../server/core/ports/carriers.ts";
import { createCarriers, type OwnCarriers } from "../../server/edge/carrier/carriers.ts";
import { createRelayServer, relayTo } from "../../server/edge/carrier/relay.ts";
import { type EdgeRig, portOf, startEdgeRig } from "./rig.ts";

const service = createServer((socket: Socket) => {
  socket.on("error", () => undefined);
  socket.on("data", (asked: Buffer) => {
    if (asked.toString() === "break") socket.resetAndDestroy();
    else socket.end(`answer to ${asked}`);
  });
});
const internal = createHttpServer();
let rig: EdgeRig;
let elsewhere: OwnCarriers;
beforeAll(async () => {
  service.listen(0, "127.0.0.1");
  internal.listen(0, "127.0.0.1");
  await Promise.all([once(service, "listening"), once(internal, "listening")]);
  rig = await startEdgeRig();
  await rig.agent("dev_1", { tun_a: portOf(service), "10.0.0.1:80": portOf(service), tun_closed: 1 });
  const relay = createRelayServer(rig.carriers);
  internal.on("upgrade", (request, socket, head) => void relay(request, socket, head));
  const target = { url: `http://127.0.0.1:${portOf(internal)}` };
  elsewhere = createCarriers({ elsewhere: (key, authority, options) => relayTo({ target, token: "t", key, authority, options }) });
});
afterAll(async () => {
  await rig.close();
  service.close();
  internal.closeAllConnections();
  internal.close();
});

test.each(["tun_a", "10.0.0.1:80"])("bytes pass in both directions to %s", async (authority) => {
  const stream = await elsewhere.dial("dev_1", authority);
  stream.write("a visitor");
  expect(await text(stream)).toBe("answer to a visitor");
});

test("a service that breaks off is told apart from one that ends", async () => {
  const stream = await elsewhere.dial("dev_1", "tun_a");
  stream.write("break");
  await expect(text(stream)).rejects.toThrow();
});

test.each([
  ["dev_1", "tun_closed", "refused"],
  ["dev_1", "tun_unknown", "unknown"],
  ["dev_2", "tun_a", "offline"],
])("the reason of a failure comes along: %s %s is %s", async (key, authority, reason) => {
  const error = await elsewhere.dial(key, authority).catch((failure: unknown) => failure);
  expect([error instanceof DialFailure, (error as DialFailure).reason]).toEqual([true, reason]);
});

test("a node that is gone is offline", async () => {
  const alone = createCarriers({
    elsewhere: (key, authority, options) => relayTo({ target: { url: "http://127.0.0.1:1" }, token: "t", key, authority, options }),
  });
  await expect(alone.dial("dev_1", "tun_a")).rejects.toMatchObject({ reason: "offline" });
});
