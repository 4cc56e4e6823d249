// A real identity provider: its key server, its keys of three kinds, and everything that looks like its tokens but is not.
import { createServer, type Server, type ServerResponse } from "node:http";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTestClock } from "../../server/core/clock.ts";
import { createOidcTokens } from "../../server/platform/jwt.ts";
import { asBearer, startWorld, type World } from "../kit/world.ts";

const AUDIENCE = "mooring";
const ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"] as const;

interface Provider {
  readonly issuer: string;
  readonly keys: Map<string, { readonly privateKey: CryptoKey; readonly publicKey: CryptoKey }>;
  readonly jwks: JWK[];
  /** Status of the key server's answers. */
  status: number;
  /** What it says instead of the keys. */
  answer: ((response: ServerResponse) => void) | null;
  asked: number;
  close(): Promise<void>;
}

const addKey = async (provider: Pick<Provider, "keys" | "jwks">, alg: string, kid = alg): Promise<void> => {
  const pair = await generateKeyPair(alg, { extractable: true });
  provider.keys.set(kid, pair);
  provider.jwks.push({ ...(await exportJWK(pair.publicKey)), kid, alg, use: "sig" });
};

const openProvider = async (): Promise<Provider> => {
  const server: Server = createServer((_, response) => {
    provider.asked += 1;
    if (provider.answer !== null) provider.answer(response);
    else response.writeHead(provider.status, { "content-type": "application/json" }).end(JSON.stringify({ keys: provider.jwks }));
  });
  const port = await new Promise<number>((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const provider: Provider = { issuer: `http://127.0.0.1:${port}`, keys: new Map(), jwks: [], status: 200, answer: null, asked: 0, close };
  for (const alg of ALGORITHMS) await addKey(provider, alg);
  return provider;
};

let provider: Provider;
let world: World;
let tenantId: string;
beforeAll(async () => {
  provider = await openProvider();
  world = await startWorld({ OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, RATE_LIMIT_FAILED_AUTH: "off" });
  ({ tenantId } = await world.app.bootstrap({ name: "House", slug: "house", userId: "ann", unlimited: true }));
});
afterAll(async () => {
  await world.close();
  await provider.close();
});

interface Token {
  readonly kid?: string;
  readonly alg?: string;
  readonly key?: CryptoKey | Uint8Array;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Of the head. */
  readonly typ?: string;
  readonly expires?: string | number;
}
const nowSeconds = (): number => Math.floor(Date.now() / 1_000);
/** Claims win over the usual ones, those of time included. */
const issue = ({ kid = "EdDSA", alg = kid, key, claims = {}, typ, expires = "5m" }: Token = {}): Promise<string> => {
  const signer = key ?? provider.keys.get(kid)?.privateKey;
  if (signer === undefined) throw new Error(`no key ${kid}`);
  const usual = { sub: "ann", iss: provider.issuer, aud: AUDIENCE, tenant_id: tenantId, email: "ann@example.com", iat: nowSeconds() };
  const token = new SignJWT({ ...usual, ...claims }).setProtectedHeader({ alg, kid, ...(typ === undefined ? {} : { typ }) });
  return (claims["exp"] === undefined ? token.setExpirationTime(expires) : token).sign(signer);
};
const use = async (token: string) => world.call(asBearer(token), "GET", "/v1/devices");
const verdict = async (token: string) => {
  const { status, body } = await use(token);
  return [status, body.code ?? null, body.details?.reason ?? null];
};

test.each(ALGORITHMS)("%s is accepted", async (kid) => {
  expect(await verdict(await issue({ kid }))).toEqual([200, null, null]);
});

test("the provider's facts are told, and no local key set is served", async () => {
  const { body } = await world.call(asBearer(await issue()), "GET", "/v1/auth/config");
  expect(body.data).toMatchObject({ issuer: provider.issuer, audience: AUDIENCE, jwksUri: `${provider.issuer}/.well-known/jwks.json`, local: false });
  expect((await use(await issue())).status).toBe(200);
  expect((await world.call(asBearer(await issue()), "GET", "/.well-known/jwks.json")).status).toBe(404);
});

test("org_id names the tenant where tenant_id does not", async () => {
  expect(await verdict(await issue({ claims: { tenant_id: undefined, org_id: tenantId } }))).toEqual([200, null, null]);
});

describe("is refused", () => {
  test("alg none", async () => {
    const token = new UnsecuredJWT({ sub: "ann", tenant_id: tenantId }).setIssuer(provider.issuer).setAudience(AUDIENCE).setExpirationTime("5m").encode();
    expect(await verdict(token)).toEqual([401, "UNAUTHORIZED", "malformed"]);
    const [, payload] = (await issue()).split(".");
    expect(await verdict(`${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.`)).toEqual([401, "UNAUTHORIZED", "malformed"]);
  });

  test("a public key used as HMAC secret", async () => {
    const secret = new TextEncoder().encode(await exportSPKI(provider.keys.get("RS256")?.publicKey as CryptoKey));
    expect(await verdict(await issue({ kid: "RS256", alg: "HS256", key: secret }))).toEqual([401, "UNAUTHORIZED", "malformed"]);
  });

  test.each([
    ["another issuer", { claims: { iss: "http://elsewhere.example" } }, "wrong_issuer"],
    ["another audience", { claims: { aud: "elsewhere" } }, "wrong_audience"],
    ["an expired token", { expires: Math.floor(Date.now() / 1_000) - 60 }, "token_expired"],
    ["a token of the future", { claims: { nbf: Math.floor(Date.now() / 1_000) + 600 } }, "malformed"],
    ["no subject", { claims: { sub: undefined } }, "malformed"],
    ["an empty subject", { claims: { sub: "" } }, "malformed"],
  ])("%s", async (_, token, reason) => {
    expect(await verdict(await issue(token))).toEqual([401, "UNAUTHORIZED", reason]);
  });

  test("a token without an end", async () => {
    const token = await new SignJWT({ sub: "ann", iss: provider.issuer, aud: AUDIENCE, tenant_id: tenantId })
      .setProtectedHeader({ alg: "EdDSA", kid: "EdDSA" })
      .sign(provider.keys.get("EdDSA")?.privateKey as CryptoKey);
    expect(await verdict(token)).toEqual([401, "UNAUTHORIZED", "malformed"]);
  });

  test("a good token with one character changed, or with rubbish for a head", async () => {
    const token = await issue();
    const [header, , signature] = token.split(".");
    const forged = Buffer.from(JSON.stringify({ sub: "root", iss: provider.issuer, aud: AUDIENCE, exp: 4_000_000_000, tenant_id: tenantId })).toString(
      "base64url",
    );
    for (const bad of [
      `${header}.${forged}.${signature}`,
      token.slice(0, -3),
      `${token}.x`,
      "a.b.c",
      "x",
      "..",
      `${Buffer.from('{"alg":1}').toString("base64url")}.${forged}.`,
      `${Buffer.from("[]").toString("base64url")}.${forged}.x`,
    ])
      expect([bad.slice(0, 20), ...(await verdict(bad))]).toEqual([bad.slice(0, 20), 401, "UNAUTHORIZED", "malformed"]);
  });

  test("a member of nothing, whatever tenant and role the token claims", async () => {
    expect(await verdict(await issue({ claims: { sub: "stranger", role: "owner" } }))).toEqual([403, "FORBIDDEN", "not_a_member"]);
  });

  test("an unknown key, without asking the provider each time", async () => {
    await use(await issue());
    const { privateKey } = await generateKeyPair("EdDSA");
    const before = provider.asked;
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => verdict(await issue({ kid: `unknown-${index}`, alg: "EdDSA", key: privateKey }))),
    );
    for (const answer of answers) expect(answer).toEqual([401, "UNAUTHORIZED", "malformed"]);
    expect(provider.asked - before).toBeLessThanOrEqual(1);
  });
});

