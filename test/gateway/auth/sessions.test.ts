// A person's session in a browser's cookie: what it may do, what a foreign page cannot do with it, and that its end reaches all that it opened.
import { randomUUID } from "node:crypto";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { allowInsecureRequests, discovery } from "openid-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { openBrowser } from "../../kit/browser/browser.ts";
import { type Answer, anonymous, asBearer, type CallOptions, startWorld, type TestSession, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { openStream } from "../../kit/net/event-stream.ts";
import { freePort } from "../../kit/net/free-port.ts";

const FREE = { RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_FAILED_AUTH: "off" };
const STREAM_ENDS_WITHIN_MS = 5_000;

let world: World;
let tenant: TestTenant;
beforeAll(async () => {
  world = await startWorld(FREE);
  tenant = await world.tenant();
});
afterAll(() => world.close());

const signIn = () => world.session(tenant.ownerId, tenant.tenantId);
/** With exactly these headers. */
const bare = (method: string, path: string, headers: Record<string, string>, options: CallOptions = {}): Promise<Answer> =>
  world.call(anonymous, method, path, { ...options, headers });
const change = (headers: Record<string, string>) => bare("POST", "/v1/api-keys", headers, { body: { name: "k" } });
const reasonOf = ({ status, body }: Answer): unknown[] => [status, body.code, body.details?.reason];

describe("sign-in by link", () => {
  test("a link opens one session: of ten attempts at once one succeeds, and a later one fails", async () => {
    const { token } = await world.app.signInLink({ userId: "ann" });
    const attempt = () => world.call(anonymous, "POST", "/v1/auth/sign-in", { body: { token } });
    const answers = await Promise.all(Array.from({ length: 10 }, attempt));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 9 }, () => 401)]);
    expect(reasonOf(await attempt())).toEqual([401, "SIGN_IN_FAILED", "link_invalid"]);
  });

  test("a link of ten minutes ago opens nothing", async () => {
    const { token } = await world.app.signInLink({ userId: "ann" });
    await world.sql.query("update sign_in_links set expires_at = now() - interval '1 second'");
    expect(reasonOf(await world.call(anonymous, "POST", "/v1/auth/sign-in", { body: { token } }))).toEqual([401, "SIGN_IN_FAILED", "link_invalid"]);
  });

  test("a link works in a browser: it signs in and goes on to the documents", async () => {
    const browser = openBrowser();
    const { url } = await world.app.signInLink({ userId: tenant.ownerId, tenantId: tenant.tenantId });
    expect(url).toContain(`${world.url}/v1/auth/login?token=`);
    const first = await browser.visit("GET", url);
    expect([first.status, first.location]).toEqual([303, `${world.url}/v1/docs`]);
    const { body } = await browser.visit("GET", `${world.url}/v1/auth/me`);
    expect(body.data).toMatchObject({ credential: "user", subject: tenant.ownerId, tenantId: tenant.tenantId, role: "owner" });
    expect((await browser.visit("GET", url)).status).toBe(401);
  });

  test("a link that states an address signs in with it as verified, so an invite to it can be accepted; one without keeps what is known", async () => {
    const email = "ann@people.example";
    const account = async (link: { readonly email?: string }) => {
      const browser = openBrowser();
      await browser.visit("GET", (await world.app.signInLink({ userId: "ann-with-address", ...link })).url);
      return (await browser.visit("GET", `${world.url}/v1/account`)).body.data;
    };
    expect(await account({})).toMatchObject({ email: null, emailVerified: false });
    expect(await account({ email })).toMatchObject({ email, emailVerified: true });
    expect(await account({})).toMatchObject({ email, emailVerified: true });
  });

  test("neither the link's token nor the session's secret is stored or logged in the audit log", async () => {
    const { token } = await world.app.signInLink({ userId: "secretive" });
    const { headers } = await world.call(anonymous, "POST", "/v1/auth/sign-in", { body: { token } });
    const secret = /mooring_session=([\w-]{43})/.exec(headers.get("set-cookie") ?? "")?.[1] ?? "none";
    const rows = await Promise.all(["sessions", "sign_in_links", "audit_logs", "users"].map((table) => world.sql.query(`select * from ${table}`)));
    const text = JSON.stringify(rows.map((each) => each.rows));
    expect(text).toContain("secretive");
    expect([text.includes(token), text.includes(secret), secret.length]).toEqual([false, false, 43]);
  });

  test.each([
    ["", 400],
    [`${"x".repeat(129)}`, 400],
    ["a\u0000b", 400],
    ["\ud800", 400],
    ["__proto__", 401],
  ])("the token %j is refused with %i", async (token, status) => {
    expect((await world.call(anonymous, "POST", "/v1/auth/sign-in", { body: { token } })).status).toBe(status);
  });

  test("without an identity provider the sign-in there is refused and says so", async () => {
    expect(reasonOf(await bare("GET", "/v1/auth/login", {}))).toEqual([409, "SIGN_IN_NOT_CONFIGURED", undefined]);
    expect(reasonOf(await bare("GET", "/v1/auth/callback?code=a&state=b", {}))).toEqual([409, "SIGN_IN_NOT_CONFIGURED", undefined]);
  });

  test("the user's first and last sign-in are recorded", async () => {
    const userId = randomUUID();
    const read = async () => (await world.sql.query("select created_at, last_sign_in_at from users where user_id = $1", [userId])).rows[0];
    await world.session(userId);
    const first = await read();
    await world.session(userId);
    const second = await read();
    expect(second.created_at).toEqual(first.created_at);
    expect(second.last_sign_in_at.getTime()).toBeGreaterThanOrEqual(first.last_sign_in_at.getTime());
  });
});

