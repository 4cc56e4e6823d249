// API keys, members and address limits: what a key may do, how soon a revocation holds, whom failed attempts hurt, what the headers say.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { anonymous, asBearer, asKey, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  world = await startWorld({ TRUSTED_PROXIES: "127.0.0.0/8", RATE_LIMIT_FAILED_AUTH: "5", RATE_LIMIT_ANONYMOUS: "4" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const from = (address: string) => ({ "x-forwarded-for": address });
const makeKey = async (body: object, by = owner): Promise<{ keyId: string; as: Caller; apiKey: string }> => {
  const { data } = (await world.call(by, "POST", "/v1/api-keys", { body: { name: "k", ...body } })).body;
  return { keyId: data.keyId, apiKey: data.apiKey, as: asKey(data.apiKey, tenant.tenantId) };
};
const asks = (as: Caller, headers: Record<string, string> = {}, path = "/v1/devices") => world.call(as, "GET", path, { headers });

describe.concurrent("API keys", () => {
  test("a key with an allowlist works only from those addresses, as seen through trusted proxies", async () => {
    const { as } = await makeKey({ ipAllowlist: ["203.0.113.0/24", "2001:db8::/32"] });
    for (const good of ["203.0.113.9", "2001:db8::1", "198.51.100.1, 203.0.113.9", "::ffff:203.0.113.9"])
      expect([good, (await asks(as, from(good))).status]).toEqual([good, 200]);
    for (const bad of ["198.51.100.1", "203.0.113.9, 198.51.100.1", "2001:db9::1", "nonsense"])
      expect([bad, (await asks(as, from(bad))).body.code]).toEqual([bad, "API_KEY_IP_DENIED"]);
  });

  test("a revoked key is refused at the next call", async () => {
    const { as, keyId } = await makeKey({});
    expect((await asks(as)).status).toBe(200);
    expect((await world.call(owner, "DELETE", `/v1/api-keys/${keyId}`)).status).toBe(204);
    const answer = await asks(as, from("192.0.2.1"));
    expect([answer.status, answer.body.code, answer.body.details.reason]).toEqual([401, "UNAUTHORIZED", "api_key_revoked"]);
  });

  test("a key works only in its own tenant", async () => {
    const other = await world.tenant();
    const { apiKey } = await makeKey({});
    const answer = await asks(asKey(apiKey, other.tenantId));
    expect([answer.status, answer.body.details.reason]).toEqual([403, "tenant_mismatch"]);
  });

  test("a malformed key is refused with 401", async () => {
    const { apiKey } = await makeKey({});
    for (const bad of [`${apiKey}x`, apiKey.slice(0, -1), apiKey.toUpperCase(), "svk_", "x"])
      expect([(await asks(asKey(bad, tenant.tenantId), from("192.0.2.2"))).status]).toEqual([401]);
  });

  test("a key weakens with its creator's role and ends with their membership", async () => {
    const admin = await tenant.user("admin");
    const { as } = await makeKey({ role: "admin" }, admin);
    expect((await asks(as, {}, "/v1/pairing/enrollment-tokens")).status).toBe(200);
    const { subject } = (await world.call(admin, "GET", "/v1/auth/me")).body.data;
    await world.sql.query("update memberships set role = 'viewer' where user_id = $1", [subject]);
    await eventually(async () => expect((await asks(as, {}, "/v1/pairing/enrollment-tokens")).status).toBe(403));
    expect((await asks(as)).status).toBe(200);
    await world.sql.query("delete from memberships where user_id = $1", [subject]);
    await eventually(async () => expect((await asks(as, from("192.0.2.3"))).status).toBe(401));
  });
});

describe.concurrent("members", () => {
  test("a removed member is soon refused, whatever their token says", async () => {
    const userId = newId("usr");
    const { token } = await world.app.mint({ userId, tenantId: tenant.tenantId, role: "operator", ttlSeconds: 600 });
    expect((await asks(asBearer(token))).status).toBe(200);
    await world.sql.query("delete from memberships where user_id = $1", [userId]);
    const refused = await eventually(async () => {
      const answer = await asks(asBearer(token));
      expect(answer.status).toBe(403);
      return answer;
    });
    expect(refused.body.details).toEqual({ reason: "not_a_member" });
  });

  test("a call names one tenant: token and header must agree", async () => {
    const other = await world.tenant();
    const answer = await asks(owner, { "x-svc-tenant-id": other.tenantId });
    expect([answer.status, answer.body.details.reason]).toEqual([403, "tenant_mismatch"]);
    const { token } = await world.app.mint({ userId: tenant.ownerId, ttlSeconds: 600 });
    expect((await asks(asBearer(token), { "x-svc-tenant-id": tenant.tenantId })).status).toBe(200);
    expect((await asks(asBearer(token), { "x-svc-tenant-id": other.tenantId })).body.details.reason).toBe("not_a_member");
  });
});