const HOUR = 3_600;
const DAY = 24 * HOUR;

describe("claims are what they have to be, or the token is refused", () => {
  test.each([
    ["an end that never comes", { exp: 1e308 }, "token_times"],
    ["a life longer than any provider gives", { exp: nowSeconds() + 40 * DAY }, "token_times"],
    ["issued a day ahead", { iat: nowSeconds() + DAY }, "token_times"],
    ["good from tomorrow on", { nbf: nowSeconds() + DAY }, "malformed"],
    ["a subject of 10 kB", { sub: "s".repeat(2_000) }, "malformed"],
    ["a subject of 256 characters", { sub: "s".repeat(256) }, "malformed"],
    ["NUL in the subject", { sub: "a\u0000nn" }, "malformed"],
    ["half a character in the subject, which would fold onto another's", { sub: "ann\ud800" }, "malformed"],
    ["NUL in the tenant", { tenant_id: "ten_\u0000" }, "malformed"],
    ["half a character in the tenant", { tenant_id: "ten_\udc00" }, "malformed"],
    ["a number for a tenant", { tenant_id: 7 }, "malformed"],
    ["a list for a tenant", { tenant_id: ["ten_1"] }, "malformed"],
    ["an object for a tenant", { tenant_id: {} }, "malformed"],
    ["false for a tenant", { tenant_id: false }, "malformed"],
    ["null for a tenant", { tenant_id: null }, "malformed"],
    ["an empty tenant", { tenant_id: "" }, "malformed"],
    ["a number for org_id, which stands in for the tenant", { tenant_id: undefined, org_id: 7 }, "malformed"],
    ["NUL in the email", { email: "a\u0000@example.com" }, "malformed"],
  ])("%s", async (_, claims, reason) => {
    expect(await verdict(await issue({ claims }))).toEqual([401, "UNAUTHORIZED", reason]);
  });

  test("a subject of 255 characters is nobody's, but a subject", async () => {
    expect(await verdict(await issue({ claims: { sub: "s".repeat(255) } }))).toEqual([403, "FORBIDDEN", "not_a_member"]);
  });

  test("clocks may differ by half a minute, and a month is not too long", async () => {
    for (const claims of [{ iat: nowSeconds() + 20 }, { nbf: nowSeconds() + 20 }, { exp: nowSeconds() - 20 }, { exp: nowSeconds() + 30 * DAY }])
      expect([claims, ...(await verdict(await issue({ claims })))]).toEqual([claims, 200, null, null]);
  });
});

