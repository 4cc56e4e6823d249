// Pings, pongs and masks: the socket library answers them by itself, and the rate limit bounds what an agent can do with that.
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE, CONNECT_PATHS, signedHeaders } from "../../../protocol/index.ts";
import { head, openRaw } from "../../gateway/raw.ts";
import { frame, OP, toBytes } from "../autobahn/frames.ts";
import { connect, freshTime, online, startNode, type TestNode } from "../harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode({ settings: { inboundPerSecond: 20, inboundBurst: 60 } });
});
afterAll(() => node.close());

describe("control frames", () => {
  test.each(["ping", "pong"] as const)("a flood of %s gets an error once it exceeds the limit, then closes with 4029 and a time to wait", async (kind) => {
    const socket = await online(node, await node.device());
    for (let count = 0; count < 200; count += 1) socket.socket[kind]();
    expect((await socket.next("error")).data).toMatchObject({ code: "RATE_LIMIT_EXCEEDED", details: { bucket: "frames", limit: 20 } });
    const { code, reason } = await socket.closed();
    expect([code, reason]).toEqual([CLOSE.rateLimited.code, expect.stringMatching(/^rate_limited;ra=\d+$/)]);
  });

  test("a flood before the hello closes the same way", async () => {
    const socket = await connect(node, await node.device());
    for (let count = 0; count < 200; count += 1) socket.socket.ping();
    expect((await socket.closed()).code).toBe(CLOSE.rateLimited.code);
  });

  test("a million pings at once get no more pongs than the limit allows", async () => {
    const socket = await online(node, await node.device());
    let pongs = 0;
    socket.socket.on("pong", () => {
      pongs += 1;
    });
    const many = Buffer.concat(Array.from({ length: 50_000 }, () => toBytes(frame(OP.ping))));
    const wire = (socket.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket;
    for (let count = 0; count < 20; count += 1) wire.write(many);
    expect((await socket.closed()).code).toBe(CLOSE.rateLimited.code);
    expect(pongs).toBeLessThan(70);
  });

  test("the usual number is answered and does not count as a sign of life", async () => {
    const socket = await online(node, await node.device());
    for (let count = 0; count < 20; count += 1) {
      socket.socket.ping();
      await once(socket.socket, "pong");
    }
    expect(socket.isOpen()).toBe(true);
    node.clock.advance(1_000_000);
    node.channel.tick();
    expect((await socket.closed()).code).toBe(CLOSE.heartbeatTimeout.code);
  });
});

// RFC 6455 5.1 demands that such a connection is closed. The library ignores the bit; see docs/websocket-conformance.md.
describe("frames without the mask bit", () => {
  const MASK_BIT = 0x80;
  const unmasked = (text: string): Buffer => Buffer.concat([Buffer.from([0x80 | OP.text, text.length]), Buffer.from(text)]);
  const open = async () => {
    const { identity } = await node.device();
    const raw = await openRaw(node.url.replace("ws:", "http:"));
    const upgrade = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" };
    await raw.write(head(`GET ${CONNECT_PATHS[0]}`, { ...upgrade, ...signedHeaders(identity, "", freshTime(node)) }));
    await raw.until(() => raw.seen.text.includes('"op":"welcome"'));
    return raw;
  };

  test("are read as masked: the first four payload bytes become the key, and the rest is refused as malformed", async () => {
    const raw = await open();
    await raw.write(Buffer.concat([unmasked('{"op":"heartbeat","id":"1","data":{}}'), unmasked('{"op":"heartbeat","id":"2","data":{}}')]));
    await raw.closed();
    expect(raw.seen.text).not.toContain("heartbeat_ack");
  });

  test("pass when only the bit is missing: the key is there, and the text arrives unchanged", async () => {
    const raw = await open();
    const bytes = toBytes(frame(OP.text, '{"op":"nonsense","id":"7","data":{}}'));
    bytes.writeUInt8(bytes.readUInt8(1) & ~MASK_BIT, 1);
    await raw.write(bytes);
    await raw.until(() => /wrong_order.*nonsense/.test(raw.seen.text));
    raw.end();
  });
});