describe("cookie", () => {
  test("over plain HTTP the cookies are HttpOnly or readable, SameSite=Lax, without Secure", async () => {
    const { token } = await world.app.signInLink({ userId: "ann" });
    const [session = "", csrf = ""] = (await world.call(anonymous, "POST", "/v1/auth/sign-in", { body: { token } })).headers.getSetCookie();
    expect(session).toMatch(/^mooring_session=[\w-]{43}; Path=\/; Max-Age=1209600; SameSite=Lax; HttpOnly$/);
    expect(csrf).toMatch(/^mooring_csrf=[\w-]{43}; Path=\/; Max-Age=1209600; SameSite=Lax$/);
  });

  test("behind TLS the cookies are Secure with the prefix __Host-, and one without the prefix is ignored", async () => {
    const port = await freePort();
    const secure = await startWorld({ ...FREE, PORT: String(port), PUBLIC_URL: "https://gateway.example" }, { beside: world });
    const ask = (method: string, path: string, headers: Record<string, string>, body?: string) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body }),
      });
    try {
      const { token } = await secure.app.signInLink({ userId: tenant.ownerId, tenantId: tenant.tenantId });
      const cookies = (await ask("POST", "/v1/auth/sign-in", {}, JSON.stringify({ token }))).headers.getSetCookie();
      expect(cookies.map((each) => /^__Host-mooring_\w+=[\w-]{43}; Path=\/; Max-Age=\d+; SameSite=Lax(; HttpOnly)?; Secure$/.test(each))).toEqual([true, true]);
      const cookie = cookies[0]?.split(";")[0] ?? "";
      const me = async (sent: string) => (await ask("GET", "/v1/auth/me", { cookie: sent })).status;
      expect([await me(cookie), await me(cookie.replace("__Host-", ""))]).toEqual([200, 401]);
    } finally {
      await secure.close();
    }
  });

  test("a session is one more form of a person's credential, over REST, tRPC and streams", async () => {
    const { cookie, as } = await signIn();
    expect((await bare("GET", "/v1/devices", { cookie: `other=1; ${cookie}; more=2` })).status).toBe(200);
    expect((await bare("GET", "/trpc/devices.list?input=%7B%7D", { cookie })).status).toBe(200);
    expect((await world.call(as, "POST", "/trpc/apiKeys.create", { body: { name: "k" } })).status).toBe(200);
    (await openStream(world.url, { headers: { cookie } })).close();
  });

  test("over tRPC a sign-in sets the same cookies", async () => {
    const { token } = await world.app.signInLink({ userId: "ann" });
    const { headers, body } = await world.call(anonymous, "POST", "/trpc/sessions.signIn", { body: { token } });
    expect(headers.getSetCookie().map((each) => each.split("=")[0])).toEqual(["mooring_session", "mooring_csrf"]);
    expect(body.result.data.csrfToken).toMatch(/^[\w-]{43}$/);
  });

  test("a credential in a header counts before the cookie, which browsers attach by themselves", async () => {
    const { cookie } = await signIn();
    const other = await world.tenant();
    const token = await other.token();
    const subject = async (headers: Record<string, string>) => (await bare("GET", "/v1/auth/me", { cookie, ...headers })).body.data?.subject;
    expect(await subject({ authorization: `Bearer ${token}` })).toBe(other.ownerId);
    expect(await subject(other.apiKey.headers(""))).toMatch(/^key_/);
    expect(reasonOf(await bare("GET", "/v1/auth/me", { cookie, authorization: "Bearer x" }))).toEqual([401, "UNAUTHORIZED", "malformed"]);
    const two = { authorization: `Bearer ${token}`, ...other.apiKey.headers("") };
    expect(reasonOf(await bare("GET", "/v1/auth/me", two))).toEqual([400, "VALIDATION_FAILED", "multiple_credentials"]);
  });

  test.each([
    ["an unknown secret", (cookie: string) => `${cookie.slice(0, -3)}xyz`, "session_ended"],
    ["text of another form", () => "mooring_session=hello", "session_ended"],
    ["an empty value", () => "mooring_session=", "session_ended"],
    ["the cookie twice", (cookie: string) => `${cookie}; ${cookie}`, "missing"],
    ["another cookie", () => "not_mooring_session=1", "missing"],
  ])("%s is refused with 401", async (_, of, reason) => {
    const { cookie } = await signIn();
    expect(reasonOf(await bare("GET", "/v1/devices", { cookie: of(cookie) }))).toEqual([401, "UNAUTHORIZED", reason]);
  });

  test("a session of a link with a tenant works in no other tenant", async () => {
    const { as } = await signIn();
    const other = await world.tenant();
    const answer = await world.call(as, "GET", "/v1/devices", { headers: { "x-svc-tenant-id": other.tenantId } });
    expect(reasonOf(answer)).toEqual([403, "FORBIDDEN", "tenant_mismatch"]);
    const { as: free } = await world.session(tenant.ownerId);
    expect((await world.call(free, "GET", "/v1/devices", { headers: { "x-svc-tenant-id": tenant.tenantId } })).status).toBe(200);
    expect(reasonOf(await world.call(free, "GET", "/v1/devices", { headers: { "x-svc-tenant-id": other.tenantId } }))).toEqual([
      403,
      "FORBIDDEN",
      "not_a_member",
    ]);
  });
});

