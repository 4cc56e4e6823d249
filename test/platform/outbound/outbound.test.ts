// Whatever a receiver does, a call ends in time and in a bounded size, with a code that says why; owners share no connection.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { AddressInfo, Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import type { OutboundAnswer, OutboundCall, OutboundError } from "../../../server/core/ports/outbound.ts";
import { createOutbound, type OpenOutbound, type OutboundSettings } from "../../../server/platform/outbound/outbound.ts";
import { createOutboundGuard } from "../../../server/platform/outbound/url.ts";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Authority, createAuthority } from "../../kit/net/certificates.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { type CountingListener, startListener } from "../../kit/net/listeners.ts";

const HOST = "127.0.0.2";
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const open = (settings: Partial<OutboundSettings> = {}): OpenOutbound => {
  const guard = createOutboundGuard({ allowCidrs: ["127.0.0.2/32", "127.0.0.1/32"], allowHttp: true, ownUrls: () => [], isOwn: () => false });
  const outbound = createOutbound({ clock: systemClock, guard, onBlocked: () => undefined, settings });
  closers.push(outbound.close);
  return outbound;
};
type Serve = (socket: Socket) => void;
const closeAtOnce: Serve = (socket) => {
  socket.end();
};
const receiver = async (serve?: Serve): Promise<CountingListener> => {
  const listener = await startListener(HOST, serve);
  closers.push(listener.close);
  return listener;
};
/** Waits for the head of the request, then acts. */
const afterRequest =
  (act: Serve): Serve =>
  (socket) => {
    socket.once("data", () => act(socket));
  };
const write = (text: string) => afterRequest((socket) => void socket.write(text));
const urlOf = ({ port }: { readonly port: number }): string => `http://${HOST}:${port}/hook?a=1`;
const failureOf = (sent: Promise<OutboundAnswer>): Promise<OutboundError> =>
  sent.then(
    ({ statusCode }) => Promise.reject(new Error(`answered ${statusCode}`)),
    (error: OutboundError) => error,
  );
const call = (url: string, more: Partial<OutboundCall> = {}): OutboundCall => ({ url, owner: "ten_1", ...more });

const writeThenRepeat = (first: string, text: string, everyMs?: number) =>
  afterRequest((socket) => {
    socket.write(first);
    repeat(socket, text, everyMs);
  });

/** Writes again and again, as fast as the peer reads or at an interval. */
const repeat = (socket: Socket, text: string, everyMs?: number): void => {
  const timer = everyMs === undefined ? null : setInterval(() => socket.write(text), everyMs);
  socket.on("close", () => timer !== null && clearInterval(timer));
  if (timer !== null) return;
  const fill = (): void => {
    while (!socket.destroyed && socket.write(text));
  };
  socket.on("drain", fill);
  fill();
};

