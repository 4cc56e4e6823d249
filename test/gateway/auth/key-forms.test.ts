// The further forms of an API key, in Authorization: they act as the form with headers of its own does, in the key's own tenant.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMooring } from "../../../protocol/client/index.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let apiKey: string;
let keyId: string;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_FAILED_AUTH: "off" });
  tenant = await world.tenant();
  ({ apiKey, keyId } = (await world.call(await tenant.user(), "POST", "/v1/api-keys", { body: { name: "k" } })).body.data);
});
afterAll(() => world.close());

const by = (headers: Record<string, string>): Caller => ({ kind: "apiKey", headers: () => headers });
const basic = (user: string, password = "") => ({ authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const me = async (headers: Record<string, string>, path = "/v1/auth/me") => {
  const { status, body } = await world.call(by(headers), "GET", path);
  return [status, body.data?.subject ?? body.code ?? body.result?.data.subject ?? null, body.data?.tenantId ?? body.details?.reason ?? null];
};

test.each([
  ["as a bearer token", () => bearer(apiKey)],
  ["as the user of curl -u", () => basic(apiKey)],
  ["with its own tenant's id beside it", () => ({ ...bearer(apiKey), "x-svc-tenant-id": tenant.tenantId })],
  ["with the schemes' names in any case", () => ({ authorization: basic(apiKey).authorization.replace("Basic", "bASIC") })],
])("a key is good %s", async (_, headers) => {
  expect(await me(headers())).toEqual([200, keyId, tenant.tenantId]);
  expect((await world.call(by(headers()), "GET", "/trpc/general.me")).body.result.data).toMatchObject({ subject: keyId, credential: "apiKey" });
});

test("a key beside another tenant's id is refused in every form", async () => {
  const { tenantId } = await world.tenant();
  for (const form of [bearer(apiKey), basic(apiKey), { "x-api-key": apiKey }])
    expect(await me({ ...form, "x-svc-tenant-id": tenantId })).toEqual([403, "FORBIDDEN", "tenant_mismatch"]);
});

test("the interface's form still needs its tenant's id", async () => {
  expect(await me({ "x-api-key": apiKey })).toEqual([401, "UNAUTHORIZED", "missing_tenant_header"]);
});

test("a key with a typo is malformed in every form", async () => {
  const typo = apiKey.replace("svk_live_", "svk_live_x").slice(0, apiKey.length);
  for (const form of [bearer(typo), basic(typo), { "x-api-key": typo, "x-svc-tenant-id": tenant.tenantId }])
    expect(await me(form)).toEqual([401, "UNAUTHORIZED", "api_key_malformed"]);
});

test("Basic takes nothing but a key without a password", async () => {
  for (const form of [
    basic(apiKey, "secret"),
    basic("alice"),
    basic(""),
    basic("", apiKey),
    { authorization: "Basic" },
    { authorization: "Basic %%%" },
    basic("svk_\0"),
  ])
    expect((await me(form)).slice(0, 2)).toEqual([401, "UNAUTHORIZED"]);
});

test("a key counts as one credential beside others", async () => {
  expect(await me({ ...bearer(apiKey), "x-api-key": apiKey, "x-svc-tenant-id": tenant.tenantId })).toEqual([400, "VALIDATION_FAILED", "multiple_credentials"]);
});

test("a key in Authorization may do no more than in its own header", async () => {
  expect((await me(bearer(apiKey), "/v1/api-keys")).slice(0, 2)).toEqual([403, "FORBIDDEN"]);
});

test("the typed client takes a key as its token", async () => {
  const mooring = createMooring({ url: world.url, token: apiKey });
  expect(await mooring.general.me.query({})).toMatchObject({ subject: keyId, tenantId: tenant.tenantId });
  expect((await mooring.devices.list.query({})).total).toBe(0);
});

test("the OpenAPI document lists every form of a key", async () => {
  const { components, paths } = (await world.call(by({}), "GET", "/v1/openapi.json")).body;
  const { security } = paths["/devices"].get;
  expect(security).toContainEqual({ apiKey: [], tenantId: [] });
  for (const name of ["apiKeyBearer", "apiKeyBasic"]) {
    expect(security).toContainEqual({ [name]: [] });
    expect(components.securitySchemes[name]).toMatchObject({ type: "http" });
  }
});
