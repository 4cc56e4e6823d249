// Every operation that a batch may contain answers in it as it does alone.
import { afterAll, beforeAll, expect, test } from "vitest";
import { isBatchable } from "../../../protocol/index.ts";
import { type Case, callerFor, isRead, NEEDS_PROVIDER, openStock, REST_CASES, type Stock, sample, send, toRequest } from "../../contract/samples.ts";
import { eventsDispatched } from "../../kit/gateway/dispatched.ts";
import { type Answer, startWorld, type World } from "../../kit/gateway/world.ts";

const FREE = { RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off", TENANTS_PER_USER: "1000" };
let world: World;
let stock: Stock;
beforeAll(async () => {
  world = await startWorld(FREE, { inProcess: true });
  stock = await openStock(world);
});
afterAll(() => world.close());

const cases = REST_CASES.filter(({ id, op }) => isBatchable(op) && !NEEDS_PROVIDER.has(id));

/** What stays the same from one call to the next: the form of the answer, and the words that say what it is about. */
const formOf = (value: unknown, name = ""): unknown => {
  if (Array.isArray(value)) return value.slice(0, 1).map((each) => formOf(each));
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, formOf(each, key)]));
  return ["success", "code", "status", "message"].includes(name) ? value : typeof value;
};
type Input = Awaited<ReturnType<typeof sample>>;
const alone = (each: Case, input: Input): Promise<Answer> => send(stock, callerFor(each, stock), "/v1", toRequest(each.op, input));
const inBatch = async (each: Case, input: Input): Promise<{ status: number; body: unknown; headers: Record<string, string> }> => {
  const { method, path, body } = toRequest(each.op, input);
  const answer = await world.call(callerFor(each, stock), "POST", "/v1/batch", {
    body: { requests: [{ id: "only", method, path, ...(body === undefined ? {} : { body }) }] },
  });
  expect([answer.status, answer.body]).toEqual([200, expect.anything()]);
  return answer.body.data.responses[0];
};

test("most operations may be in a batch", () => {
  expect(cases.length).toBeGreaterThan(REST_CASES.length * 0.6);
});

test.each(cases.map((each) => [each.id, each] as const))("%s", async (_, each) => {
  const input = await sample(each, stock);
  // Both shall show the same event as the tenant's newest.
  if (isRead(each)) await eventsDispatched(world, stock.tenant.tenantId);
  const single = await alone(each, input);
  // A read has not used its input up.
  const { status, body, headers } = await inBatch(each, isRead(each) ? input : await sample(each, stock));
  expect(status).toBe(single.status);
  expect(formOf(body)).toEqual(formOf(single.body ?? null));
  expect(headers["location"] !== undefined).toBe(single.headers.has("location"));
});
