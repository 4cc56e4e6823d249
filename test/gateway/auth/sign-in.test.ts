// Sign-in at an identity provider through the browser: the whole flow with a real provider, and everything that may go wrong on the way.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTestClock, systemClock } from "../../../server/core/clock.ts";
import { createIdentityProvider } from "../../../server/platform/identity/identity-provider.ts";
import { createTrustedOutbound } from "../../../server/platform/outbound/outbound.ts";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { openBrowser, type Page } from "../../kit/browser/browser.ts";
import { anonymous, startWorld, type World } from "../../kit/gateway/world.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { type Fault, startIdentityProvider, type TestIdentityProvider } from "../../kit/net/identity-provider.ts";

const FREE = { RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_FAILED_AUTH: "off" };

let provider: TestIdentityProvider;
let world: World;
let tenantId: string;
beforeAll(async () => {
  const port = await freePort();
  provider = await startIdentityProvider(`http://127.0.0.1:${port}`);
  world = await startWorld({ ...FREE, ...provider.env, PORT: String(port), RETURN_HOSTS: "portal.example" });
  ({ tenantId } = await world.app.bootstrap({ name: "House", slug: "house", userId: "ann", unlimited: true }));
});
afterAll(async () => {
  await world.close();
  await provider.close();
});
afterEach(() => provider.heal());

const login = (query = "") => `${world.url}/v1/auth/login${query}`;
const refusalOf = ({ status, body }: Page): unknown[] => [status, body?.code, body?.details?.reason];
/** As far as the callback's address. */
const begin = async (browser = openBrowser(), user = "ann") => {
  const { location } = await browser.visit("GET", login());
  return { browser, callback: await provider.approve(browser, location ?? "", user) };
};
const signIn = async (user = "ann") => {
  const { browser, callback } = await begin(openBrowser(), user);
  const page = await browser.visit("GET", callback);
  return { browser, page, callback };
};

describe("sign-in", () => {
  test("a person signs in at the provider, comes back to the page they wanted, and calls with the session", async () => {
    const browser = openBrowser();
    const first = await browser.visit("GET", login(`?return_to=${encodeURIComponent("https://portal.example/devices")}`));
    expect(first.status).toBe(303);
    const asked = new URL(first.location ?? "").searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      scope: "openid profile email",
      client_id: "mooring",
    });
    expect([asked.get("code_challenge"), asked.get("state"), asked.get("nonce")].map((each) => each?.length)).toEqual([43, 43, 43]);
    const callback = await provider.approve(browser, first.location ?? "", "ann");
    const back = await browser.visit("GET", callback);
    expect([back.status, back.location]).toEqual([303, "https://portal.example/devices"]);
    const me = await browser.visit("GET", `${world.url}/v1/auth/me`, { headers: { "x-svc-tenant-id": tenantId } });
    expect(me.body.data).toMatchObject({ subject: "ann", role: "owner", credential: "user" });
    const { data } = (await browser.visit("GET", `${world.url}/v1/account/sessions`)).body;
    expect(data.filter(({ current }: { readonly current: boolean }) => current)).toMatchObject([{ method: "oidc" }]);
    const made = await browser.visit("POST", `${world.url}/v1/api-keys`, { body: { name: "k" }, headers: { "x-svc-tenant-id": tenantId } });
    expect(made.status).toBe(201);
    expect(
      (await browser.jar.getCookies(world.url))
        .map(({ key }) => key)
        .filter((key) => key.startsWith("mooring"))
        .sort(),
    ).toEqual(["mooring_csrf", "mooring_session"]);
  });

  test("name and email come from the provider, also if only its user info tells them", async () => {
    await signIn("bea");
    const { rows } = await world.sql.query("select email, email_verified, name from users where user_id = 'bea'");
    expect(rows).toEqual([{ email: "bea@example.com", email_verified: true, name: "The bea" }]);
  });

  test("the sign-in has its audit record, which names the person", async () => {
    const { browser } = await signIn("cleo");
    const { sessionId } = (await browser.visit("GET", `${world.url}/v1/auth/session`)).body.data.session;
    const { rows } = await world.sql.query("select action, actor_id, actor_email, resource_id from audit_logs where actor_id = 'cleo'");
    expect(rows).toEqual([{ action: "sessions.callback", actor_id: "cleo", actor_email: "cleo@example.com", resource_id: sessionId }]);
  });

  test("the provider's settings are public, and links of the operator's are refused", async () => {
    const { data } = (await world.call(anonymous, "GET", "/v1/auth/config")).body;
    expect(data).toMatchObject({ issuer: provider.issuer, clientId: "mooring", scopes: ["openid", "profile", "email"], signIn: "oidc", local: false });
    expect([data.authorizationEndpoint, data.loginUrl]).toEqual([`${provider.issuer}/auth`, login()]);
    const refused = await world.call(anonymous, "POST", "/v1/auth/sign-in", { body: { token: "any" } });
    expect([refused.status, refused.body.code]).toEqual([409, "SIGN_IN_NOT_CONFIGURED"]);
    await expect(world.app.signInLink({ userId: "ann" })).rejects.toThrow("OIDC_ISSUER");
  });

  test("signing out names the place where the session at the provider ends, and no access token of ours exists", async () => {
    const { browser } = await signIn();
    expect(refusalOf(await browser.visit("POST", `${world.url}/v1/auth/token`))).toEqual([409, "SIGN_IN_NOT_CONFIGURED", undefined]);
    const { body } = await browser.visit("POST", `${world.url}/v1/auth/logout`);
    expect(body.data.endSessionUrl).toBe(`${provider.issuer}/session/end?client_id=mooring`);
  });

  test("keys that the provider rotates during a sign-in and between two disturb nobody", async () => {
    const { browser, callback } = await begin();
    await provider.rotateKeys();
    expect((await browser.visit("GET", callback)).status).toBe(303);
    await provider.rotateKeys();
    expect((await signIn()).page.status).toBe(303);
  });
});

