// A carrier brings connections to a device's services: bytes pass in both directions, ends are told apart from breaks, and nobody's fate is another's.
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DialFailure } from "../../server/core/ports/carriers.ts";
import { createAuthority } from "../kit/net/certificates.ts";
import { type AskedService, abortMany, askOver, startAskedService } from "./behind-carrier.ts";
import { type EdgeRig, eventually, startEdgeRig } from "./rig.ts";

const MIB = 1_048_576;
let service: AskedService;
let rig: EdgeRig;
let services: Record<string, number>;
beforeAll(async () => {
  service = await startAskedService();
  services = { tun_a: service.port, tun_closed: 1 };
  rig = await startEdgeRig();
  await rig.agent("dev_1", services);
});
afterAll(async () => {
  await rig.close();
  service.close();
});

const ask = (word: string, key = "dev_1", from: EdgeRig = rig): Promise<Duplex> => askOver(from, word, key);
const failureOf = (dialed: Promise<unknown>): Promise<unknown> =>
  dialed.then(
    () => "connected",
    (error: unknown) => (error instanceof DialFailure ? error.reason : error),
  );

test("five mebibytes go there and come back", async () => {
  const stream = await ask("echo");
  stream.end(Buffer.alloc(5 * MIB, "x"));
  expect(await text(stream)).toHaveLength(5 * MIB);
});

test("an answer that begins after the end of the question arrives", async () => {
  const stream = await ask("afterwards");
  stream.end();
  expect(await text(stream)).toBe("the answer comes after the end");
});

test("a service that breaks off is told apart from one that ends", async () => {
  expect(await text(await ask("hello"))).toBe("hello");
  const broken = await ask("break");
  broken.once("data", () => broken.write("now"));
  await expect(text(broken)).rejects.toMatchObject({ code: "ECONNRESET" });
});

test("who cannot be reached is named", async () => {
  expect(await failureOf(rig.carriers.dial("dev_1", "tun_unknown"))).toBe("unknown");
  expect(await failureOf(rig.carriers.dial("dev_1", "tun_closed"))).toBe("refused");
  expect(await failureOf(rig.carriers.dial("dev_2", "tun_a"))).toBe("offline");
});

test("a carrier without a credential is refused, and what is no upgrade gets 426", async () => {
  const plain = await fetch(`${rig.url}/v1/agent/tunnel`);
  expect([plain.status, plain.headers.get("upgrade")]).toEqual([426, "mooring-tunnel.v1"]);
  let why = "";
  const down = (reason: string): void => {
    why = reason;
  };
  const agent = await Promise.race([
    rig.agent("", services, { headers: () => ({}), on: { down } }).catch(() => "refused"),
    eventually(() => why !== "", "it is refused").then(() => why),
  ]);
  expect(agent).toBe("the carrier was refused with 401");
});

test("over a WebSocket it is the same", async () => {
  await rig.agent("dev_ws", services, { only: "websocket" });
  expect(rig.carriers.list("dev_ws")[0]?.kind).toBe("websocket");
  const stream = await ask("echo", "dev_ws");
  stream.end(Buffer.alloc(MIB, "y"));
  expect(await text(stream)).toHaveLength(MIB);
});

describe("one connection costs the others nothing:", () => {
  test("20 floods that nobody reads", async () => {
    const stalled = await Promise.all(Array.from({ length: 20 }, () => ask("flood")));
    for (let n = 0; n < 50; n += 1) expect(await text(await ask("hello"))).toBe("hello");
    const stream = await ask("echo");
    stream.end(Buffer.alloc(20 * MIB, "z"));
    expect((await text(stream)).length).toBeGreaterThanOrEqual(20 * MIB);
    for (const each of stalled) each.destroy();
    await eventually(() => rig.carriers.figures().streams === 0, "the floods end");
  });

  // As many resets would end the carrier; test/release/agent/carrier-aborts.test.ts has the control.
  test("1,500 aborts in a burst", { timeout: 60_000 }, async () => {
    expect(await abortMany(rig, service, 1_500)).toBe(0);
    expect(rig.carriers.list("dev_1")).toHaveLength(1);
  });
});

test("what nobody reads is bounded: beyond it new connections are refused as full, and come back afterwards", async () => {
  const small = await startEdgeRig({ settings: { bufferBytes: 2 * MIB } });
  await small.agent("dev_1", services);
  const floods = await Promise.all(Array.from({ length: 6 }, () => ask("flood", "dev_1", small)));
  await expect.poll(() => failureOf(small.carriers.dial("dev_1", "tun_a")), { timeout: 20_000 }).toBe("full");
  for (const flood of floods) flood.destroy();
  await expect.poll(() => failureOf(small.carriers.dial("dev_1", "tun_a")), { timeout: 20_000 }).toBe("connected");
  await small.close();
});

test("a node that drains lets open connections finish while the agent opens another carrier", async () => {
  const draining = await startEdgeRig();
  await draining.agent("dev_1", services);
  const stream = await ask("echo", "dev_1", draining);
  draining.carriers.leave();
  await eventually(() => draining.carriers.list("dev_1").length === 2, "the agent opens another carrier");
  stream.end("still here");
  expect(await text(stream)).toBe("still here");
  await draining.close();
});

describe.each([["without TLS"], ["with TLS"]])("%s", (how) => {
  test("an agent that leaves right after its upgrade leaves no carrier behind", { timeout: 60_000 }, async () => {
    const authority = await createAuthority();
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    const left = await startEdgeRig(how === "with TLS" ? { tls: await authority.issue("edge") } : {});
    try {
      for (let n = 0; n < 20; n += 1) {
        const agent = await left.agent("dev_1", services);
        const dials = Array.from({ length: 8 }, () => failureOf(left.carriers.dial("dev_1", "tun_a")));
        agent.stop();
        await eventually(() => !left.carriers.has("dev_1"), "the carrier ends");
        await Promise.all(dials);
      }
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      await left.close();
      await authority.remove();
    }
  });

  test("violent ends of carriers under load leave the process alive, and the next carrier serves", { timeout: 60_000 }, async () => {
    const authority = await createAuthority();
    const tls = how === "with TLS" ? await authority.issue("edge") : undefined;
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    const hit = await startEdgeRig(tls === undefined ? {} : { tls });
    try {
      for (let n = 0; n < 12; n += 1) {
        const agent = await hit.agent("dev_1", services);
        const dials = Array.from({ length: 8 }, () => ask("flood", "dev_1", hit).catch(() => null));
        if (n % 3 > 0) await Promise.all(dials);
        if (n % 2 === 0) agent.stop();
        else hit.carriers.end("dev_1");
        agent.stop();
        for (const stream of await Promise.all(dials)) if (stream !== null && !stream.closed) await new Promise((resolve) => stream.once("close", resolve));
        await eventually(() => !hit.carriers.has("dev_1"), "the carrier ends");
      }
      await hit.agent("dev_1", services);
      expect(await text(await ask("hello", "dev_1", hit))).toBe("hello");
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      await hit.close();
      await authority.remove();
    }
  });
});