describe("of all that a provider signs, access tokens alone are good", () => {
  test.each([
    ["Keycloak", "JWT", { typ: "Bearer", azp: "portal", scope: "openid", sid: "s" }],
    ["an older Keycloak, which keeps the nonce", "JWT", { typ: "Bearer", nonce: "n" }],
    ["Auth0", "JWT", { aud: [AUDIENCE, "https://house.example/userinfo"], azp: "portal", scope: "openid profile", gty: "password" }],
    ["RFC 9068, as Auth0 and others write it when asked", "at+jwt", { client_id: "portal", jti: "j" }],
    ["RFC 9068 in full", "application/at+jwt", { client_id: "portal", nonce: "n" }],
    ["Cognito", undefined, { token_use: "access", client_id: AUDIENCE, aud: undefined, scope: "openid" }],
    ["Entra", "JWT", { ver: "2.0", azp: "portal", scp: "access_as_user", oid: "o", tid: "t", uti: "u", rh: "r" }],
    ["Okta", undefined, { ver: 1, cid: "portal", uid: "u", scp: ["openid"] }],
    ["a plain one", undefined, {}],
  ])("as those of %s", async (_, typ, claims) => {
    expect(await verdict(await issue({ claims, ...(typ === undefined ? {} : { typ }) }))).toEqual([200, null, null]);
  });

  test.each([
    ["Keycloak's ID token", "JWT", { typ: "ID", nonce: "n", at_hash: "h" }],
    ["Keycloak's refresh token", "JWT", { typ: "Refresh" }],
    ["Keycloak's offline token", "JWT", { typ: "Offline" }],
    ["Keycloak's token that is bound to a key", "JWT", { typ: "DPoP" }],
    ["Cognito's ID token", undefined, { token_use: "id" }],
    ["a refresh token by token_type", undefined, { token_type: "refresh" }],
    ["a mark that is no text", undefined, { token_use: 1 }],
    ["an ID token with a nonce", "JWT", { nonce: "n" }],
    ["an ID token beside an access token", "JWT", { at_hash: "h" }],
    ["an ID token beside a code", undefined, { c_hash: "h" }],
    ["a logout token", "logout+jwt", { events: { "http://schemas.openid.net/event/backchannel-logout": {} } }],
    ["a logout token without a type", undefined, { events: { "http://schemas.openid.net/event/backchannel-logout": {} } }],
    ["a security event", "secevent+jwt", {}],
    ["a proof of possession", "dpop+jwt", {}],
  ])("and not %s", async (_, typ, claims) => {
    expect(await verdict(await issue({ claims, ...(typ === undefined ? {} : { typ }) }))).toEqual([401, "UNAUTHORIZED", "wrong_token_type"]);
  });

  test("a token without an audience is not for us, unless Cognito says for whom it is", async () => {
    for (const claims of [{ aud: undefined }, { aud: undefined, client_id: AUDIENCE }, { aud: undefined, token_use: "access", client_id: "other" }])
      expect(await verdict(await issue({ claims }))).toEqual([401, "UNAUTHORIZED", "wrong_audience"]);
  });
});

