// Whatever bytes arrive, the socket stays open or closes with a documented code, and the node keeps serving.
import { connect as connectTcp } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLOSE, CONNECT_PATHS, HEADERS, signedHeaders } from "../../../protocol/index.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { EFFORT, SEED } from "../../kit/gateway/seed.ts";
import { attempt, connect, freshTime, greet, online, startNode, type TestDevice, type TestNode } from "../harness.ts";

let node: TestNode;
let device: TestDevice;
beforeAll(async () => {
  node = await startNode({ settings: { failuresPerMinute: null } });
  device = await node.device();
});
afterAll(() => node.close());

const STATED: ReadonlySet<number> = new Set(Object.values(CLOSE).map(({ code }) => code));

const op = fc.oneof(fc.constantFrom("hello", "heartbeat", "ack", "goodbye", "error", "command"), fc.string({ maxLength: 40 }));
const value = fc.jsonValue({ maxDepth: 3 });
const data = fc.oneof(
  fc.dictionary(fc.constantFrom("commandId", "status", "output", "cpu", "metrics", "proof", "reason", "inFlight", "expectBackSec", "__proto__"), value),
  fc.record({ commandId: fc.string(), status: fc.constantFrom("succeeded", "running", "nonsense"), output: value }),
  value,
);
const frame = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({ op, id: fc.oneof(fc.string({ minLength: 1, maxLength: 64 }), value), data }, { requiredKeys: ["op"] })
      .map((each) => JSON.stringify(each)),
  },
  { weight: 2, arbitrary: fc.string({ unit: "binary" }) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
);

test(`random frames before and after ready never harm the node (seed ${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 8 }), fc.boolean(), async (frames, afterReady) => {
      const socket = await connect(node, device);
      if (afterReady) await greet(node, socket, device);
      else await socket.next("welcome");
      for (const each of frames) if (socket.isOpen()) socket.raw(each);
      if (socket.isOpen() && afterReady) socket.say("a probe that no op is called");
      const end = await Promise.race([socket.closed(), socket.next("error")]);
      if ("code" in end) expect(STATED).toContain(end.code);
      socket.end();
    }),
    { numRuns: 150 * EFFORT },
  );
  (await online(node, device)).end();
});

test(`random upgrade headers get a JSON error (seed ${SEED})`, async () => {
  const text = fc.string({ unit: fc.constantFrom(..."abc019-_:+TZ.,;= é"), maxLength: 80 }).map((each) => each.trim());
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.values(HEADERS)), text, async (name, bad) => {
      const signed = { ...signedHeaders(device.identity, "", freshTime(node)), [name]: bad };
      const answer = await attempt(node, device, { signed });
      expect(answer).toMatchObject({ status: 401, body: { success: false, code: expect.stringMatching(/^(UNAUTHORIZED|INVALID_SIGNATURE)$/) } });
    }),
    { numRuns: 60 * EFFORT },
  );
});

test("peers that disconnect during an upgrade leave nothing behind", async () => {
  const port = Number(new URL(node.url).port);
  await Promise.all(
    Array.from(
      { length: 60 },
      (_, index) =>
        new Promise<void>((resolve) => {
          const signed = signedHeaders(device.identity, "", freshTime(node));
          const socket = connectTcp(port, "127.0.0.1", () => {
            const head = [
              `GET ${CONNECT_PATHS[0]} HTTP/1.1`,
              "Host: x",
              "Connection: Upgrade",
              "Upgrade: websocket",
              "Sec-WebSocket-Version: 13",
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
              ...Object.entries(signed).map(([name, value_]) => `${name}: ${value_}`),
              "",
              "",
            ].join("\r\n");
            socket.write(index % 2 === 0 ? head : head.slice(0, 120), () => {
              socket.destroy();
              resolve();
            });
          });
          socket.on("error", () => resolve());
        }),
    ),
  );
  await eventually(() => expect(node.channel.stats.connections).toBe(0));
  (await online(node, device)).end();
});
