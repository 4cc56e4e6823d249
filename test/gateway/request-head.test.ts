// Heads that two HTTP parsers may read differently: the gateway refuses them before routing, alike for REST, tRPC and the upgrade.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HEADERS, HEADERS_V2, signedHeaders } from "../../protocol/index.ts";
import { isSingle } from "../../server/gateway/http/request-head.ts";
import { callerAddress, parseNetworks } from "../../server/gateway/http/request-info.ts";
import { buildName } from "../../server/gateway/uws/load.ts";
import { type Caller, type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { head, openRaw, rawCall } from "./raw.ts";

type Lines = readonly (readonly [string, string])[];

let world: World;
let tenant: TestTenant;
let owner: Caller;
let device: Device;
beforeAll(async () => {
  world = await startWorld({ TRUSTED_PROXIES: "127.0.0.0/8", RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off", RATE_LIMIT_FAILED_AUTH: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  device = await tenant.device();
});
afterAll(() => world.close());

const lines = (caller: Caller): Lines => Object.entries(caller.headers(""));
const UPGRADE: Lines = [
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
  ["Sec-WebSocket-Version", "13"],
  ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
];
const send = (start: string, headers: Lines) => rawCall(world.url, [head(start, headers)]);

describe("caller's address", () => {
  const askedFrom = async (...forwarded: readonly string[]): Promise<number | undefined> => {
    const made = await world.call(owner, "POST", "/v1/api-keys", { body: { name: "k", ipAllowlist: ["203.0.113.0/24"] } });
    const key: Lines = [
      ["x-api-key", made.body.data.apiKey],
      ["x-svc-tenant-id", tenant.tenantId],
    ];
    return (await send("GET /v1/devices", [...key, ...forwarded.map((hop) => ["X-Forwarded-For", hop] as const)])).answer?.status;
  };

  test("the caller's address is the last hop that is no trusted proxy, on whichever line it stands", async () => {
    expect(await askedFrom("198.51.100.1", "203.0.113.9")).toBe(200);
    expect(await askedFrom("198.51.100.1", "203.0.113.9, 127.0.0.9", "127.0.0.8")).toBe(200);
  });

  test("a caller cannot forge its address with a header line of its own", async () => {
    expect(await askedFrom("203.0.113.9", "198.51.100.1")).toBe(403);
    expect(await askedFrom("203.0.113.9, 198.51.100.1", "127.0.0.9")).toBe(403);
  });

  test.each([
    ["203.0.113.9:4711", "203.0.113.9"],
    ["[2001:db8::1]:4711", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["2001:DB8:0::1", "2001:db8::1"],
    ["::ffff:203.0.113.9", "203.0.113.9"],
    ["203.0.113.9, 198.51.100.7:1", "198.51.100.7"],
    ["203.0.113.9, unknown, 127.0.0.9", "127.0.0.1"],
    ["203.0.113.9, , 127.0.0.9", "127.0.0.1"],
    ["203.0.113.9, 3405803785", "127.0.0.1"],
    ["127.0.0.9", "127.0.0.1"],
    ["", "127.0.0.1"],
  ])("a request forwarded for %j comes from %s: a hop may have a port, and an invalid hop ends the walk", (forwarded, address) => {
    expect(callerAddress({ peer: "127.0.0.1", headers: { "x-forwarded-for": forwarded } }, parseNetworks(["127.0.0.0/8"]))).toBe(address);
  });
});

describe("single-value headers", () => {
  const SINGLE = [
    ...["content-type", "authorization", "x-api-key", "idempotency-key", "x-idempotency-key", "if-match", "origin", "traceparent", "last-event-id"],
    ...["access-control-request-method", "trpc-accept", "sec-websocket-key", "sec-websocket-version", "x-svc-error-shape", "x-svc-anything"],
    ...Object.values(HEADERS),
    ...Object.values(HEADERS_V2),
  ];
  const PLACES = ["GET /v1/info", "GET /api/v1/info", "POST /v1/pairing/initiate", "GET /trpc/general.info", "OPTIONS /v1/devices", "GET /v1/nowhere"];

  test.each(SINGLE)("a repeated %s is refused, even with the same value", async (name) => {
    for (const place of [...PLACES, "GET /v1/agent/connect"])
      for (const second of ["same", "other"]) {
        const before = place.endsWith("connect") ? UPGRADE.filter(([each]) => each.toLowerCase() !== name) : [];
        const { answer, closed } = await rawCall(world.url, [head(place, [...before, [name, "same"], [name.toUpperCase(), second]])], { untilClose: true });
        expect([place, answer?.status, answer?.body.code, answer?.body.details, closed]).toEqual([
          place,
          400,
          "VALIDATION_FAILED",
          { reason: "repeated_header", header: name },
          true,
        ]);
      }
  });

  test("a repeated header is refused beside a valid signature too", async () => {
    const signed = Object.entries(signedHeaders(device.identity, "", new Date()));
    const { answer } = await send("GET /v1/agent/connect", [...UPGRADE, ...signed, [HEADERS.timestamp, "2026-01-02T03:04:05Z"]]);
    expect([answer?.status, answer?.body.details]).toEqual([400, { reason: "repeated_header", header: HEADERS.timestamp }]);
  });

  test("every header that the gateway reads is known as single-value or as a list", () => {
    /** Lists, and headers that the gateway only passes on or ignores if invalid. */
    const LISTS = [
      "accept",
      "accept-encoding",
      "cookie",
      "if-none-match",
      "access-control-request-headers",
      "connection",
      "sec-websocket-extensions",
      "sec-websocket-protocol",
      "upgrade",
    ];
    const JOINED = [...LISTS, "user-agent", "x-forwarded-for", "x-request-id"];
    const root = fileURLToPath(new URL("../../server/gateway", import.meta.url));
    const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
    const read = new Set(
      sources.flatMap((name) => [...readFileSync(`${root}/${name}`, "utf8").matchAll(/\bheaders\??\.?\["([a-z-]+)"\]/g)].map(([, header = ""]) => header)),
    );
    expect(read.size).toBeGreaterThan(15);
    expect([...read].filter((name) => !isSingle(name) && !JOINED.includes(name))).toEqual([]);
    expect(JOINED.filter(isSingle)).toEqual([]);
  });

  test("a list header may span several lines", async () => {
    const some: Lines = ["Accept", "Cache-Control", "Via", "Cookie", "X-Forwarded-For", "Accept-Encoding"].flatMap(
      (name): Lines => [
        [name, "a"],
        [name, "b"],
      ],
    );
    expect((await send("GET /v1/info", some)).answer?.status).toBe(200);
    const { text } = await rawCall(
      world.url,
      [head("GET /trpc/live.watch", [...lines(owner), ["Accept", "application/json"], ["Accept", "text/event-stream"]])],
      {
        boundMs: 500,
      },
    );
    expect(text).toMatch(/^content-type: text\/event-stream/im);
  });
});

describe("Host header", () => {
  const withHosts = (...hosts: readonly string[]) =>
    rawCall(world.url, [["GET /v1/info HTTP/1.1", ...hosts.map((host) => `Host: ${host}`), "Accept: */*", "", ""].join("\r\n")], {
      untilClose: true,
      boundMs: 500,
    });

  test.each([[""], ["a@b"], ["a b"], ["a/b"], ["a:b"], ["a:80:80"], ["http://a"], ["[::1"], ["a,b@c"], ["a?b"], ["a#b"], ["é"]])(
    "the host %j is refused",
    async (host) => {
      const { answer, closed } = await withHosts(host);
      expect([answer?.status, answer?.body.details, closed]).toEqual([400, { reason: "bad_host", header: "host" }, true]);
    },
  );

  test("two Host lines are refused, equal or not: by the newer build itself, otherwise by the gateway", async () => {
    const refused = buildName === "newer" ? {} : { body: { details: { reason: "repeated_header", header: "host" } } };
    for (const second of ["a", "b"]) expect(await withHosts("a", second)).toMatchObject({ answer: { status: 400, ...refused }, closed: true });
  });

  test("a request without a Host is refused by the library", async () => {
    expect(await withHosts()).toMatchObject({ answer: { status: 400 }, closed: true });
  });

  test.each([["a"], ["A.example"], ["a.example:8080"], ["127.0.0.1"], ["[::1]"], ["[2001:db8::1]:443"], ["my_service:80"], ["xn--bcher-kva.example"], ["a:"]])(
    "the host %j passes",
    async (host) => {
      expect((await withHosts(host)).answer?.status).toBe(200);
    },
  );
});

describe("framing", () => {
  const BODY = JSON.stringify({ device_fingerprint: "framing-0001" });
  const post = (...framing: Lines): string => head("POST /v1/pairing/initiate", [["content-type", "application/json"], ...framing]);

  test.each<[string, Lines, string]>([
    ["an empty length", [["content-length", ""]], "content-length"],
    ["an empty encoding", [["transfer-encoding", ""]], "transfer-encoding"],
    [
      "an empty encoding beside a length",
      [
        ["transfer-encoding", ""],
        ["content-length", "2"],
      ],
      "content-length",
    ],
    [
      "chunks beside an empty length",
      [
        ["transfer-encoding", "chunked"],
        ["content-length", ""],
      ],
      "content-length",
    ],
    ["gzip encoding", [["transfer-encoding", "gzip"]], "transfer-encoding"],
    ["gzip in chunks", [["transfer-encoding", "gzip, chunked"]], "transfer-encoding"],
    ["a repeated chunked encoding", [["transfer-encoding", "chunked, chunked"]], "transfer-encoding"],
    ["identity encoding", [["transfer-encoding", "identity"]], "transfer-encoding"],
    ["a misspelt encoding", [["transfer-encoding", "xchunked"]], "transfer-encoding"],
  ])("%s is refused and closes the connection", async (_, framing, header) => {
    for (const start of [post(...framing), head("GET /v1/agent/connect", [...UPGRADE, ...framing])]) {
      const { answer, closed } = await rawCall(world.url, [start], { untilClose: true, boundMs: 2_000 });
      expect([answer?.status, answer?.body.code, answer?.body.details, closed]).toEqual([400, "VALIDATION_FAILED", { reason: "bad_framing", header }, true]);
    }
  });

  // The library refuses these itself, with its own page.
  test.each([["+2"], ["-2"], ["2, 2"], ["0x2"], ["2a"], ["1e1"], ["9".repeat(30)]])("a length of %j is refused and closes the connection", async (length) => {
    const { text, closed } = await rawCall(world.url, [post(["content-length", length]), BODY], { untilClose: true, boundMs: 2_000 });
    expect([text.split("\r\n")[0], closed]).toEqual(["HTTP/1.1 400 Bad Request", true]);
  });

  test("a length together with chunks is refused", async () => {
    const { text, closed } = await rawCall(world.url, [post(["content-length", "2"], ["transfer-encoding", "chunked"]), "{}"], { untilClose: true });
    expect([text.split("\r\n")[0], closed]).toEqual(["HTTP/1.1 400 Bad Request", true]);
  });

  test("a chunked request is served, and its answer closes the connection", async () => {
    const chunked = `${post(["transfer-encoding", "Chunked"])}${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
    const { answer, closed } = await rawCall(world.url, [chunked], { untilClose: true, boundMs: 2_000 });
    expect([answer?.status, answer?.headers.get("connection"), closed]).toEqual([201, "close", true]);
  });

  test("a request hidden behind an unreadable chunk size is never served", async () => {
    for (const size of ["", "xyz", "-1", "0x0"]) {
      const raw = await openRaw(world.url);
      await raw.write(`${post(["transfer-encoding", "chunked"])}${size}\r\n\r\n`);
      await raw.write(head("GET /v1/info", [["x-request-id", "smuggled-0001"]]));
      await raw.closed();
      expect([size, raw.seen.text.includes("smuggled-0001")]).toEqual([size, false]);
    }
  });

  test("a chunked request cannot open a stream", async () => {
    const start = head("POST /trpc/devices.list?batch=1", [...lines(owner), ["trpc-accept", "application/jsonl"], ["transfer-encoding", "chunked"]]);
    const { answer } = await rawCall(world.url, [`${start}0\r\n\r\n`]);
    expect([answer?.status, answer?.body.error.data.app.details.reason]).toEqual([400, "bad_framing"]);
  });
});

describe("pipelining", () => {
  const fingerprints = async (name: string): Promise<number> =>
    (await world.sql.query("select 1 from pairings where fingerprint like $1", [`${name}%`])).rows.length;
  const initiate = (fingerprint: string): string => {
    const body = JSON.stringify({ device_fingerprint: fingerprint });
    return `${head("POST /v1/pairing/initiate", { "content-type": "application/json", "content-length": String(body.length) })}${body}`;
  };

  test("two pipelined requests close the connection, and neither is carried out", async () => {
    const { text, closed } = await rawCall(world.url, [`${initiate("pipelined-0001")}${initiate("pipelined-0002")}`], { untilClose: true });
    expect([text, closed]).toEqual(["", true]);
    await send("GET /v1/info", []);
    expect(await fingerprints("pipelined")).toBe(0);
  });

  test("a request after the answer is served on the same connection", async () => {
    const raw = await openRaw(world.url);
    for (const count of [1, 2, 3]) {
      await raw.write(initiate(`in-turn-000${count}`));
      await raw.until(() => raw.statuses().length === count);
    }
    expect(raw.statuses()).toEqual(["201", "201", "201"]);
    raw.end();
  });
});
