// Random input over fetch or as bytes never causes a 5xx or a hang; every JSON answer has its request id, and the next valid call is served.
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { CLOSE, SUBPROTOCOL, signedHeaders } from "../../protocol/index.ts";
import { CASES, type Case, openStock, REST_CASES, restored, type Stock, sample, toRequest } from "../contract/samples.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { EFFORT, SEED } from "../kit/gateway/seed.ts";
import { anonymous, type Caller, startWorld, type World } from "../kit/gateway/world.ts";
import { head, rawCall } from "./raw.ts";

const OFF = Object.fromEntries(
  ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "FAILED_AUTH", "CONNECT"].map((name) => [`RATE_LIMIT_${name}`, "off"]),
);
/** `npm run fuzz` searches longer, from another seed each time. */
const BUDGET_MS = 2_000 * EFFORT;
const bounded = { numRuns: 10_000 * EFFORT, interruptAfterTimeLimit: BUDGET_MS, markInterruptAsFailure: false };

let world: World;
let stock: Stock;
const samples: (readonly [Case, Record<string, unknown>])[] = [];
beforeAll(async () => {
  world = await startWorld({ ...OFF, TENANTS_PER_USER: "100000" });
  stock = await openStock(world);
  // One after another: a sample may need the tenant as another one does not leave it.
  for (const each of REST_CASES) samples.push([each, await sample(each, stock)]);
  await restored(stock);
});
afterAll(() => world.close());
afterEach(async () => {
  expect((await world.call(stock.owner, "GET", `/v1/devices/${stock.device.deviceId}`)).status).toBe(200);
});

// biome-ignore lint/suspicious/noExplicitAny: a body is read as it comes
const check = (what: unknown, { status, headers, body }: { status: number; headers: Headers; body: any }): void => {
  if (status >= 500) throw new Error(`${status} for ${JSON.stringify(what)}: ${JSON.stringify(body)}`);
  const parts = Array.isArray(body) ? body : [body];
  if (headers.get("content-type")?.includes("application/json") !== true || headers.get("x-request-id") === null) return;
  for (const part of parts) {
    if (part === null || part === "") continue;
    const told = part.meta?.requestId ?? part.error?.data?.app?.requestId ?? (part.result === undefined ? undefined : headers.get("x-request-id"));
    if (told !== headers.get("x-request-id")) throw new Error(`no request id for ${JSON.stringify(what)}: ${JSON.stringify(part)}`);
    if (part.meta !== undefined && typeof part.success !== "boolean") throw new Error(`no success for ${JSON.stringify(what)}: ${JSON.stringify(part)}`);
  }
};

const text = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.constantFrom(
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "\u0000",
    "a\ud800",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "%",
    "%00",
    "..",
    "0",
    "-1",
    "1e999",
    "null",
    "true",
    "🧨",
    "a".repeat(5_000),
  ),
);
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text, fc.constantFrom(null, [], {}, 0, -1, 2 ** 31, 2 ** 53, 1e308, true));
/** A valid input with one part changed, added or removed. */
const mutated = (input: Record<string, unknown>): fc.Arbitrary<Record<string, unknown>> =>
  fc.tuple(fc.oneof(fc.constantFrom("deviceId", ...Object.keys(input)), text), fc.option(anything)).map(([key, value]) => {
    const { [key]: _, ...rest } = input;
    return value === null ? rest : { ...rest, [key]: value };
  });
const header = fc
  .oneof(
    fc.tuple(
      fc.constantFrom(
        "idempotency-key",
        "if-match",
        "x-request-id",
        "traceparent",
        "x-svc-error-shape",
        "x-svc-tenant-id",
        "x-svc-timestamp",
        "x-svc-agent-id",
        "accept",
        "content-type",
        "trpc-accept",
        "last-event-id",
        "origin",
        "x-forwarded-for",
      ),
      fc.string({ unit: fc.constantFrom(..."aZ09 -_,;:=\"'é\u00ff/*"), maxLength: 60 }),
    ),
    fc.constantFrom(
      ["content-type", "application/json"],
      ["accept", "text/event-stream"],
      ["trpc-accept", "application/jsonl"],
      ["content-type", "text/plain"],
    ),
  )
  .map(([name, value]): [string, string] => [name ?? "", (value ?? "").trim()]);
