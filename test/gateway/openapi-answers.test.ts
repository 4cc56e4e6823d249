// The check that every answer of the suite passes: it accepts what the OpenAPI document describes, and nothing else.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CheckedAnswer, checkOpenApiAnswer } from "../kit/checks/openapi-answers.ts";
import { anonymous, startWorld, type World } from "../kit/gateway/world.ts";

let world: World;
let real: CheckedAnswer;
beforeAll(async () => {
  world = await startWorld();
  const owner = await (await world.tenant()).user("owner");
  const path = "/v1/api-keys";
  real = { method: "POST", path, ...(await world.call(owner, "POST", path, { body: { name: "k" } })) };
});
afterAll(() => world.close());

const check = (exchange: Partial<CheckedAnswer>): Promise<void> =>
  checkOpenApiAnswer({ ...real, ...exchange }, async (prefix) => (await fetch(`${world.url}${prefix}/openapi.json`)).json());
const withHeader = (name: string, value: string | null): Headers => {
  const headers = new Headers(real.headers);
  if (value === null) headers.delete(name);
  else headers.set(name, value);
  return headers;
};
// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
const body = (): any => structuredClone(real.body);

test("a real answer passes", async () => {
  expect(real.status).toBe(201);
  await check({});
});

test.each<readonly [string, () => Partial<CheckedAnswer>, RegExp]>([
  ["an undeclared status", () => ({ status: 202 }), /status 202 is not declared/],
  ["an undeclared header", () => ({ headers: withHeader("x-new", "1") }), /header x-new is not declared/],
  ["a missing required header", () => ({ headers: withHeader("x-request-id", null) }), /header x-request-id is missing/],
  ["a header of another type", () => ({ headers: withHeader("x-ratelimit-limit", "many") }), /x-ratelimit-limit: many/],
  ["an undeclared field", () => ({ body: { ...body(), data: { ...body().data, surprise: 1 } } }), /surprise/],
  ["an undeclared field beside data", () => ({ body: { ...body(), surprise: 1 } }), /surprise/],
  ["a missing field", () => ({ body: { ...body(), data: { ...body().data, keyId: undefined } } }), /keyId/],
  ["a field of another type", () => ({ body: { ...body(), data: { ...body().data, version: "1" } } }), /data\/version/],
  ["a value outside its enumeration", () => ({ body: { ...body(), data: { ...body().data, role: "king" } } }), /data\/role/],
  ["an invalid time", () => ({ body: { ...body(), meta: { ...body().meta, timestamp: "noon" } } }), /meta\/timestamp/],
  ["an error under an undeclared status", () => ({ status: 410, body: { success: false, code: "PLAN_LIMIT_EXCEEDED" } }), /status 410 .*is not declared/],
  ["success on an unknown route", () => ({ path: "/v1/nowhere", status: 200 }), /no such operation/],
])("%s fails the check", async (_, change, problem) => {
  await expect(check(change())).rejects.toThrow(problem);
});

test("an error code that the operation does not declare fails although its status is declared", async () => {
  const refused = await world.call(anonymous, "POST", "/v1/api-keys", { body: {} });
  const answer = { method: "POST", path: "/v1/api-keys", ...refused };
  await check(answer);
  await expect(check({ ...answer, body: { ...refused.body, code: "ENROLLMENT_TOKEN_INVALID" } })).rejects.toThrow(
    /code ENROLLMENT_TOKEN_INVALID is not among UNAUTHORIZED/,
  );
});