describe("requests of foreign pages", () => {
  test("a change needs the CSRF token of this very session", async () => {
    const { cookie, csrfToken } = await signIn();
    const other = await signIn();
    expect(reasonOf(await change({ cookie }))).toEqual([403, "FORBIDDEN", "csrf_token_missing"]);
    for (const wrong of ["", "x", other.csrfToken, `${csrfToken}x`, csrfToken.toUpperCase()])
      expect([wrong, ...reasonOf(await change({ cookie, "x-csrf-token": wrong }))]).toEqual([wrong, 403, "FORBIDDEN", "csrf_token_wrong"]);
    // What an attacker can plant from a neighbouring host is the second cookie, and nobody reads that.
    expect((await change({ cookie: `${cookie}; mooring_csrf=planted`, "x-csrf-token": "planted" })).status).toBe(403);
    expect((await change({ cookie, "x-csrf-token": csrfToken })).status).toBe(201);
    expect((await bare("POST", "/trpc/apiKeys.create", { cookie }, { body: { name: "k" } })).status).toBe(403);
  });

  test("every method that changes needs it", async () => {
    const { cookie } = await signIn();
    for (const [method, path] of [
      ["PATCH", `/v1/tenants/${tenant.tenantId}`],
      ["DELETE", "/v1/account/sessions"],
      ["POST", "/v1/auth/logout"],
      ["POST", "/v1/auth/token"],
      ["POST", "/v1/auth/stream-ticket"],
    ] as const)
      expect([path, ...reasonOf(await bare(method, path, { cookie }, method === "PATCH" ? { body: { name: "x" } } : {}))]).toEqual([
        path,
        403,
        "FORBIDDEN",
        "csrf_token_missing",
      ]);
  });

  test("a change from a page of another origin is refused even with the token, and one of the gateway's own host is not", async () => {
    const { cookie, csrfToken } = await signIn();
    const from = (origin: string, headers = {}) => change({ cookie, "x-csrf-token": csrfToken, origin, ...headers });
    for (const origin of ["https://evil.example", "null", `${world.url}.evil.example`, "http://127.0.0.1", ""])
      expect([origin, ...reasonOf(await from(origin))]).toEqual([origin, 403, "FORBIDDEN", "origin_not_allowed"]);
    expect((await from(world.url)).status).toBe(201);
  });

  test("a portal on a listed origin may make changes and read the answers; any other may not", async () => {
    const portal = "https://portal.example";
    const listed = await startWorld({ ...FREE, CORS_ORIGINS: portal }, { beside: world });
    try {
      const { cookie, csrfToken } = await signIn();
      const from = (origin: string) =>
        listed.call(anonymous, "POST", "/v1/api-keys", { body: { name: "k" }, headers: { cookie, "x-csrf-token": csrfToken, origin } });
      const good = await from(portal);
      expect([good.status, good.headers.get("access-control-allow-origin"), good.headers.get("access-control-allow-credentials")]).toEqual([
        201,
        portal,
        "true",
      ]);
      const bad = await from("https://evil.example");
      expect([bad.status, bad.headers.get("access-control-allow-origin"), bad.headers.get("access-control-allow-credentials")]).toEqual([403, null, null]);
    } finally {
      await listed.close();
    }
  });

  test("while any origin may call, no foreign page may read with the cookie", async () => {
    const { cookie } = await signIn();
    const { headers } = await bare("GET", "/v1/devices", { cookie, origin: "https://evil.example" });
    expect([headers.get("access-control-allow-origin"), headers.get("access-control-allow-credentials")]).toEqual(["*", null]);
  });

  test("a page learns the token of its session, and a bearer token has no session", async () => {
    const { as, csrfToken, sessionId } = await signIn();
    expect((await world.call(as, "GET", "/v1/auth/session")).body.data).toMatchObject({ csrfToken, session: { sessionId, current: true, method: "link" } });
    expect((await world.call(await tenant.user(), "GET", "/v1/auth/session")).body.data).toEqual({ csrfToken: null, session: null });
  });
});

