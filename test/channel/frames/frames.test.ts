// Frames that are too big, too many, malformed or out of order get their documented error and close code.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, online, startNode, type TestNode } from "../harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const ready = async () => online(node, await node.device());
const opening = async () => {
  const socket = await connect(node, await node.device());
  await socket.next("welcome");
  return socket;
};

describe("before ready", () => {
  test.each([
    ["a heartbeat", JSON.stringify({ op: "heartbeat", id: "1", data: { cpu: 1 } })],
    ["an unknown op", JSON.stringify({ op: "dance", id: "1", data: {} })],
    ["text that is no JSON", "hello"],
    ["a hello without proof", JSON.stringify({ op: "hello", id: "1", data: {} })],
  ])("%s closes with 4000", async (_, text) => {
    const socket = await opening();
    socket.raw(text);
    expect((await socket.next("error")).data.code).toBe("VALIDATION_FAILED");
    expect(await socket.closed()).toEqual({ code: 4000, reason: expect.stringMatching(/^protocol_error;ra=\d+$/) });
  });
});

describe("a ready session", () => {
  test("a second hello closes with 4000", async () => {
    const socket = await ready();
    socket.say("hello", { proof: { timestamp: "2026-01-01T00:00:00Z", signature: "0" } });
    expect((await socket.closed()).code).toBe(4000);
  });

  test("a binary frame closes with 4000", async () => {
    const socket = await ready();
    socket.raw(Buffer.from([1, 2, 3]));
    expect((await socket.closed()).code).toBe(4000);
  });

  test("an unknown op gets an error and never closes the socket, however often it comes", async () => {
    const socket = await ready();
    for (let count = 0; count < 5; count += 1) {
      const id = socket.say("dance");
      expect(await socket.next("error")).toMatchObject({ ref: id, data: { code: "UNSUPPORTED_OP", retryable: false } });
    }
    expect(socket.isOpen()).toBe(true);
    socket.end();
  });

  test.each([
    ["no JSON", "{", "malformed_json"],
    ["no object", "[1]", "bad_envelope"],
    ["no id", JSON.stringify({ op: "heartbeat", data: {} }), "bad_envelope"],
    ["a NUL character", JSON.stringify({ op: "heartbeat", id: "1", data: { metrics: { a: "\u0000" } } }), "unstorable"],
    ["broken Unicode", `{"op":"heartbeat","id":"1","data":{"metrics":{"a":"\\ud800"}}}`, "unstorable"],
    ["bottomless nesting", `{"op":"heartbeat","id":"1","data":{"metrics":{"a":${"[".repeat(40)}${"]".repeat(40)}}}}`, "unstorable"],
    ["a percentage beyond 100", JSON.stringify({ op: "heartbeat", id: "1", data: { cpu: 101 } }), "bad_data"],
    ["an empty heartbeat", JSON.stringify({ op: "heartbeat", id: "1", data: {} }), "bad_data"],
  ])("%s is refused with its reason; the third one closes with 4000", async (_, text, reason) => {
    const socket = await ready();
    for (let count = 0; count < 3; count += 1) {
      expect(socket.isOpen()).toBe(true);
      socket.raw(text);
      expect((await socket.next("error")).data).toMatchObject({ code: "VALIDATION_FAILED", retryable: false, details: { reason } });
    }
    expect((await socket.closed()).code).toBe(4000);
  });

  test("a frame of 128 KiB is read; one byte more closes with 4013", async () => {
    const socket = await ready();
    const sized = (bytes: number) => {
      const empty = JSON.stringify({ op: "dance", id: "1", data: { pad: "" } });
      return JSON.stringify({ op: "dance", id: "1", data: { pad: "x".repeat(bytes - empty.length) } });
    };
    socket.raw(sized(131_072));
    expect((await socket.next("error")).data.code).toBe("UNSUPPORTED_OP");
    socket.raw(sized(131_073));
    expect((await socket.next("error")).data.code).toBe("PAYLOAD_TOO_LARGE");
    expect(await socket.closed()).toEqual({ code: 4013, reason: "frame_too_big" });
  });

  test("a frame above the library's limit ends its connection and no other", async () => {
    const socket = await ready();
    socket.raw(Buffer.alloc(300_000));
    expect((await socket.closed()).code).toBe(1006);
    (await ready()).end();
  });

  test("frames above the rate limit are refused with a time to wait, then close with 4029", async () => {
    const own = await startNode({ settings: { inboundPerSecond: 0.001, inboundBurst: 3 } });
    const socket = await online(own, await own.device());
    for (let count = 0; count < 2; count += 1) {
      socket.say("heartbeat", { cpu: 1 });
      await socket.next("heartbeat_ack");
    }
    for (let count = 0; count < 3; count += 1) socket.say("heartbeat", { cpu: 1 });
    expect((await socket.next("error")).data).toMatchObject({ code: "RATE_LIMIT_EXCEEDED", retryable: true, retryAfter: expect.any(Number) });
    const { code, reason } = await socket.closed();
    expect(code).toBe(4029);
    expect(reason).toMatch(/^rate_limited;ra=\d+$/);
    await own.close();
  });

  test("the 61st heartbeat of a minute is refused, and the session stays", async () => {
    const own = await startNode({ settings: { inboundBurst: 200 } });
    const socket = await online(own, await own.device());
    for (let count = 0; count < 60; count += 1) {
      socket.say("heartbeat", { status: "online", metrics: {} });
      await socket.next("heartbeat_ack");
    }
    const id = socket.say("heartbeat", { status: "online" });
    expect(await socket.next("error")).toMatchObject({ ref: id, data: { code: "RATE_LIMIT_EXCEEDED", details: { bucket: "heartbeat", limit: 60 } } });
    expect(socket.isOpen()).toBe(true);
    socket.end();
    await own.close();
  });
});
