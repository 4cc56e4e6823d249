// The edge routes by mount and host, reads heads strictly, and cuts what does not come to an end. Here with parts of the test's own.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls, createSecureContext } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EdgePart } from "../../server/core/ports/edge.ts";
import { type Edge, type EdgeDeps, listenEdge } from "../../server/edge/listen.ts";
import { type Authority, createAuthority } from "../kit/net/certificates.ts";

const failures: unknown[] = [];
const part: EdgePart = {
  mounts: [
    { prefix: "/own/", handler: { handle: ({ path, query, host }, response) => void response.end(`own ${host} ${path} ${query}`) } },
    {
      prefix: "/.well-known/acme-challenge/",
      everywhere: true,
      handler: { handle: ({ path }, response) => (path.endsWith("/known") ? void response.end("challenge") : false) },
    },
    { prefix: "/broken/", handler: { handle: () => Promise.reject(new Error("broken")) } },
  ],
  hostOf: (host) =>
    host === "app.example"
      ? {
          handle: (request, response) => void response.end(`app ${request.path} from ${request.ip}`),
          upgrade: (_request, socket, head) => void socket.end(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n${head}`),
        }
      : null,
};

const open = (more: Partial<EdgeDeps> = {}): Promise<Edge> =>
  listenEdge({
    host: "127.0.0.1",
    port: 0,
    httpPort: undefined,
    tls: null,
    parts: [part],
    proxies: [],
    log: { error: ({ error }: { readonly error?: unknown }) => void failures.push(error) },
    ...more,
  });

/** A connection that is cut while it sends ends with an error first, which `once` would throw. */
const untilClosed = (socket: Socket): Promise<void> => new Promise((resolve) => void socket.once("close", () => resolve()));

/** All that comes for these bytes, until the edge ends the connection. */
const raw = async (port: number, sent: string): Promise<string> => {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(sent, "latin1");
  return text(socket);
};
const asked = (target: string, host = "app.example", more = ""): string => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`;

let edge: Edge;
beforeAll(async () => {
  edge = await open({ limits: { headMs: 300, drainMs: 200 } });
});
afterAll(() => edge.close());

describe("a request goes to", () => {
  test.each([
    ["the owner of its host", asked("/a?b=c"), "app /a from 127.0.0.1"],
    ["the owner of its host, in upper case, with a port and a final dot", asked("/a", "APP.example.:8082"), "app /a from"],
    ["a mount on a host that nobody owns", asked("/own/x?y=1", "edge.example"), "own edge.example /own/x y=1"],
    ["the owner of its host rather than to a mount", asked("/own/x"), "app /own/x"],
    ["a mount on every host", asked("/.well-known/acme-challenge/known"), "challenge"],
    ["the owner of its host if the mount declines", asked("/.well-known/acme-challenge/other"), "app /.well-known"],
    ["the owner of the host in its target", "GET http://app.example/b HTTP/1.1\r\nHost: app.example\r\nConnection: close\r\n\r\n", "app /b from"],
    ["nobody, with a page", asked("/", "nobody.example", "Accept: text/html\r\n"), "<h1>There is nothing at this address.</h1>"],
    ["nobody, with JSON", asked("/", "nobody.example"), '"code":"NOT_FOUND"'],
    ["a handler that fails, which is no 500", asked("/broken/", "edge.example"), "HTTP/1.1 502 Bad Gateway"],
  ])("%s", async (_name, sent, expected) => {
    expect(await raw(edge.port, sent)).toContain(expected);
  });

  test("its owner although it offers h2c, as curl does", async () => {
    const socket = connect(edge.port, "127.0.0.1");
    socket.write("GET /h2c HTTP/1.1\r\nHost: app.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    expect(answer.toString()).toMatch(/^HTTP\/1.1 200[\s\S]*app \/h2c/);
  });

  test("its owner as an upgrade, with what follows the head", async () => {
    expect(await raw(edge.port, "GET / HTTP/1.1\r\nHost: app.example\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst")).toMatch(
      /^HTTP\/1.1 101[\s\S]*first$/,
    );
  });

  test("nobody as an upgrade: 426 from a mount without upgrades, 404 from no one", async () => {
    const upgrade = (path: string) => `GET ${path} HTTP/1.1\r\nHost: edge.example\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`;
    expect(await raw(edge.port, upgrade("/own/"))).toMatch(/^HTTP\/1.1 426/);
    expect(await raw(edge.port, upgrade("/"))).toMatch(/^HTTP\/1.1 404/);
  });
});

describe("a head that two programs could read in two ways gets 400:", () => {
  test.each([
    ["two hosts", "GET / HTTP/1.1\r\nHost: app.example\r\nHost: other.example\r\n\r\n"],
    ["another host in the target", "GET http://other.example/ HTTP/1.1\r\nHost: app.example\r\n\r\n"],
    ["a host with two ports", "GET / HTTP/1.1\r\nHost: app.example:1:2\r\n\r\n"],
    ["a host with a space", "GET / HTTP/1.1\r\nHost: app.example other\r\n\r\n"],
    ["no host", "GET / HTTP/1.1\r\n\r\n"],
    ["no host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n"],
    ["a user in the target", "GET http://app.example@evil/ HTTP/1.1\r\nHost: app.example\r\n\r\n"],
    ["a length and a transfer encoding", "POST / HTTP/1.1\r\nHost: app.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["two lengths", "POST / HTTP/1.1\r\nHost: app.example\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"],
    ["a NUL in a header", "GET / HTTP/1.1\r\nHost: app.example\r\nX: a\0b\r\n\r\n"],
    ["a space before the colon", "GET / HTTP/1.1\r\nHost : app.example\r\n\r\n"],
    ["a bare CR in a header", "GET / HTTP/1.1\r\nHost: app.example\r\nX: a\rHost: other\r\n\r\n"],
    ["an unknown protocol", "GET / HTTP/9.1\r\nHost: app.example\r\n\r\n"],
  ])("%s", async (_name, sent) => {
    expect(await raw(edge.port, sent)).toMatch(/^HTTP\/1.1 400 /);
  });

  test("headers of a mebibyte get 431", async () => {
    expect(await raw(edge.port, `GET / HTTP/1.1\r\nHost: app.example\r\nX: ${"y".repeat(1_048_576)}\r\n\r\n`)).toMatch(/^(?:HTTP\/1.1 431|$)/);
  });
});

test("a head that does not come to an end costs its connection", async () => {
  const socket = connect(edge.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write("GET / HTTP/1.1\r\nHost: app.example\r\nX: ");
  const drip = setInterval(() => socket.write("y"), 20);
  socket.resume();
  await untilClosed(socket);
  clearInterval(drip);
  await expect.poll(() => edge.connections()).toBe(0);
});

test("a connection beyond the limit is cut, and the others stay", async () => {
  const small = await open({ limits: { connections: 1, drainMs: 0 } });
  const first = connect(small.port, "127.0.0.1");
  await once(first, "connect");
  const second = connect(small.port, "127.0.0.1").on("error", () => undefined);
  second.resume();
  await untilClosed(second);
  expect(small.connections()).toBe(1);
  first.destroy();
  await small.close();
});

test("closing waits for answers under way, tells new ones to go elsewhere, and then cuts what is left", async () => {
  let answer: (() => void) | undefined;
  const slow: EdgePart = {
    hostOf: () => ({
      handle: (_request, response) => {
        answer = () => void response.end("late");
      },
    }),
  };
  const draining = await open({ parts: [slow], limits: { drainMs: 5_000 } });
  const answered = raw(draining.port, asked("/"));
  await expect.poll(() => answer).toBeDefined();
  const idle: Socket = connect(draining.port, "127.0.0.1").on("error", () => undefined);
  idle.resume();
  await once(idle, "connect");
  const closed = draining.close();
  answer?.();
  expect(await answered).toMatch(/late$/);
  await closed;
  if (!idle.closed) await untilClosed(idle);
});

describe("with TLS", () => {
  let authority: Authority;
  let secure: Edge;
  beforeAll(async () => {
    authority = await createAuthority();
    const [names, other] = await Promise.all([authority.issue("names", ["*.example"]), authority.issue("other", ["domain.test"])]);
    const context = createSecureContext({ cert: await readFile(other.certFile), key: await readFile(other.keyFile) });
    const certificateFor = async (name: string) => (name === "domain.test" ? context : null);
    secure = await open({ tls: names, httpPort: 0, parts: [{ ...part, certificateFor }], limits: { headMs: 300, drainMs: 100 } });
  });
  afterAll(async () => {
    await secure.close();
    await authority.remove();
  });
  const subjectFor = async (servername: string): Promise<string> => {
    const socket = connectTls({ port: secure.port, host: "127.0.0.1", servername, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { subjectaltname = "" } = socket.getPeerCertificate();
    socket.destroy();
    return subjectaltname;
  };

  test("a name gets its own certificate, an unknown one the edge's", async () => {
    expect([await subjectFor("domain.test"), await subjectFor("unknown.test")]).toEqual([
      expect.stringContaining("DNS:domain.test"),
      expect.stringContaining("DNS:*.example"),
    ]);
  });

  test("HTTP/2 and HTTP/1.1 reach the same handlers", async () => {
    const session = connectHttp2(`https://127.0.0.1:${secure.port}`, { rejectUnauthorized: false, servername: "app.example" });
    const stream = session.request({ ":path": "/two?x", ":authority": "app.example" });
    const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status": number }];
    expect([headers[":status"], await text(stream)]).toEqual([200, "app /two from 127.0.0.1"]);
    const other = session.request({ ":path": "/", ":authority": "app.example", host: "other.example" });
    const [refused] = (await once(other, "response")) as [IncomingHttpHeaders & { ":status": number }];
    expect(refused[":status"]).toBe(400);
    session.destroy();
  });

  test("a slow head within TLS costs its connection, too", async () => {
    const socket = connectTls({ port: secure.port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
    socket.on("error", () => undefined).resume();
    await once(socket, "secureConnect");
    socket.write("GET / HTTP/1.1\r\nHost: a");
    await untilClosed(socket);
  });

  test("the port without TLS sends visitors to https, and serves challenges", async () => {
    expect(await raw(secure.httpPort ?? 0, asked("/a?b"))).toContain(`Location: https://app.example:${secure.port}/a?b`);
    expect(await raw(secure.httpPort ?? 0, asked("/.well-known/acme-challenge/known"))).toContain("challenge");
  });
});
