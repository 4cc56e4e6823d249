// The context of a request: the peer's address, read on demand and only while the library's object lives, and the header lines.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RequestContext } from "../../server/gateway/http/request-context.ts";
import { type Listener, listen } from "../../server/gateway/uws/listen.ts";
import { head, rawCall } from "./raw.ts";

let listener: Listener;
let handle: (context: RequestContext) => Promise<void>;
beforeAll(async () => {
  listener = await listen({ host: "127.0.0.1", port: 0, transport: { receive: () => ({ maxBodyBytes: 1_000, handle: (context) => handle(context) }) } });
});
afterAll(() => listener.close());

const url = () => `http://127.0.0.1:${listener.port}`;
const aTurn = () => new Promise((resolve) => setImmediate(resolve));

test("the address is known until the answer is sent, and remembered if it was read before", async () => {
  const told: string[] = [];
  handle = async (context) => {
    await aTurn();
    told.push(context.request.peer);
    context.respond({ status: 200, headers: {}, body: "well" });
    told.push(context.request.peer);
  };
  const { answer } = await rawCall(url(), [head("GET /")]);
  expect([answer?.status, told]).toEqual([200, ["127.0.0.1", "127.0.0.1"]]);
});

test("the address is empty if it is first read after the answer", async () => {
  let told: string | null = null;
  handle = async (context) => {
    context.respond({ status: 200, headers: {}, body: "well" });
    told = context.request.peer;
  };
  const { answer } = await rawCall(url(), [head("GET /")]);
  expect([answer?.status, told]).toEqual([200, ""]);
});

test("the address is empty if it is first read after the peer disconnected, and remembered if it was read before", async () => {
  const afterItLeft = (early: boolean): Promise<string> =>
    new Promise((resolve) => {
      handle = async ({ request, gone }) => {
        if (early) expect(request.peer).toBe("127.0.0.1");
        gone.signal.addEventListener("abort", () => setImmediate(() => resolve(request.peer)));
      };
      void rawCall(url(), [head("GET /")], { boundMs: 100 });
    });
  expect([await afterItLeft(false), await afterItLeft(true)]).toEqual(["", "127.0.0.1"]);
});

test("repeated lines of a header are joined or counted as repeated, however many header names there are", async () => {
  const seen: RequestContext["request"][] = [];
  handle = async (context) => {
    seen.push(context.request);
    context.respond({ status: 200, headers: { "X-First": "1", "X-Second": "2" }, body: null });
  };
  const names = Array.from({ length: 1_200 }, (_, index) => `x-name-${index}`);
  for (let from = 0; from < names.length; from += 50) {
    const some = names.slice(from, from + 50).map((name): [string, string] => [name, `of ${name}`]);
    const { answer } = await rawCall(url(), [head("GET /", [...some, ["X-Name-0", "again"], ["Origin", "a"], ["origin", "b"]])]);
    expect([answer?.headers.get("x-first"), answer?.headers.get("x-second")]).toEqual(["1", "2"]);
    const { headers, repeated } = seen.at(-1) ?? {};
    expect(some.every(([name, value]) => headers?.[name] === (name === "x-name-0" ? `${value}, again` : value))).toBe(true);
    expect([headers?.["origin"], ...(repeated ?? [])]).toEqual(["a", "origin"]);
  }
});