const who = fc.constantFrom("owner", "agent", "key", "nobody");
const as = (name: string): Caller => ({ owner: stock.owner, agent: stock.device.as, key: stock.tenant.apiKey })[name] ?? anonymous;
const at = fc.nat().map((n) => n % REST_CASES.length);
// Leave out operations that remove the stock: every later call would fail.
const DEADLY = new Set(["devices.remove", "tenants.remove", "roles.transferOwnership", "account.remove"]);
/** Another operation's path removes the same thing when the fuzzer makes the method DELETE. */
const DEADLY_PATH = /^\/(devices|hosts|tenants)\/[^/?]+\/?(\?|$)/;

/** fetch resolves it before it sends anything: another path arrives than the one that was asked for. */
const DOT_SEGMENT = /\/\.{1,2}(\/|\?|$)/;

test(`almost valid REST requests never cause a 5xx (seed ${SEED})`, async () => {
  const request = at.chain((index) => {
    const [each, input] = samples[index] ?? [];
    if (each === undefined || input === undefined) throw new Error("no sample");
    return fc.record({
      index: fc.constant(index),
      rest: fc.constantFrom(...each.op.rest),
      input: mutated(input),
      who,
      headers: fc.array(header, { maxLength: 3 }),
      prefix: fc.constantFrom("/v1", "/api/v1"),
      method: fc.option(fc.constantFrom("GET", "HEAD", "PUT", "DELETE", "PATCH", "POST", "OPTIONS"), { freq: 8 }),
    });
  });
  await fc.assert(
    fc.asyncProperty(request, async (given) => {
      const { op, id } = REST_CASES[given.index] as Case;
      if (DEADLY.has(id)) return;
      const { method, path, body } = toRequest(op, given.input, given.rest);
      if (DOT_SEGMENT.test(path) || ((given.method ?? method) === "DELETE" && DEADLY_PATH.test(path))) return;
      const answer = await world
        .call(as(given.who), given.method ?? method, `${given.prefix}${path}`, {
          headers: Object.fromEntries(given.headers),
          ...(body === undefined || ["GET", "HEAD"].includes(given.method ?? method) ? {} : { body }),
        })
        .catch((error: unknown) => {
          // fetch itself refuses some headers.
          if (error instanceof TypeError && !/fetch failed/.test(error.message)) return null;
          throw new Error(`no answer for ${JSON.stringify(given)}`, { cause: error });
        });
      // An exporter reads the answer of its own protocol, which has no envelope.
      const isBare = id === "traces.ingest" && answer?.status === 200;
      if (answer !== null && !isBare) check(given, answer);
    }),
    bounded,
  );
});