describe.concurrent("stream re-authentication", () => {
  const watching = async (headers: Record<string, string>): Promise<{ readonly ended: Promise<string> }> => {
    const stream = await fetch(`${world.url}/trpc/live.watch?input={}`, { headers: { accept: "text/event-stream", ...headers } });
    expect(stream.status).toBe(200);
    return { ended: stream.text() };
  };
  /** How a stream ended: tRPC's own code and ours. */
  const endOf = (text: string) => {
    const { data } = JSON.parse(/event: serialized-error\ndata: (.*)/.exec(text)?.[1] ?? "{}");
    return [data?.code, data?.httpStatus, data?.app?.code, data?.app?.details?.reason];
  };

  test("an open stream ends with UNAUTHORIZED once its key is revoked", async () => {
    const { apiKey, keyId } = await makeKey({});
    const { ended } = await watching({ "x-api-key": apiKey, "x-svc-tenant-id": tenant.tenantId });
    await world.call(owner, "DELETE", `/v1/api-keys/${keyId}`);
    expect(endOf(await ended)).toEqual(["UNAUTHORIZED", 401, "UNAUTHORIZED", "api_key_revoked"]);
  }, 20_000);

  test("an open stream ends with FORBIDDEN once its user is no longer a member", async () => {
    const userId = newId("usr");
    const { token } = await world.app.mint({ userId, tenantId: tenant.tenantId, role: "operator", ttlSeconds: 600 });
    const { ended } = await watching({ authorization: `Bearer ${token}` });
    await world.sql.query("delete from memberships where user_id = $1", [userId]);
    expect(endOf(await ended)).toEqual(["FORBIDDEN", 403, "FORBIDDEN", "not_a_member"]);
  }, 20_000);
});

describe("limits", () => {
  test("an address with too many failed attempts gets 429, but valid callers from it are still served", async () => {
    const address = from("192.0.2.50");
    const bad = asBearer("not.a.token");
    const seen = [];
    for (let times = 0; times < 7; times += 1) seen.push((await asks(bad, address)).status);
    expect(seen).toEqual([401, 401, 401, 401, 401, 429, 429]);
    const refused = await asks(bad, address);
    expect([refused.body.details.bucket, Number(refused.headers.get("retry-after")) > 0]).toEqual(["failed_auth", true]);
    for (const as of [owner, tenant.apiKey, (await tenant.device()).as]) expect((await asks(as, address, "/v1/auth/me")).status).toBe(200);
    expect((await asks(bad, from("192.0.2.51"))).status).toBe(401);
  });

  test("addresses of one IPv6 network count as one", async () => {
    const statuses = [];
    for (let host = 1; host <= 5; host += 1) statuses.push((await asks(anonymous, from(`2001:db8:1:2::${host}`), "/v1/info")).status);
    expect(statuses).toEqual([200, 200, 200, 200, 429]);
    expect((await asks(anonymous, from("2001:db8:1:3::1"), "/v1/info")).status).toBe(200);
  });

  test("the rate limit headers count down and agree on the reset time", async () => {
    const address = from("192.0.2.60");
    for (let left = 3; left >= 0; left -= 1) {
      const { headers } = await asks(anonymous, address, "/v1/info");
      expect([headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining"), headers.get("ratelimit-policy")]).toEqual([
        "4",
        String(left),
        '"anonymous";q=4;w=60',
      ]);
      expect(Number(headers.get("x-ratelimit-reset"))).toBeLessThan(Date.now() / 1_000 + 63);
    }
    const refused = await asks(anonymous, address, "/v1/info");
    const wait = Number(refused.headers.get("retry-after"));
    expect(refused.headers.get("ratelimit")).toBe(`"anonymous";r=0;t=${wait}`);
    expect([refused.body.retryAfter, refused.body.details.bucket, refused.body.details.limit, refused.body.details.windowSeconds]).toEqual([
      wait,
      "anonymous",
      4,
      60,
    ]);
    expect(Math.ceil(Date.parse(refused.body.details.resetAt) / 1_000)).toBe(Number(refused.headers.get("x-ratelimit-reset")));
  });

  test("an invalid request counts against the limit like any other", async () => {
    const address = from("192.0.2.61");
    const rubbish = () => world.call(anonymous, "GET", "/v1/info?nonsense=%ZZ", { headers: address });
    const statuses = [];
    for (let times = 0; times < 5; times += 1) statuses.push((await rubbish()).status);
    expect(statuses).toEqual([400, 400, 400, 400, 429]);
  });

  test("an unlimited or unknown route shows no limit headers", async () => {
    expect((await asks(anonymous, {}, "/v1/health/live")).headers.get("x-ratelimit-limit")).toBeNull();
    expect((await asks(anonymous, {}, "/v1/nowhere")).headers.get("x-ratelimit-limit")).toBeNull();
  });
});