describe("return addresses", () => {
  test.each([
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "http://127.0.0.1@evil.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "\\\\evil.example",
  ])("no sign-in leads to %s, and the link stays good", async (target) => {
    const { token } = await world.app.signInLink({ userId: "ann" });
    const at = `/v1/auth/login?token=${token}`;
    expect(reasonOf(await bare("GET", `${at}&return_to=${encodeURIComponent(target)}`, {}))).toEqual([422, "RETURN_URL_NOT_ALLOWED", undefined]);
    expect((await bare("GET", at, {})).status).toBe(303);
  });

  test.each(["/devices?tab=1#top", "/"])("a sign-in leads to %s on the portal", async (target) => {
    const { token } = await world.app.signInLink({ userId: "ann" });
    const answer = await bare("GET", `/v1/auth/login?token=${token}&return_to=${encodeURIComponent(target)}`, {});
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `${world.url}${target}`]);
  });
});

/** Everything that a session opened. */
const openAll = async (session: TestSession) => {
  const { accessToken } = (await world.call(session.as, "POST", "/v1/auth/token")).body.data;
  const { ticket } = (await world.call(session.as, "POST", "/v1/auth/stream-ticket")).body.data;
  const unused = (await world.call(session.as, "POST", "/v1/auth/stream-ticket")).body.data.ticket as string;
  const streams = await Promise.all([
    openStream(world.url, { headers: { cookie: session.cookie } }),
    openStream(world.url, { ticket }),
    openStream(world.url, { headers: { authorization: `Bearer ${accessToken}` } }),
  ]);
  return { accessToken: accessToken as string, unused, streams };
};

