// The socket and REST each allow sixty heartbeats a minute and count their own, so a heartbeat over a socket never asks another process.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { connect, greet } from "./harness.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ FRAMES_PER_SECOND: "1000" });
});
afterAll(() => world.close());

test("heartbeats over the socket do not count against REST, nor appear in its rate limit headers", async () => {
  const device = await (await world.tenant({ unlimited: false })).device();
  const at = { url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } };
  const socket = await connect(at, device);
  await greet(at, socket, device);
  for (let count = 0; count < 60; count += 1) {
    socket.say("heartbeat", { status: "online" });
    await socket.next("heartbeat_ack");
  }
  socket.say("heartbeat", { status: "online" });
  expect((await socket.next("error")).data).toMatchObject({
    code: "RATE_LIMIT_EXCEEDED",
    retryable: true,
    retryAfter: expect.any(Number),
    details: { bucket: "heartbeat", limit: 60 },
  });
  const first = await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/heartbeat`, { body: { cpu: 1 } });
  expect([first.status, first.headers.get("x-ratelimit-limit"), first.headers.get("x-ratelimit-remaining")]).toEqual([200, "60", "59"]);
  socket.end();
});