describe("while the provider is away", () => {
  test("nobody is told that their token is bad", async () => {
    const away = await openProvider();
    const other = await startWorld({ OIDC_ISSUER: away.issuer });
    const check = async () => {
      const token = await issue({ claims: { iss: away.issuer } });
      const { status, body, headers } = await other.call(asBearer(token), "GET", "/v1/devices");
      expect([status, body.code, body.retryable, Number(headers.get("retry-after")) > 0]).toEqual([503, "IDENTITY_PROVIDER_UNAVAILABLE", true, true]);
    };
    away.status = 500;
    await check();
    await away.close();
    await check();
    await other.close();
  });

  const SETTINGS = { audience: AUDIENCE, tenantClaim: "tenant_id" };
  const open = (uri?: string) => {
    const clock = createTestClock(new Date());
    return { ...createOidcTokens(provider.issuer, uri, SETTINGS, clock), clock };
  };
  const UNAVAILABLE = { code: "IDENTITY_PROVIDER_UNAVAILABLE" };
  const stranger = async (kid: string) => issue({ kid, alg: "EdDSA", key: (await generateKeyPair("EdDSA")).privateKey, expires: "2h" });
  afterEach(() => {
    provider.status = 200;
    provider.answer = null;
  });

  test("its last keys stay good, and a key that may be new is not called wrong", async () => {
    const { verify, clock } = open();
    const token = await issue({ expires: "2h" });
    expect((await verify(token)).userId).toBe("ann");
    provider.status = 503;
    clock.advance(11 * 60_000);
    expect((await verify(token)).tenantId).toBe(tenantId);
    await expect(verify(await stranger("fresh"))).rejects.toMatchObject(UNAVAILABLE);
  });

  test("it is asked once in 30 seconds, whatever its last answer was and however many ask", async () => {
    const { verify, clock } = open();
    provider.status = 503;
    const before = provider.asked;
    const ask = async (): Promise<number> => {
      const tokens = await Promise.all([stranger("one"), stranger("two"), issue(), issue()]);
      for (let n = 0; n < 3; n += 1) await Promise.all(tokens.map((token) => expect(verify(token)).rejects.toMatchObject(UNAVAILABLE)));
      return provider.asked - before;
    };
    expect(await ask()).toBe(1);
    clock.advance(29_999);
    expect(await ask()).toBe(1);
    clock.advance(1);
    expect(await ask()).toBe(2);
    provider.status = 200;
    clock.advance(30_000);
    expect((await verify(await issue())).userId).toBe("ann");
    for (let n = 0; n < 5; n += 1) await expect(verify(await stranger(`k${n}`))).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    expect(provider.asked - before).toBe(3);
    // A key that was found does not make the next search free.
    clock.advance(30_000);
    provider.status = 503;
    for (let n = 0; n < 5; n += 1) await expect(verify(await stranger(`k${n}`))).rejects.toMatchObject(UNAVAILABLE);
    expect((await verify(await issue({ expires: "2h" }))).userId).toBe("ann");
    expect(provider.asked - before).toBe(4);
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ["redirects", (response) => void response.writeHead(302, { location: `${provider.issuer}/elsewhere` }).end()],
    ["redirects for good", (response) => void response.writeHead(301, { location: "/elsewhere" }).end()],
    ["sends more than 256 kB", (response) => void response.writeHead(200).end(JSON.stringify({ keys: provider.jwks, padding: "x".repeat(300_000) }))],
    ["never ends its answer", (response) => void response.writeHead(200).write('{"keys":[')],
    ["breaks off", (response) => void response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy())],
    ["sends a page", (response) => void response.writeHead(200).end("<html>")],
    ["sends no list", (response) => void response.writeHead(200).end('{"keys":1}')],
    [
      "sends a key that is none",
      (response) => void response.writeHead(200).end('{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"EdDSA","alg":"EdDSA","x":"AA"}]}'),
    ],
    ["answers nothing", (response) => void response.writeHead(204).end()],
  ])("a key server that %s counts as away, within seconds", async (_, answer) => {
    provider.answer = answer;
    const startedAt = performance.now();
    await expect(open().verify(await issue())).rejects.toMatchObject(UNAVAILABLE);
    expect(performance.now() - startedAt).toBeLessThan(8_000);
  });

  test("a key that the provider adds is found once the pause is over, and one that it withdrew is good no more", async () => {
    const { verify, clock } = open();
    await verify(await issue());
    await addKey(provider, "ES256", "second");
    const token = await issue({ kid: "second", alg: "ES256", expires: "2h" });
    await expect(verify(token)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    clock.advance(30_000);
    expect((await verify(token)).userId).toBe("ann");
    provider.jwks.pop();
    clock.advance(600_000);
    await expect(verify(token)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });
});