describe("end of a session", () => {
  test.each([
    [
      "its owner ends it from another session",
      async ({ sessionId }: TestSession) => world.call((await signIn()).as, "DELETE", `/v1/account/sessions/${sessionId}`),
    ],
    ["its owner ends all others", async () => world.call((await signIn()).as, "DELETE", "/v1/account/sessions")],
    ["its owner signs out", async ({ as }: TestSession) => world.call(as, "POST", "/v1/auth/logout")],
  ])("when %s, the next call is refused, as are its access token and its ticket, and its streams end within 5 s", async (_, end) => {
    const session = await signIn();
    const { accessToken, unused, streams } = await openAll(session);
    expect((await end(session)).status).toBeLessThan(300);
    expect(reasonOf(await world.call(session.as, "GET", "/v1/devices"))).toEqual([401, "UNAUTHORIZED", "session_ended"]);
    expect(reasonOf(await world.call(asBearer(accessToken), "GET", "/v1/devices"))).toEqual([401, "UNAUTHORIZED", "session_ended"]);
    await expect(openStream(world.url, { ticket: unused })).rejects.toThrow("ticket_invalid");
    for (const { ended } of streams) expect(await withTimeout(ended, STREAM_ENDS_WITHIN_MS, "the stream did not end")).toContain("session_ended");
  });

  test("signing out deletes the cookies, and a browser that did it starts anew", async () => {
    const browser = openBrowser();
    await browser.visit("GET", (await world.app.signInLink({ userId: tenant.ownerId })).url);
    const session = `${world.url}/v1/auth/session`;
    expect((await browser.visit("GET", session)).status).toBe(200);
    const left = await browser.visit("POST", `${world.url}/v1/auth/logout`);
    expect([left.status, left.body.data]).toEqual([200, { endSessionUrl: null }]);
    expect(await browser.jar.getCookies(world.url)).toEqual([]);
    expect((await browser.visit("GET", session)).status).toBe(401);
  });

  test("a person ends only sessions of their own, and another's id is as unknown as any", async () => {
    const other = await world.session("somebody-else");
    const { as } = await signIn();
    const answers = await Promise.all([other.sessionId, "ses_unknown"].map((id) => world.call(as, "DELETE", `/v1/account/sessions/${id}`)));
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
      [404, "SESSION_NOT_FOUND"],
      [404, "SESSION_NOT_FOUND"],
    ]);
    expect((await world.call(other.as, "GET", "/v1/auth/me")).status).toBe(200);
  });

  test.each(["ses_a%00b", `ses_${"x".repeat(200)}`])("the session id %s gets a clear 4xx", async (id) => {
    expect((await world.call((await signIn()).as, "DELETE", `/v1/account/sessions/${id}`)).status).toBe(400);
  });

  test("the list shows the user's sessions, newest first, and which is this one", async () => {
    const userId = randomUUID();
    const first = await world.session(userId);
    const second = await world.session(userId);
    const { data } = (await world.call(first.as, "GET", "/v1/account/sessions")).body;
    expect(data.map(({ sessionId, current }: { sessionId: string; current: boolean }) => [sessionId, current])).toEqual([
      [second.sessionId, false],
      [first.sessionId, true],
    ]);
    expect(JSON.stringify(data)).not.toContain(first.cookie.split("=")[1]);
  });
});

describe("access tokens of a session", () => {
  test("only the cookie gets one: a token cannot renew itself", async () => {
    const { as } = await signIn();
    const { accessToken, expiresAt } = (await world.call(as, "POST", "/v1/auth/token")).body.data;
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(900_000);
    for (const token of [accessToken, await tenant.token()])
      expect(reasonOf(await world.call(asBearer(token), "POST", "/v1/auth/token"))).toEqual([403, "FORBIDDEN", "session_required"]);
    expect((await world.call(asBearer(accessToken), "GET", "/v1/devices")).status).toBe(200);
  });

  test("a relying party of stock libraries finds the local issuer and verifies its tokens", async () => {
    const metadata = (await discovery(new URL(world.url), "any", undefined, undefined, { execute: [allowInsecureRequests] })).serverMetadata();
    const { issuer, audience, jwksUri } = (await bare("GET", "/v1/auth/config", {})).body.data;
    expect([metadata.issuer, metadata.jwks_uri]).toEqual([issuer, jwksUri]);
    const { as, sessionId } = await signIn();
    const { accessToken } = (await world.call(as, "POST", "/v1/auth/token")).body.data;
    const keys = createRemoteJWKSet(new URL(metadata.jwks_uri ?? ""));
    const required = ["exp", "sub", "iat", "jti", "client_id"];
    const { payload } = await jwtVerify(accessToken, keys, { issuer: metadata.issuer, audience, typ: "at+jwt", requiredClaims: required });
    expect(payload).toMatchObject({ sub: tenant.ownerId, sid: sessionId, tenant_id: tenant.tenantId });
    const { payload: minted } = await jwtVerify(await tenant.token(), keys, { issuer: metadata.issuer, audience, typ: "at+jwt", requiredClaims: required });
    expect(minted.sub).toBe(tenant.ownerId);
  });
});
