// The check that every answer of the suite passes through: it lets through what the document says, and nothing else.
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkDescribed, type RequestContext } from "../kit/described.ts";
import { nobody, startWorld, type World } from "../kit/world.ts";

let world: World;
let real: RequestContext;
beforeAll(async () => {
  world = await startWorld();
  const owner = await (await world.tenant()).user("owner");
  const path = "/v1/api-keys";
  real = { method: "POST", path, ...(await world.call(owner, "POST", path, { body: { name: "k" } })) };
});
afterAll(() => world.close());

const check = (exchange: Partial<RequestContext>): Promise<void> =>
  checkDescribed({ ...real, ...exchange }, async (prefix) => (await fetch(`${world.url}${prefix}/openapi.json`)).json());
const withHeader = (name: string, value: string | null): Headers => {
  const headers = new Headers(real.headers);
  if (value === null) headers.delete(name);
  else headers.set(name, value);
  return headers;
};
// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
const body = (): any => structuredClone(real.body);

test("what the gateway answered passes", async () => {
  expect(real.status).toBe(201);
  await check({});
});

test.each<readonly [string, () => Partial<RequestContext>, RegExp]>([
  ["a status that is not declared", () => ({ status: 202 }), /status 202 is not declared/],
  ["a header that is not declared", () => ({ headers: withHeader("x-new", "1") }), /header x-new is not declared/],
  ["a header that is promised and missing", () => ({ headers: withHeader("x-request-id", null) }), /header x-request-id is missing/],
  ["a header of another form", () => ({ headers: withHeader("x-ratelimit-limit", "many") }), /x-ratelimit-limit: many/],
  ["a field that is not declared", () => ({ body: { ...body(), data: { ...body().data, surprise: 1 } } }), /surprise/],
  ["a field beside data that is not declared", () => ({ body: { ...body(), surprise: 1 } }), /surprise/],
  ["a field that is missing", () => ({ body: { ...body(), data: { ...body().data, keyId: undefined } } }), /keyId/],
  ["a field of another type", () => ({ body: { ...body(), data: { ...body().data, version: "1" } } }), /data\/version/],
  ["a word that is not in its enumeration", () => ({ body: { ...body(), data: { ...body().data, role: "king" } } }), /data\/role/],
  ["a time that is none", () => ({ body: { ...body(), meta: { ...body().meta, timestamp: "noon" } } }), /meta\/timestamp/],
  ["an error of another status", () => ({ status: 404, body: { success: false, code: "PLAN_LIMIT_EXCEEDED" } }), /status 404 .*is not declared/],
  ["success where no operation is", () => ({ path: "/v1/nowhere", status: 200 }), /no such operation/],
])("%s does not", async (_, change, problem) => {
  await expect(check(change())).rejects.toThrow(problem);
});

test("an error that the operation does not declare does not pass, though its status is declared", async () => {
  const refused = await world.call(nobody, "POST", "/v1/api-keys", { body: {} });
  const answer = { method: "POST", path: "/v1/api-keys", ...refused };
  await check(answer);
  await expect(check({ ...answer, body: { ...refused.body, code: "ENROLLMENT_TOKEN_INVALID" } })).rejects.toThrow(
    /code ENROLLMENT_TOKEN_INVALID is not among UNAUTHORIZED/,
  );
});
