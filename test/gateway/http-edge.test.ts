// What the HTTP parser of uWebSockets.js does before it calls our code; docs/http-edge.md tells operators. If a new version of the library behaves
// differently, this file fails, and the page needs an update. Its two builds differ in places: `npm run test:matrix` runs this file with both.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Listener, listen } from "../../server/gateway/uws/listen.ts";
import { buildName } from "../../server/gateway/uws/load.ts";
import { head, openRaw, type RawOptions, rawCall } from "./raw.ts";

interface Taken {
  readonly path: string;
  readonly body: string;
}

let listener: Listener;
let taken: Taken[] = [];
beforeAll(async () => {
  listener = await listen({
    host: "127.0.0.1",
    port: 0,
    transport: {
      receive: () => ({
        maxBodyBytes: 1_000,
        handle: async (exchange) => {
          const body = await exchange.body.catch(() => null);
          if (body === null || exchange.gone.aborted) return;
          taken.push({ path: exchange.request.path, body: Buffer.from(body).toString() });
          exchange.respond({ status: 200, headers: {}, body: "ours" });
        },
      }),
    },
  });
});
afterAll(() => listener.close());
beforeEach(() => {
  taken = [];
});

const url = (): string => `http://127.0.0.1:${listener.port}`;
const PAGE = /uWebSockets\/20 Server/;
const first = (text: string): string => text.split("\r\n")[0] ?? "";
const send = async (bytes: string, options: RawOptions = { untilClose: true, boundMs: 1_000 }) => {
  const { text, closed } = await rawCall(url(), [bytes], options);
  return { line: first(text), isPage: PAGE.test(text), closed };
};
const GET = "GET / HTTP/1.1\r\nHost: gateway\r\n";

const V505 = "HTTP/1.1 505 HTTP Version Not Supported";
const V431 = "HTTP/1.1 431 Request Header Fields Too Large";
const V400 = "HTTP/1.1 400 Bad Request";