describe("refusals", () => {
  const NO_SESSION = "mooring_session";
  const withParameter = (url: string, name: string, value: string): string => {
    const changed = new URL(url);
    changed.searchParams.set(name, value);
    return changed.href;
  };

  test.each(["https://evil.example/", "//evil.example", "http://portal.example/", "https://portal.example.evil.example/", "https://a@portal.example/"])(
    "no sign-in leads to %s",
    async (target) => {
      expect(refusalOf(await openBrowser().visit("GET", login(`?return_to=${encodeURIComponent(target)}`)))).toEqual([
        422,
        "RETURN_URL_NOT_ALLOWED",
        undefined,
      ]);
    },
  );

  test("a callback with another state, without the browser's cookie, or in another browser opens no session", async () => {
    const { browser, callback } = await begin();
    expect(refusalOf(await openBrowser().visit("GET", callback))).toEqual([401, "SIGN_IN_FAILED", "not_begun"]);
    const other = openBrowser();
    await other.visit("GET", login());
    expect(refusalOf(await other.visit("GET", callback))).toEqual([401, "SIGN_IN_FAILED", "invalid_answer"]);
    expect(refusalOf(await browser.visit("GET", withParameter(callback, "state", "another")))).toEqual([401, "SIGN_IN_FAILED", "invalid_answer"]);
    for (const each of [browser, other]) expect(await each.cookie(world.url, NO_SESSION)).toBeUndefined();
  });

  test("a code that somebody else asked for is refused: PKCE binds it to its browser", async () => {
    const stolen = new URL((await begin(openBrowser(), "victim")).callback);
    const { browser, callback } = await begin(openBrowser(), "mallory");
    const answer = await browser.visit("GET", withParameter(callback, "code", stolen.searchParams.get("code") ?? ""));
    expect(refusalOf(answer)).toEqual([401, "SIGN_IN_FAILED", "refused"]);
  });

  test("an ID token with another nonce opens no session", async () => {
    const browser = openBrowser();
    const { location } = await browser.visit("GET", login());
    const callback = await provider.approve(browser, withParameter(location ?? "", "nonce", "another"), "ann");
    expect(refusalOf(await browser.visit("GET", callback))).toEqual([401, "SIGN_IN_FAILED", "invalid_answer"]);
  });

  test("a code is good once: a second callback is refused, with the cookie and without", async () => {
    const { browser, callback } = await begin();
    const cookies = await browser.jar.getCookieString(world.url);
    expect((await browser.visit("GET", callback)).status).toBe(303);
    expect(refusalOf(await browser.visit("GET", callback))).toEqual([401, "SIGN_IN_FAILED", "not_begun"]);
    expect(refusalOf(await openBrowser().visit("GET", callback, { headers: { cookie: cookies } }))).toEqual([401, "SIGN_IN_FAILED", "refused"]);
  });

  test("an issuer that another provider claims is refused", async () => {
    const { browser, callback } = await begin();
    expect(refusalOf(await browser.visit("GET", withParameter(callback, "iss", "https://evil.example")))).toEqual([401, "SIGN_IN_FAILED", "issuer"]);
  });

  /** Signs in while the provider answers the code with an ID token of these claims. Its signature counts for nothing: TLS vouches for the provider. */
  const signInWith = async (claims: Readonly<Record<string, unknown>>, alg = "RS256") => {
    const browser = openBrowser();
    const { location } = await browser.visit("GET", login());
    const callback = await provider.approve(browser, location ?? "", "ann");
    const now = Math.floor(Date.now() / 1_000);
    const nonce = new URL(location ?? "").searchParams.get("nonce");
    const payload = { iss: provider.issuer, aud: "mooring", sub: "ann", email: "ann@example.com", iat: now, exp: now + 60, nonce, ...claims };
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const answer = { access_token: "any", token_type: "Bearer", id_token: `${part({ alg })}.${part(payload)}.c2ln` };
    provider.fail((request, response) => {
      if (request.url?.startsWith("/token") !== true) return false;
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
      return true;
    });
    return browser.visit("GET", callback);
  };

  test.each<[reason: string, claims: Readonly<Record<string, unknown>>]>([
    ["issuer", { iss: "https://evil.example" }],
    ["audience", { aud: "another" }],
    ["audience", { aud: ["mooring", "another"] }],
    ["audience", { aud: ["mooring", "another"], azp: "another" }],
    ["expired", { exp: 1_000_000_000 }],
    ["not_yet_valid", { nbf: 5_000_000_000 }],
    ["invalid_answer", { nonce: "another" }],
    ["invalid_answer", { exp: "soon" }],
  ])("an ID token is refused with the word %s for %j", async (reason, claims) => {
    expect(refusalOf(await signInWith(claims))).toEqual([401, "SIGN_IN_FAILED", reason]);
  });

  test("an ID token with an algorithm that the provider does not announce is refused with that word, and a good one signs in", async () => {
    for (const alg of ["none", "HS256"]) expect(refusalOf(await signInWith({}, alg))).toEqual([401, "SIGN_IN_FAILED", "algorithm"]);
    expect((await signInWith({})).status).toBe(303);
  });

  test("a person who declines gets 401, and a provider in trouble 503", async () => {
    const told = async (error: string) => {
      const browser = openBrowser();
      const { location } = await browser.visit("GET", login());
      const state = new URL(location ?? "").searchParams.get("state");
      return refusalOf(await browser.visit("GET", `${world.url}/v1/auth/callback?${new URLSearchParams({ error, state: state ?? "", iss: provider.issuer })}`));
    };
    expect(await told("access_denied")).toEqual([401, "SIGN_IN_FAILED", "denied"]);
    expect(await told("login_required")).toEqual([401, "SIGN_IN_FAILED", "refused"]);
    expect(await told("temporarily_unavailable")).toEqual([503, "IDENTITY_PROVIDER_UNAVAILABLE", undefined]);
  });

  test.each(["", "?state=x", "?code=x", "?code=x&code=y", "?state=%00", `?code=${"x".repeat(4_097)}`, "?__proto__=1"])(
    "the callback %s gets a clear 4xx",
    async (query) => {
      const browser = openBrowser();
      await browser.visit("GET", login());
      const { status, body } = await browser.visit("GET", `${world.url}/v1/auth/callback${query}`);
      expect([400, 401]).toContain(status);
      expect(["VALIDATION_FAILED", "SIGN_IN_FAILED"]).toContain(body.code);
    },
  );

  test("a tampered or foreign cookie of a sign-in counts as none", async () => {
    const { browser, callback } = await begin();
    const cookie = await browser.cookie(world.url, "mooring_sign_in");
    const withCookie = (value: string) => openBrowser().visit("GET", callback, { headers: { cookie: `mooring_sign_in=${value}` } });
    for (const value of ["", "x", "a".repeat(500), `${cookie?.slice(0, -4)}AAAA`])
      expect(refusalOf(await withCookie(value))).toEqual([401, "SIGN_IN_FAILED", "not_begun"]);
  });
});

