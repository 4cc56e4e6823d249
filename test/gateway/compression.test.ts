// Compressed answers: who gets them in which form, and which answers never are compressed.
import { type IncomingHttpHeaders, request } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract, type Operation } from "../../protocol/index.ts";
import { compressed, encodingFor, hasSecret } from "../../server/gateway/http/compression.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let token: string;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_ANONYMOUS: "off" });
  tenant = await world.tenant();
  token = await tenant.token();
  const owner = await tenant.user();
  await world.call(owner, "POST", "/v1/devices/provision", { body: { count: 40 } });
});
afterAll(() => world.close());

interface Raw {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}
/** As it travels: `fetch` would decompress. */
const raw = (path: string, headers: Record<string, string> = {}, { method = "GET", body = "" } = {}): Promise<Raw> =>
  new Promise((resolve, reject) => {
    const type = body === "" ? {} : { "content-type": "application/json" };
    request(`${world.url}${path}`, { method, headers: { authorization: `Bearer ${token}`, ...type, ...headers } }, (response) => {
      const parts: Buffer[] = [];
      response
        .on("data", (part: Buffer) => parts.push(part))
        .on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }));
    })
      .on("error", reject)
      .end(body);
  });
const LIST = "/v1/devices?pageSize=40";
const OVER_TRPC = `/trpc/devices.list,devices.list?batch=1&input=${encodeURIComponent(JSON.stringify({ 0: {}, 1: {} }))}`;
const open = { br: brotliDecompressSync, gzip: gunzipSync };
const textOf = ({ headers, body }: Raw): string => {
  const encoding = headers["content-encoding"] as keyof typeof open | undefined;
  return (encoding === undefined ? body : open[encoding](body)).toString();
};
const dataOf = (answer: Raw) => JSON.parse(textOf(answer)).data;

describe("an answer above one kilobyte", () => {
  test.each([LIST, OVER_TRPC])("%s is compressed as its caller prefers, and says that it varies", async (path) => {
    const plain = await raw(path);
    expect([plain.headers["content-encoding"], plain.headers.vary]).toEqual([undefined, expect.stringContaining("Accept-Encoding")]);
    for (const [accepted, encoding] of [
      ["gzip, deflate, br", "br"],
      ["gzip", "gzip"],
      ["br;q=0.5, gzip", "gzip"],
      ["*", "br"],
      ["zstd, *;q=0", undefined],
    ] as const) {
      const answer = await raw(path, { "accept-encoding": accepted });
      expect([accepted, answer.headers["content-encoding"], answer.headers.vary]).toEqual([accepted, encoding, expect.stringContaining("Accept-Encoding")]);
      expect(answer.headers["content-length"]).toBe(String(answer.body.length));
      expect(textOf(answer).length).toBe(textOf(plain).length);
      if (encoding !== undefined) expect(answer.body.length).toBeLessThan(plain.body.length / 2);
    }
    if (path === LIST) expect(dataOf(await raw(path, { "accept-encoding": "br" }))).toEqual(dataOf(plain));
  });

  test("HEAD tells the length of the compressed answer and sends none of it", async () => {
    const br = { "accept-encoding": "br" };
    // While enough others are compressed, an answer goes out as it is.
    const [got, head] = await eventually(async () => {
      const answers = [await raw("/v1/changelog", br), await raw("/v1/changelog", br, { method: "HEAD" })] as const;
      expect(answers.map(({ headers }) => headers["content-encoding"])).toEqual(["br", "br"]);
      return answers;
    });
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(Math.abs(Number(head.headers["content-length"]) - got.body.length)).toBeLessThan(20);
  });

  test("a large document is compressed in a thread, many at once are all answered", async () => {
    const document = textOf(await raw("/v1/openapi.json"));
    expect(document.length).toBeGreaterThan(65_536);
    await eventually(async () => {
      const answers = await Promise.all(Array.from({ length: 12 }, () => raw("/v1/openapi.json", { "accept-encoding": "gzip" })));
      for (const answer of answers) expect(textOf(answer)).toBe(document);
      expect(answers.filter(({ headers }) => headers["content-encoding"] === "gzip").length).toBeGreaterThan(0);
    });
  });

  test("a caller that leaves while its answer is compressed does no harm", async () => {
    await Promise.all(
      Array.from({ length: 8 }, () =>
        fetch(`${world.url}/v1/openapi.json`, { signal: AbortSignal.timeout(3) }).then(
          (answer) => answer.text(),
          () => null,
        ),
      ),
    );
    expect((await raw(LIST, { "accept-encoding": "br" })).status).toBe(200);
  });
});

describe("what is never compressed", () => {
  test("a small answer", async () => {
    const { headers } = await raw("/v1/devices/summary", { "accept-encoding": "br" });
    expect([headers["content-encoding"], headers.vary]).toEqual([undefined, undefined]);
  });

  test("an answer with a secret, over REST, tRPC and in a batch beside others", async () => {
    const body = JSON.stringify({ count: 10 });
    const provisioned = await raw("/v1/devices/provision", { "accept-encoding": "br" }, { method: "POST", body });
    expect(provisioned.body.length).toBeGreaterThan(1_024);
    expect([provisioned.status, provisioned.headers["content-encoding"]]).toEqual([201, undefined]);
    const batch = await raw(
      "/trpc/devices.provision,tenants.create?batch=1",
      { "accept-encoding": "br" },
      { method: "POST", body: JSON.stringify({ 0: { count: 10 }, 1: {} }) },
    );
    expect([JSON.parse(batch.body.toString())[0].result.data.items?.length ?? 10, batch.headers["content-encoding"]]).toEqual([10, undefined]);
  });

  test("the contract tells which answers have a secret", () => {
    const secret = Object.entries(contract).flatMap(([group, { operations }]) =>
      Object.entries(operations as Record<string, Operation>).flatMap(([name, op]) => (hasSecret(op) ? [`${group}.${name}`] : [])),
    );
    for (const id of ["apiKeys.create", "apiKeys.rotate", "devices.secrets", "devices.rotateSecret", "devices.provision", "general.streamTicket"])
      expect(secret).toContain(id);
    for (const id of ["apiKeys.list", "devices.list", "commands.list", "general.changelog", "audit.list"]) expect(secret).not.toContain(id);
  });

  test("a live stream", async () => {
    const ending = new AbortController();
    const stream = await fetch(`${world.url}/trpc/live.watch?input={}`, {
      headers: { accept: "text/event-stream", "accept-encoding": "br, gzip", authorization: `Bearer ${token}` },
      signal: ending.signal,
    });
    expect([stream.status, stream.headers.get("content-encoding")]).toEqual([200, null]);
    ending.abort();
  });
});

test.each([
  [undefined, null],
  ["", null],
  ["identity", null],
  ["br;q=0, gzip;q=0", null],
  ["GZIP", "gzip"],
  ["gzip;q=1.0, br;q=0.9", "gzip"],
  ["*;q=0.1", "br"],
  ["br;q=0, *", "gzip"],
  ["br;q=nonsense, gzip;q=0.001", "gzip"],
])("of %s the answer takes %s", (accepted, encoding) => {
  expect(encodingFor(accepted)).toBe(encoding);
});

test("the tag of a compressed answer is weak, for its bytes are others", () => {
  const answer = compressed({ status: 200, headers: { ETag: '"3-a"' }, body: "x".repeat(2_000) }, "gzip");
  expect(answer).toMatchObject({ headers: { ETag: 'W/"3-a"', "Content-Encoding": "gzip" } });
});