describe("parser errors", () => {
  test.each([
    ["HTTP/1.0", "GET / HTTP/1.0\r\nHost: gateway\r\n\r\n", V505],
    ["HTTP/2.0", "GET / HTTP/2.0\r\nHost: gateway\r\n\r\n", V505],
    ["a whole address in the request line", "GET http://gateway/ HTTP/1.1\r\nHost: gateway\r\n\r\n", V505],
    ["OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: gateway\r\n\r\n", V505],
    ["16 KiB of headers", `${GET}X: ${"a".repeat(16_400)}\r\n\r\n`, V431],
    ["100 headers", `${GET}${"X: a\r\n".repeat(98)}\r\n`, V431],
    ["no Host", "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n", V400],
    ["a length beside chunks", `${GET}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`, V400],
    ["a length that is no number", `${GET}Content-Length: 2a\r\n\r\n`, V400],
    ["a chunk size that is no number", `${GET}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, V400],
    ["a chunk size with a prefix", `${GET}Transfer-Encoding: chunked\r\n\r\n0x5\r\n`, V400],
  ])("the library answers %s with its own HTML page and closes", async (_, bytes, line) => {
    expect(await send(bytes)).toEqual({ line, isPage: true, closed: true });
    expect(taken).toEqual([]);
  });
});

describe("malformed heads", () => {
  const found = {
    older: { line: "", isPage: false, closed: false },
    newer: { line: V400, isPage: true, closed: true },
  }[buildName];
  test.each([
    ["no header at all", "GET / HTTP/1.1\r\n\r\n"],
    ["a header that goes on in the next line", `${GET}X: a\r\n b\r\n\r\n`],
    ["a space before the colon", `${GET}X : a\r\n\r\n`],
  ])("the library refuses a request with %s: the newer build at once, the older by its idle timeout", async (_, bytes) => {
    expect(await send(bytes, { untilClose: true, boundMs: buildName === "newer" ? 1_000 : 200 })).toEqual(found);
    expect(taken).toEqual([]);
  });
});

describe("split request lines", () => {
  const LINE = "GET /where HTTP/1.1\r\n";
  const cutAt = async (at: number): Promise<string> => {
    const raw = await openRaw(url());
    await raw.write(LINE.slice(0, at));
    await raw.write(`${LINE.slice(at)}Host: gateway\r\n\r\n`);
    await raw.until(() => raw.statuses().length > 0);
    raw.end();
    return raw.statuses()[0] ?? "";
  };

  /** Where the older build cannot go on: after the method, and from the end of the path to the end of the line. */
  const OLDER_REFUSES = [
    "GET ",
    ..."/where HTTP/1.1\r\n".split("").flatMap((_, at, all) => (at >= "/where".length && at < all.length - 1 ? [`GET ${all.slice(0, at + 1).join("")}`] : [])),
  ];

  test("the newer build serves a request line wherever TCP splits it, and the older build answers some with 505", async () => {
    const found: string[] = [];
    for (let at = 1; at <= LINE.length; at += 1) found.push(`${JSON.stringify(LINE.slice(0, at))} ${await cutAt(at)}`);
    const refused = found.filter((each) => each.endsWith(" 505"));
    expect(refused.map((each) => JSON.parse(each.slice(0, -4)))).toEqual(buildName === "newer" ? [] : OLDER_REFUSES);
    expect(found.filter((each) => each.endsWith(" 200"))).toHaveLength(LINE.length - refused.length);
  });
});

describe("chunks", () => {
  const CHUNKED = "POST / HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n";
  test.each([
    ["a chunk without a size", "\r\n", ""],
    ["an empty size after data", "2\r\nhi\r\n\r\n\r\n", "hi"],
    ["data without its line end", "2\r\nhiXX0\r\n\r\n", "hi"],
  ])("the library accepts %s and passes on the body that it reads", async (_, bytes, body) => {
    expect(await send(`${CHUNKED}${bytes}`)).toMatchObject({ line: "HTTP/1.1 200 OK", closed: true });
    expect(taken).toEqual([{ path: "/", body }]);
  });

  test("the library reads a chunk extension as more digits of the size, so the body never ends", async () => {
    expect(await send(`${CHUNKED}2;a=b\r\nhi\r\n0\r\n\r\n`, { untilClose: true, boundMs: 200 })).toMatchObject({ line: "", closed: false });
    expect(taken).toEqual([]);
  });

  test("the answer to a broken body closes the connection, so nothing after it is read as a request", async () => {
    const raw = await openRaw(url());
    await raw.write(`${CHUNKED}\r\n\r\n`);
    await raw.write("GET /smuggled HTTP/1.1\r\nHost: gateway\r\n\r\n");
    await raw.closed();
    expect(taken.map(({ path }) => path)).toEqual(["/"]);
  });
});

test("a pipelined request closes the connection without an answer", async () => {
  const { text, closed } = await rawCall(url(), [`${head("GET /one")}${head("GET /two")}`], { untilClose: true });
  expect([text, closed, taken]).toEqual(["", true, []]);
});

test("a client that sends Expect: 100-continue gets 100 Continue", async () => {
  const raw = await openRaw(url());
  await raw.write(head("POST /", { "content-length": "2", expect: "100-continue" }));
  await raw.until(() => raw.statuses().length === 1);
  await raw.write("{}");
  await raw.until(() => raw.statuses().length === 2);
  expect(raw.statuses()).toEqual(["100", "200"]);
  raw.end();
});

test("docs/http-edge.md mentions each of these", () => {
  const page = readFileSync(new URL("../../docs/http-edge.md", import.meta.url), "utf8");
  for (const word of [
    "HTTP/1.0",
    "505",
    "431",
    "OPTIONS *",
    "Expect",
    "Pipelining",
    "chunk",
    "cut",
    "mask",
    "older",
    "newer",
    buildName === "newer" ? "32 seconds" : "12 seconds",
  ])
    expect(page).toContain(word);
});