describe("unavailable provider", () => {
  const away: Fault = (request) => {
    request.socket.destroy();
    return true;
  };
  const broken: Fault = (_, response) => {
    response.writeHead(500, { "content-type": "text/html" }).end("<h1>oops</h1>");
    return true;
  };
  const at =
    (path: string, fault: Fault): Fault =>
    (request, response) =>
      request.url?.startsWith(path) === true && fault(request, response);

  test.each<[string, Fault]>([
    ["breaks connections", away],
    ["answers 500", broken],
    ["answers HTML", (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>") !== undefined],
    ["never answers", () => true],
  ])("while the token endpoint %s, the callback answers 503 and opens no session", async (_, fault) => {
    const { browser, callback } = await begin();
    provider.fail(at("/token", fault));
    const answer = await withTimeout(browser.visit("GET", callback), 20_000, "the callback was not answered");
    expect(refusalOf(answer)).toEqual([503, "IDENTITY_PROVIDER_UNAVAILABLE", undefined]);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("while its user info is away the callback answers 503", async () => {
    const { browser, callback } = await begin();
    provider.fail(at("/me", broken));
    expect(refusalOf(await browser.visit("GET", callback))).toEqual([503, "IDENTITY_PROVIDER_UNAVAILABLE", undefined]);
  });

  test("sessions go on while the provider is away", async () => {
    const { browser } = await signIn();
    provider.fail(away);
    expect((await browser.visit("GET", `${world.url}/v1/auth/session`)).status).toBe(200);
    expect((await browser.visit("POST", `${world.url}/v1/auth/logout`)).status).toBe(200);
  });

  const open = () => {
    const clock = createTestClock();
    const settings = {
      issuer: provider.issuer,
      clientId: "mooring",
      clientSecret: "s",
      scopes: "openid",
      tenantClaim: "tenant_id",
      outbound: createTrustedOutbound(systemClock),
    };
    return { clock, idp: createIdentityProvider({ ...settings, redirectUri: () => `${world.url}/v1/auth/callback` }, clock) };
  };
  const discoveries = () => provider.asked.filter((path) => path.startsWith("/.well-known/")).length;

  test("the provider's description is asked for once, again after ten minutes, and kept while the provider is away", async () => {
    const { clock, idp } = open();
    const before = discoveries();
    await Promise.all([idp.begin(), idp.begin(), idp.authorizationEndpoint()]);
    expect(discoveries() - before).toBe(1);
    clock.advance(599_999);
    await idp.begin();
    expect(discoveries() - before).toBe(1);
    provider.fail(away);
    clock.advance(1);
    expect((await idp.begin()).location).toContain(provider.issuer);
    expect(discoveries() - before).toBe(2);
  });

  test("without a description a sign-in answers 503, asks at most once in 5 s, and works as soon as the provider is back", async () => {
    const { clock, idp } = open();
    const unavailable = { code: "IDENTITY_PROVIDER_UNAVAILABLE" };
    provider.fail(away);
    const before = discoveries();
    for (let n = 0; n < 3; n += 1) await expect(idp.begin()).rejects.toMatchObject(unavailable);
    expect([discoveries() - before, await idp.authorizationEndpoint(), await idp.endSessionUrl()]).toEqual([1, null, null]);
    provider.heal();
    clock.advance(5_000);
    expect((await idp.begin()).location).toContain(provider.issuer);
  });

  test("a provider that describes another issuer counts as unavailable", async () => {
    const { idp } = open();
    provider.fail((_, response) => {
      const body = JSON.stringify({ issuer: "https://evil.example", authorization_endpoint: "https://evil.example/auth" });
      return response.writeHead(200, { "content-type": "application/json" }).end(body) !== undefined;
    });
    await expect(idp.begin()).rejects.toMatchObject({ code: "IDENTITY_PROVIDER_UNAVAILABLE" });
  });
});
