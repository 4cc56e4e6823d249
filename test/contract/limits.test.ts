// Every operation enforces its rate limit: the first call beyond it is refused and says how long to wait.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../protocol/index.ts";
import { type Answer, asBearer, asKey, type Caller, OPERATOR, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { type Case, openStock, REST_CASES, type Stock, sample, toRequest } from "./samples.ts";

const LIMIT = 2;
const TIGHT = Object.fromEntries(
  ["STANDARD", "READS", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "INVITES", "WEBHOOK_TESTS"].map((name) => [`RATE_LIMIT_${name}`, String(LIMIT)]),
);

let world: World;
/** Unlimited: prepares the inputs. */
let stock: Stock;
/** Limited: makes the calls. Each one counts, even if it answers 404. */
let limited: TestTenant;

beforeAll(async () => {
  world = await startWorld({ ...TIGHT, TRUSTED_PROXIES: "127.0.0.0/8", ADMIN_USERS: ADMINISTRATORS }, { spread: true, inProcess: true });
  stock = await openStock(world);
  limited = await world.tenant({ unlimited: false });
});
afterAll(() => world.close());

/** Administrators of the installation, because some operations admit only them. */
const ADMINISTRATORS = [OPERATOR, ...Array.from({ length: 999 }, (_, index) => `caller-${index}`)].join(",");
let callers = 0;
/** A caller that has made no calls. */
const freshCaller = async ({ op }: Case): Promise<Caller & { readonly deviceId?: string }> => {
  callers += 1;
  if (op.auth.includes("public")) return { kind: "none", headers: () => ({}) };
  if (op.auth.includes("agent") && !op.auth.includes("user")) {
    const { as, deviceId } = await limited.device();
    return { ...as, deviceId };
  }
  return asBearer((await world.app.mint({ userId: `caller-${callers}`, tenantId: limited.tenantId, role: "owner", ttlSeconds: 600 })).token);
};

const countsByInput = ({ op }: Case): boolean => LIMITS[op.limit].some(({ per }) => per.startsWith("input:"));
const counted = REST_CASES.filter(({ op }) => LIMITS[op.limit].length > 0);

describe("limits", () => {
  test.each(counted.map((each) => [each.id, each] as const))("%s refuses the call after the last allowed one", async (_, each) => {
    const caller = await freshCaller(each);
    // Where no bucket is one of the input, the call counts before anybody reads it.
    const input = countsByInput(each) ? await sample(each, stock) : { deviceId: "unknown" };
    const request = toRequest(each.op, caller.deviceId !== undefined && "deviceId" in input ? { ...input, deviceId: caller.deviceId } : input);
    const headers = { "x-forwarded-for": `198.18.${callers >> 8}.${callers & 255}` };
    const go = () => world.call(caller, request.method, `/v1${request.path}`, { headers, ...(request.body === undefined ? {} : { body: request.body }) });
    const before = [];
    for (let index = 0; index < LIMIT; index += 1) before.push(await go());
    expect(before.map(({ status }) => status)).not.toContain(429);
    expect(before.map(({ headers: given }) => given.get("x-ratelimit-remaining"))).toEqual(["1", "0"]);
    const askedAt = Date.now() / 1_000;
    const refused = await go();
    expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([429, "RATE_LIMIT_EXCEEDED", true]);
    expect(refused.headers.get("x-ratelimit-limit")).toBe(String(LIMIT));
    expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
    const wait = Number(refused.headers.get("retry-after"));
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(refused.body.retryAfter).toBe(wait);
    const reset = Number(refused.headers.get("x-ratelimit-reset"));
    expect(reset).toBeGreaterThanOrEqual(askedAt + wait - 2);
    expect(reset).toBeLessThanOrEqual(Date.now() / 1_000 + wait + 2);
    expect(refused.headers.get("ratelimit")).toMatch(/^"[\w.]+";r=0;t=\d+$/);
  });

  const THREE = encodeURIComponent(JSON.stringify({ 0: {}, 1: {}, 2: {} }));
  const readThree = (as: Caller) => world.call(as, "GET", `/trpc/devices.list,devices.list,devices.list?batch=1&input=${THREE}`);
  const codesOf = ({ body }: Answer) =>
    body
      .filter((each: { error?: unknown }) => each.error !== undefined)
      .map((each: { error: { data: { app: { code: string } } } }) => each.error.data.app.code);
  const list = REST_CASES.find(({ id }) => id === "devices.list") as Case;
  const bucketsOf = async (as: Caller): Promise<Record<string, [number, number]>> => {
    const { data } = (await world.call(as, "GET", "/v1/rate-limit")).body;
    return Object.fromEntries(data.map((each: { bucket: string; limit: number; remaining: number }) => [each.bucket, [each.limit, each.remaining]]));
  };
  const freshKey = async (): Promise<Caller> => {
    const { apiKey } = (await world.call(await freshCaller(list), "POST", "/v1/api-keys", { body: { name: "k" } })).body.data;
    return asKey(apiKey, limited.tenantId);
  };

  test("a tRPC batch of n calls with a key counts as n", async () => {
    const batch = await readThree(await freshKey());
    expect([batch.status, codesOf(batch)]).toEqual([207, ["RATE_LIMIT_EXCEEDED"]]);
  });

  test("a batch of a person's reads counts once, and each of its changes counts", async () => {
    const person = await freshCaller(list);
    expect([codesOf(await readThree(person)), codesOf(await readThree(person))]).toEqual([[], []]);
    const third = await readThree(person);
    expect([third.status, codesOf(third)]).toEqual([429, ["RATE_LIMIT_EXCEEDED", "RATE_LIMIT_EXCEEDED", "RATE_LIMIT_EXCEEDED"]]);
    const changes = await world.call(person, "POST", "/trpc/apiKeys.create,apiKeys.create,apiKeys.create?batch=1", {
      body: { 0: { name: "k" }, 1: { name: "k" }, 2: { name: "k" } },
    });
    expect(codesOf(changes)).toEqual(["RATE_LIMIT_EXCEEDED"]);
  });

  test("a person's reads leave what they may change untouched, and the view shows both", async () => {
    const person = await freshCaller(list);
    await world.call(person, "GET", "/v1/devices");
    await world.call(person, "GET", "/v1/devices");
    expect((await world.call(person, "GET", "/v1/devices")).body.details).toMatchObject({ bucket: "reads", limit: LIMIT });
    expect(await bucketsOf(person)).toMatchObject({ reads: [LIMIT, 0], standard: [LIMIT, LIMIT], tenant: [1_000, expect.any(Number)] });
    expect((await world.call(person, "POST", "/v1/api-keys", { body: { name: "k" } })).headers.get("ratelimit-policy")).toBe(`"standard";q=${LIMIT};w=60`);
    expect(await bucketsOf(person)).toMatchObject({ reads: [LIMIT, 0], standard: [LIMIT, LIMIT - 1] });
  });

  test("a key's reads count as its changes do, and the view shows no bucket that a key does not have", async () => {
    const key = await freshKey();
    await world.call(key, "GET", "/v1/devices");
    expect(await bucketsOf(key)).toEqual({ standard: [LIMIT, LIMIT - 1], tenant: [1_000, expect.any(Number)] });
    const { as } = await limited.device();
    expect(Object.keys(await bucketsOf(as)).sort()).toEqual(["agent", "heartbeat", "inventory"]);
  });

  test("out of the box a person reads 600 times a minute, and a key calls 100 times", () => {
    expect([LIMITS.reads[0], LIMITS.standard[0]]).toEqual([
      { name: "reads", limit: 600, windowSeconds: 60, per: "credential" },
      { name: "standard", limit: 100, windowSeconds: 60, per: "credential" },
    ]);
  });
});