describe("an answer", () => {
  test("comes with its status, headers, body and the address that was reached", async () => {
    const requests: string[] = [];
    const at = await receiver((socket) =>
      socket.on("data", (data) => {
        requests.push(data.toString());
        socket.write("HTTP/1.1 201 Created\r\nX-One: 1\r\nx-one: 2\r\n__proto__: x\r\ncontent-length: 4\r\n\r\ndone");
      }),
    );
    const answer = await open().send(call(urlOf(at), { method: "POST", headers: { "content-type": "text/plain" }, body: "häll" }));
    expect(answer).toMatchObject({ statusCode: 201, truncated: false, address: HOST, durationMs: expect.any(Number) });
    expect(answer.headers["x-one"]).toBe("1, 2");
    expect(answer.body.toString()).toBe("done");
    expect(requests[0]).toMatch(/^POST \/hook\?a=1 HTTP\/1\.1\r\nhost: 127\.0\.0\.2:\d+\r\n/i);
    expect(requests[0]).toContain("content-length: 5");
    expect(requests[0]).not.toMatch(/accept-encoding/i);
  });

  test("is not decompressed", async () => {
    const at = await receiver(write("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc"));
    expect((await open().send(call(urlOf(at)))).body.toString()).toBe("abc");
  });

  test("that follows informational ones is found", async () => {
    const at = await receiver(write("HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"));
    expect(await open().send(call(urlOf(at)))).toMatchObject({ statusCode: 204, headers: {} });
  });

  test("of exactly 64 KiB is whole, one byte more is cut off and ends the connection", async () => {
    const outbound = open();
    for (const [bytes, truncated] of [
      [65_536, false],
      [65_537, true],
    ] as const) {
      const at = await receiver(write(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`));
      const answer = await outbound.send(call(urlOf(at)));
      expect([answer.body.length, answer.truncated]).toEqual([65_536, truncated]);
      if (truncated) await eventually(() => expect([at.open(), at.connections()]).toEqual([0, 1]));
      else expect(at.open()).toBe(1);
    }
  });

  test("without end is read to 64 KiB, and no megabyte more leaves the receiver", async () => {
    let written = 0;
    const at = await receiver(
      afterRequest((socket) => {
        socket.on("close", () => {
          written = socket.bytesWritten;
        });
        socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        repeat(socket, `1000\r\n${"x".repeat(0x1000)}\r\n`);
      }),
    );
    const answer = await open().send(call(urlOf(at)));
    expect([answer.body.length, answer.truncated]).toEqual([65_536, true]);
    await eventually(() => expect(at.open()).toBe(0));
    expect(written).toBeGreaterThan(65_536);
    // What the sockets' buffers of this machine take.
    expect(written).toBeLessThan(16_777_216);
  });

  test("keeps as many bytes as the call wants", async () => {
    const at = await receiver(write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789"));
    const answer = await open().send(call(urlOf(at), { maxBodyBytes: 4 }));
    expect([answer.body.toString(), answer.truncated]).toEqual(["0123", true]);
  });
});

describe("a receiver that", () => {
  const timeoutMs = 400;
  const within = async (sent: Promise<OutboundAnswer>, code: string): Promise<void> => {
    // A busy machine is late, but an unbounded call would never end.
    const error = await withTimeout(failureOf(sent), 20_000, "the call did not end");
    expect(error.code).toBe(code);
  };

  test.each([
    ["never answers", () => undefined],
    ["dribbles its status line", (socket: Socket) => repeat(socket, "H", 20)],
    ["dribbles its headers", writeThenRepeat("HTTP/1.1 200 OK\r\n", "a: b\r\n", 20)],
    ["dribbles its body", writeThenRepeat("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n", "x", 20)],
    ["sends informational answers without end", afterRequest((socket) => repeat(socket, "HTTP/1.1 103 Early Hints\r\n\r\n", 5))],
    ["sends one chunk's extension without end", writeThenRepeat("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;", "x", 5)],
  ])("%s ends as TIMEOUT, and its connection with it", async (what, serve) => {
    const at = await receiver(serve);
    const error = what === "dribbles its status line" ? "PROTOCOL" : "TIMEOUT";
    await within(open().send(call(urlOf(at), { timeoutMs })), error);
    await eventually(() => expect(at.open()).toBe(0));
  });

  test.each([
    ["sends headers without end", "TOO_LARGE", writeThenRepeat("HTTP/1.1 200 OK\r\n", `a: ${"b".repeat(1_000)}\r\n`)],
    ["sends one giant header", "TOO_LARGE", write(`HTTP/1.1 200 OK\r\na: ${"b".repeat(20_000)}\r\n\r\n`)],
    ["sends no HTTP", "PROTOCOL", write("220 mail.example ESMTP\r\n")],
    ["sends a NUL in a header", "PROTOCOL", write("HTTP/1.1 200 OK\r\na: \0\r\ncontent-length: 0\r\n\r\n")],
    ["states two lengths", "PROTOCOL", write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab")],
    ["states a length and chunks", "PROTOCOL", write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")],
    ["sends a broken chunk", "PROTOCOL", write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")],
    ["switches protocols", "CONNECT", write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")],
    ["closes without an answer", "CONNECT", afterRequest((socket) => void socket.end())],
    ["closes at once", "CONNECT", closeAtOnce],
    ["resets the connection", "CONNECT", afterRequest((socket) => void socket.resetAndDestroy())],
    ["closes within the body", "CONNECT", afterRequest((socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"))],
  ] as const)("%s ends as %s", async (_what, code, serve) => {
    const at = await receiver(serve);
    await within(open().send(call(urlOf(at), { method: "POST", body: "{}" })), code);
    await eventually(() => expect(at.open()).toBe(0));
  });

  test("does not listen ends as CONNECT for as many calls as wait for it", async () => {
    const url = `http://${HOST}:${await freePort()}/`;
    const outbound = open({ connections: 2 });
    const failures = await Promise.all(Array.from({ length: 20 }, () => failureOf(outbound.send(call(url)))));
    expect(new Set(failures.map(({ code }) => code))).toEqual(new Set(["CONNECT"]));
    expect(outbound.figures()).toEqual({ calls: 0, origins: 0 });
  });

  test("hangs holds up neither another origin of its owner nor another owner", async () => {
    const [hanging, good] = [await receiver(() => undefined), await receiver()];
    const outbound = open({ connections: 1 });
    const hung = [1, 2, 3].map(() => failureOf(outbound.send(call(urlOf(hanging), { timeoutMs: 1_000 }))));
    expect(await outbound.send(call(urlOf(good)))).toMatchObject({ statusCode: 200 });
    expect((await Promise.all(hung)).map(({ code }) => code)).toEqual(["TIMEOUT", "TIMEOUT", "TIMEOUT"]);
    // For calls whose time was over while they waited there was no connection.
    await eventually(() => expect(hanging.open()).toBe(0));
    expect(hanging.connections()).toBe(1);
  });
});

describe("a call", () => {
  test("that is given up ends at once, before and while it is under way", async () => {
    const at = await receiver(() => undefined);
    const outbound = open();
    expect((await failureOf(outbound.send(call(urlOf(at), { signal: AbortSignal.abort() })))).code).toBe("TIMEOUT");
    const controller = new AbortController();
    const failed = failureOf(outbound.send(call(urlOf(at), { signal: controller.signal })));
    await eventually(() => expect(at.open()).toBeGreaterThan(0));
    controller.abort();
    expect((await failed).code).toBe("TIMEOUT");
    await eventually(() => expect(at.open()).toBe(0));
  });

  test("with headers that HTTP does not allow fails without a request", async () => {
    const at = await receiver();
    for (const headers of [{ "a\r\nb": "c" }, { a: "b\r\nc: d" }, { a: "\0" }])
      expect((await failureOf(open().send(call(urlOf(at), { headers })))).code).toBe("PROTOCOL");
    expect(at.connections()).toBe(0);
  });

  test("beyond the bound of calls at once fails, and counts no more once others end", async () => {
    const at = await receiver();
    const outbound = open({ calls: 2 });
    const sent = await Promise.allSettled([1, 2, 3].map(() => outbound.send(call(urlOf(at)))));
    expect(sent.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect(await outbound.send(call(urlOf(at)))).toMatchObject({ statusCode: 200 });
  });
});

describe("connections", () => {
  test("are reused by one owner and never by another", async () => {
    const owners: Set<string>[] = [];
    const at = await receiver((socket) => {
      const seen = new Set<string>();
      owners.push(seen);
      socket.on("data", (data) => {
        seen.add(/owner: (\w+)/.exec(data.toString())?.[1] ?? "");
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
      });
    });
    const outbound = open();
    const all = ["ten_1", "ten_2", "ten_3"];
    for (let i = 0; i < 10; i += 1) await Promise.all(all.map((owner) => outbound.send(call(urlOf(at), { owner, headers: { owner } }))));
    expect(owners.map(({ size }) => size)).toEqual(owners.map(() => 1));
    expect(new Set(owners.flatMap((each) => [...each]))).toEqual(new Set(all));
    expect(at.connections()).toBeLessThanOrEqual(6);
  });

  test("of one owner to one origin are bounded", async () => {
    const at = await receiver();
    const outbound = open({ connections: 3 });
    await Promise.all(Array.from({ length: 50 }, () => outbound.send(call(urlOf(at)))));
    expect(at.connections()).toBe(3);
  });

  test("that have been unused for longest close when there are too many origins", async () => {
    const at = await receiver();
    const outbound = open({ origins: 4 });
    for (let i = 0; i < 20; i += 1) await outbound.send(call(urlOf(at), { owner: `ten_${i}` }));
    await eventually(() => expect(at.open()).toBe(4));
    expect(outbound.figures().origins).toBe(4);
  });

  test("leave nothing behind once the receiver has closed them", async () => {
    const at = await receiver((socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")));
    const outbound = open();
    await outbound.send(call(urlOf(at)));
    await eventually(() => expect(outbound.figures()).toEqual({ calls: 0, origins: 0 }));
  });

  test("close with the client, and calls under way end", async () => {
    const at = await receiver(() => undefined);
    const outbound = open();
    const failed = failureOf(outbound.send(call(urlOf(at))));
    await eventually(() => expect(at.open()).toBe(1));
    await outbound.close();
    expect((await failed).code).toBe("CONNECT");
    await eventually(() => expect(at.open()).toBe(0));
  });
});

describe("TLS", () => {
  let authority: Authority;
  beforeAll(async () => {
    authority = await createAuthority();
  });
  afterAll(() => authority.remove());

  /** On 127.0.0.1: the authority's certificates are for that address. */
  const startTls = async (): Promise<string> => {
    const { certFile, keyFile } = await authority.issue("receiver");
    const server = createTlsServer({ cert: await readFile(certFile), key: await readFile(keyFile) }, (socket) => {
      socket.on("error", () => undefined).on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
    });
    server.on("tlsClientError", () => undefined).listen(0);
    await once(server, "listening");
    closers.push(async () => void server.close());
    return String((server.address() as AddressInfo).port); // as: it listens on a port
  };

  test("with a certificate of a known authority is spoken, and its connection reused", async () => {
    const outbound = open({ ca: authority.ca });
    const port = await startTls();
    for (let i = 0; i < 2; i += 1) expect(await outbound.send(call(`https://127.0.0.1:${port}/`))).toMatchObject({ statusCode: 200, address: "127.0.0.1" });
  });

  test("with a certificate of nobody, or for another address, ends as TLS", async () => {
    const port = await startTls();
    expect((await failureOf(open().send(call(`https://127.0.0.1:${port}/`)))).code).toBe("TLS");
    expect((await failureOf(open({ ca: authority.ca }).send(call(`https://127.0.0.2:${port}/`)))).code).toBe("TLS");
  });

  test("that the receiver does not speak ends as TLS", async () => {
    const at = await receiver(write("HTTP/1.1 400 Bad Request\r\n\r\n"));
    expect((await failureOf(open().send(call(`https://${HOST}:${at.port}/`)))).code).toBe("TLS");
  });

  test("whose handshake never ends has the time of a connection", async () => {
    const at = await receiver(() => undefined);
    expect((await failureOf(open({ connectTimeoutMs: 300 }).send(call(`https://${HOST}:${at.port}/`)))).code).toBe("TIMEOUT");
    await eventually(() => expect(at.open()).toBe(0));
  });
});