test(`almost valid tRPC requests never cause a 5xx (seed ${SEED})`, async () => {
  const name = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...CASES.filter(({ id }) => !DEADLY.has(id) && id !== "live.watch").map(({ id }) => id as string)) },
    text,
  );
  const request = fc.record({
    names: fc.array(name, { minLength: 1, maxLength: 4 }),
    input: fc.oneof(
      anything,
      fc.dictionary(
        fc.constantFrom("0", "1", "2"),
        fc.dictionary(fc.constantFrom("deviceId", "commandId", "tenantId", "name", "type", "page", "version"), anything),
      ),
    ),
    batch: fc.boolean(),
    who,
    method: fc.constantFrom("GET", "POST", "PUT"),
    headers: fc.array(header, { maxLength: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(request, async (given) => {
      const path = `/trpc/${given.names.map((each) => encodeURIComponent(each.isWellFormed() ? each : "x")).join(",")}?${given.batch ? "batch=1&" : ""}${given.method === "GET" ? `input=${encodeURIComponent(JSON.stringify(given.input) ?? "")}` : ""}`;
      const answer = await world
        .call(as(given.who), given.method, path, { headers: Object.fromEntries(given.headers), ...(given.method === "GET" ? {} : { body: given.input }) })
        .catch((error: unknown) => {
          if ((error instanceof TypeError && !/fetch failed/.test(error.message)) || error instanceof SyntaxError) return null;
          throw new Error(`no answer for ${JSON.stringify(given)}`, { cause: error });
        });
      if (answer !== null) check(given, answer);
    }),
    bounded,
  );
});

test(`random bytes on the HTTP port never cause a 5xx (seed ${SEED})`, async () => {
  const good =
    head("POST /v1/pairing/initiate", { "content-type": "application/json", "content-length": "31" }) + JSON.stringify({ device_fingerprint: "bytes-1" });
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 300 }).map((each) => Buffer.from(each)),
    // A valid request with some bytes replaced.
    fc.array(fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 6 }).map((changes) => {
      const buffer = Buffer.from(good);
      for (const [index, byte] of changes) buffer[index] = byte;
      return buffer;
    }),
    // A valid head with a random body.
    fc
      .uint8Array({ maxLength: 400 })
      .map((body) =>
        Buffer.concat([
          Buffer.from(head("POST /v1/pairing/initiate", { "content-type": "application/json", "content-length": String(body.byteLength) })),
          Buffer.from(body),
        ]),
      ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(bytes, { minLength: 8, maxLength: 8 }), async (all) => {
      // Unfinished requests get only a short wait here; http.test.ts waits until they end.
      const ends = await Promise.all(all.map((each) => rawCall(world.url, [each], { boundMs: 150 })));
      ends.forEach(({ answer }, index) => {
        if (answer !== null && answer.status !== 505) check(all[index]?.toString("base64"), answer);
      });
    }),
    bounded,
  );
});

test(`random frames of one agent end in a documented close code and never end another agent's session (seed ${SEED})`, async () => {
  let moments = 0;
  const nextMoment = (): Date => {
    moments += 1;
    return new Date(Date.now() + moments);
  };
  /** Null: the node sheds load, because the tests keep its process busy. */
  const tryOpen = async (device: Stock["device"]): Promise<WebSocket | null> => {
    const socket = new WebSocket(`${world.url.replace("http", "ws")}/v1/agent/connect`, SUBPROTOCOL, {
      headers: signedHeaders(device.identity, "", nextMoment()),
    });
    socket.on("error", () => undefined);
    return new Promise((resolve, reject) =>
      socket
        .once("open", () => resolve(socket))
        .once("unexpected-response", (_, { statusCode }) => (statusCode === 503 ? resolve(null) : reject(new Error(`refused with ${statusCode}`)))),
    );
  };
  const open = (device: Stock["device"]): Promise<WebSocket> =>
    eventually(async () => {
      const socket = await tryOpen(device);
      if (socket === null) throw new Error("the node sheds load");
      return socket;
    });
  const [quiet, loud] = [await stock.tenant.device(), await stock.tenant.device()];
  const bystander = await open(quiet);
  let lost = false;
  bystander.on("close", () => {
    lost = true;
  });
  const frame = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.uint8Array({ maxLength: 200 }).map((each) => Buffer.from(each)),
    fc
      .record({
        op: fc.constantFrom("hello", "heartbeat", "ack", "goodbye", "error", "welcome", "x"),
        id: fc.oneof(text, anything),
        data: fc.dictionary(fc.constantFrom("proof", "commandId", "status", "cpu", "reason", "__proto__"), anything),
      })
      .map((each) => JSON.stringify(each)),
    fc.constantFrom("{", "[".repeat(10_000), `{"op":"heartbeat","id":"1","data":{"metrics":{"x":"${"a".repeat(140_000)}"}}}`),
  );
  const stated = new Set<number>([...Object.values(CLOSE).map(({ code }) => code), 1005, 1006]);
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 6 }), async (frames) => {
      const socket = await open(loud);
      const closed = new Promise<number>((resolve) => socket.on("close", (code) => resolve(code)));
      for (const each of frames) socket.send(each);
      socket.close();
      expect(stated).toContain(await closed);
    }),
    { ...bounded, interruptAfterTimeLimit: 2_500, numRuns: 200 },
  );
  expect(lost).toBe(false);
  bystander.terminate();
});
