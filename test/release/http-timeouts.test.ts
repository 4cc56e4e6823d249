// How long a silent or slow connection lives. The libraries' own clocks decide, which no test can advance, so this waits for real seconds.
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildName } from "../../server/gateway/uws/load.ts";
import { head, rawCall } from "../gateway/raw.ts";
import { startWorld, type World } from "../kit/gateway/world.ts";

const BOUND_MS = buildName === "newer" ? 34_000 : 14_000;
const JSON_TYPE = { "content-type": "application/json" };

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off" });
});
afterAll(() => world.close());

test.concurrent.each([
  ["a connection with half a head", ["POST /v1/pairing/initiate HTTP/1.1\r\nHost: x\r\nContent-"]],
  ["a connection with half a body", [head("POST /v1/pairing/initiate", { ...JSON_TYPE, "content-length": "10" }), "{"]],
  ["an idle connection", []],
])("the library closes %s within the time of docs/http-edge.md", async (_, parts) => {
  expect(await rawCall(world.url, parts, { untilClose: true, boundMs: BOUND_MS })).toMatchObject({ text: "", closed: true });
});

test.concurrent("the internal listener answers 408 to a head that never ends within twenty seconds", async () => {
  const socket = connect(world.app.internalPort(), "127.0.0.1");
  socket.setTimeout(20_000, () => socket.destroy(new Error("silence")));
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  socket.write("GET /readyz HTTP/1.1\r\nHost: x\r\n");
  await once(socket, "close");
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
}, 25_000);
