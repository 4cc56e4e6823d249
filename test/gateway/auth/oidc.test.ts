// An identity provider: its key server, its keys, and everything that looks like one of its access tokens but is not.

import { createServer, type Server, type ServerResponse } from "node:http";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { TOKEN_REFUSALS, type TokenRefusal } from "../../../protocol/index.ts";
import { createTestClock, systemClock } from "../../../server/core/clock.ts";
import { createOidcTokens } from "../../../server/platform/identity/jwt.ts";
import { createTrustedOutbound } from "../../../server/platform/outbound/outbound.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { asBearer, startWorld, type World } from "../../kit/gateway/world.ts";

const AUDIENCE = "mooring";
const ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"] as const;

interface Provider {
  readonly issuer: string;
  readonly keys: Map<string, { readonly privateKey: CryptoKey; readonly publicKey: CryptoKey }>;
  readonly jwks: JWK[];
  /** Status of the key server's answers. */
  status: number;
  /** Answers instead of the keys. */
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

const lines: Readonly<Record<string, unknown>>[] = [];
const log = { ...silentLog, info: (fields: object) => void lines.push({ ...fields }) };

let provider: Provider;
let world: World;
let tenantId: string;
beforeAll(async () => {
  provider = await openProvider();
  world = await startWorld({ OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE, RATE_LIMIT_FAILED_AUTH: "off" }, { log });
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
  /** The `typ` of the token's header. */
  readonly typ?: string;
  readonly expires?: string | number;
}
const nowSeconds = (): number => Math.floor(Date.now() / 1_000);
/** Signs a token. The given claims replace the usual ones, times included. */
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

test.each(ALGORITHMS)("a token signed with %s is accepted", async (kid) => {
  expect(await verdict(await issue({ kid }))).toEqual([200, null, null]);
});

test("with a provider, the gateway publishes that provider's settings and no key set of its own", async () => {
  const { body } = await world.call(asBearer(await issue()), "GET", "/v1/auth/config");
  expect(body.data).toMatchObject({ issuer: provider.issuer, audience: AUDIENCE, jwksUri: `${provider.issuer}/.well-known/jwks.json`, local: false });
  expect((await use(await issue())).status).toBe(200);
  expect((await world.call(asBearer(await issue()), "GET", "/.well-known/jwks.json")).status).toBe(404);
});

test("org_id names the tenant if tenant_id is absent", async () => {
  expect(await verdict(await issue({ claims: { tenant_id: undefined, org_id: tenantId } }))).toEqual([200, null, null]);
});

/** One for each word; those without a row of its own here fail to compile. */
const REFUSED: { readonly [Reason in TokenRefusal]: () => Promise<string> } = {
  issuer: () => issue({ claims: { iss: `${provider.issuer}/` } }),
  audience: () => issue({ claims: { aud: "elsewhere" } }),
  expired: () => issue({ expires: nowSeconds() - 60 }),
  not_yet_valid: () => issue({ claims: { nbf: nowSeconds() + 600 } }),
  lifetime: () => issue({ expires: "40d" }),
  key_unknown: async () => issue({ kid: "another", alg: "EdDSA", key: (await generateKeyPair("EdDSA")).privateKey }),
  algorithm: () => issue({ kid: "RS256", alg: "HS256", key: new Uint8Array(32) }),
  signature: async () => issue({ kid: "EdDSA", key: (await generateKeyPair("EdDSA")).privateKey }),
  token_type: () => issue({ typ: "logout+jwt" }),
  malformed: () => issue({ claims: { sub: "" } }),
};

describe("a refused token", () => {
  test.each(Object.keys(TOKEN_REFUSALS) as TokenRefusal[])("says %s in the answer, and in the log beside the request's id", async (reason) => {
    const { status, body } = await use(await REFUSED[reason]());
    expect([status, body.code, body.details]).toEqual([401, "UNAUTHORIZED", { reason }]);
    expect(lines.filter(({ requestId }) => requestId === body.requestId)).toMatchObject([{ code: "UNAUTHORIZED", reason }]);
  });

  test("of a foreign issuer says so, although its key is unknown, too", async () => {
    const key = (await generateKeyPair("EdDSA")).privateKey;
    expect(await verdict(await issue({ kid: "foreign", alg: "EdDSA", key, claims: { iss: "https://elsewhere.example" } }))).toEqual([
      401,
      "UNAUTHORIZED",
      "issuer",
    ]);
  });
});

describe("forged tokens", () => {
  test("an unsigned token (alg none) is refused", async () => {
    const token = new UnsecuredJWT({ sub: "ann", tenant_id: tenantId }).setIssuer(provider.issuer).setAudience(AUDIENCE).setExpirationTime("5m").encode();
    expect(await verdict(token)).toEqual([401, "UNAUTHORIZED", "algorithm"]);
    const [, payload] = (await issue()).split(".");
    expect(await verdict(`${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.`)).toEqual([401, "UNAUTHORIZED", "algorithm"]);
  });

  test("a token with the public key as HMAC secret is refused", async () => {
    const secret = new TextEncoder().encode(await exportSPKI(provider.keys.get("RS256")?.publicKey as CryptoKey));
    expect(await verdict(await issue({ kid: "RS256", alg: "HS256", key: secret }))).toEqual([401, "UNAUTHORIZED", "algorithm"]);
  });

  test.each([
    ["a token of another issuer", { claims: { iss: "http://elsewhere.example" } }, "issuer"],
    ["a token for another audience", { claims: { aud: "elsewhere" } }, "audience"],
    ["an expired token", { expires: Math.floor(Date.now() / 1_000) - 60 }, "expired"],
    ["a token that is not valid yet", { claims: { nbf: Math.floor(Date.now() / 1_000) + 600 } }, "not_yet_valid"],
    ["a token without a subject", { claims: { sub: undefined } }, "malformed"],
    ["a token with an empty subject", { claims: { sub: "" } }, "malformed"],
  ])("%s is refused", async (_, token, reason) => {
    expect(await verdict(await issue(token))).toEqual([401, "UNAUTHORIZED", reason]);
  });

  test("a token without an expiry is refused", async () => {
    const token = await new SignJWT({ sub: "ann", iss: provider.issuer, aud: AUDIENCE, tenant_id: tenantId })
      .setProtectedHeader({ alg: "EdDSA", kid: "EdDSA" })
      .sign(provider.keys.get("EdDSA")?.privateKey as CryptoKey);
    expect(await verdict(token)).toEqual([401, "UNAUTHORIZED", "malformed"]);
  });

  test("a token with a changed part or a broken header is refused", async () => {
    const token = await issue();
    const [header, , signature] = token.split(".");
    const forged = Buffer.from(JSON.stringify({ sub: "root", iss: provider.issuer, aud: AUDIENCE, exp: 4_000_000_000, tenant_id: tenantId })).toString(
      "base64url",
    );
    expect(await verdict(`${header}.${forged}.${signature}`)).toEqual([401, "UNAUTHORIZED", "signature"]);
    for (const bad of [
      `${token}.x`,
      "a.b.c",
      "x",
      "..",
      `${Buffer.from('{"alg":1}').toString("base64url")}.${forged}.`,
      `${Buffer.from("[]").toString("base64url")}.${forged}.x`,
    ])
      expect([bad.slice(0, 20), ...(await verdict(bad))]).toEqual([bad.slice(0, 20), 401, "UNAUTHORIZED", "malformed"]);
  });

  test("a user without a membership is refused, whatever tenant and role the token claims", async () => {
    expect(await verdict(await issue({ claims: { sub: "stranger", role: "owner" } }))).toEqual([403, "FORBIDDEN", "not_a_member"]);
  });

  test("tokens with unknown keys are refused at the cost of one request to the provider", async () => {
    await use(await issue());
    const { privateKey } = await generateKeyPair("EdDSA");
    const before = provider.asked;
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => verdict(await issue({ kid: `unknown-${index}`, alg: "EdDSA", key: privateKey }))),
    );
    for (const answer of answers) expect(answer).toEqual([401, "UNAUTHORIZED", "key_unknown"]);
    expect(provider.asked - before).toBeLessThanOrEqual(1);
  });
});

const HOUR = 3_600;
const DAY = 24 * HOUR;

describe("claims", () => {
  test.each([
    ["an expiry that never comes", { exp: 1e308 }, "lifetime"],
    ["a longer life than any provider grants", { exp: nowSeconds() + 40 * DAY }, "lifetime"],
    ["an issue time one day ahead", { iat: nowSeconds() + DAY }, "not_yet_valid"],
    ["a start of validity tomorrow", { nbf: nowSeconds() + DAY }, "not_yet_valid"],
    ["a subject of 10 kB", { sub: "s".repeat(2_000) }, "malformed"],
    ["a subject of 256 characters", { sub: "s".repeat(256) }, "malformed"],
    ["a NUL in the subject", { sub: "a\u0000nn" }, "malformed"],
    ["a lone surrogate in the subject, which could collide with another subject", { sub: "ann\ud800" }, "malformed"],
    ["a NUL in the tenant", { tenant_id: "ten_\u0000" }, "malformed"],
    ["a lone surrogate in the tenant", { tenant_id: "ten_\udc00" }, "malformed"],
    ["a number for a tenant", { tenant_id: 7 }, "malformed"],
    ["a list for a tenant", { tenant_id: ["ten_1"] }, "malformed"],
    ["an object for a tenant", { tenant_id: {} }, "malformed"],
    ["false for a tenant", { tenant_id: false }, "malformed"],
    ["null for a tenant", { tenant_id: null }, "malformed"],
    ["an empty tenant", { tenant_id: "" }, "malformed"],
    ["a number for org_id in place of the tenant", { tenant_id: undefined, org_id: 7 }, "malformed"],
    ["a NUL in the email", { email: "a\u0000@example.com" }, "malformed"],
  ])("a token with %s is refused", async (_, claims, reason) => {
    expect(await verdict(await issue({ claims }))).toEqual([401, "UNAUTHORIZED", reason]);
  });

  test("a subject of 255 characters is valid", async () => {
    expect(await verdict(await issue({ claims: { sub: "s".repeat(255) } }))).toEqual([403, "FORBIDDEN", "not_a_member"]);
  });

  test("a token may be off by 20 s and may live for 30 days", async () => {
    for (const claims of [{ iat: nowSeconds() + 20 }, { nbf: nowSeconds() + 20 }, { exp: nowSeconds() - 20 }, { exp: nowSeconds() + 30 * DAY }])
      expect([claims, ...(await verdict(await issue({ claims })))]).toEqual([claims, 200, null, null]);
  });
});

describe("token types", () => {
  test.each([
    ["an access token of Keycloak", "JWT", { typ: "Bearer", azp: "portal", scope: "openid", sid: "s" }],
    ["an access token of an older Keycloak, which keeps the nonce", "JWT", { typ: "Bearer", nonce: "n" }],
    ["an access token of Auth0", "JWT", { aud: [AUDIENCE, "https://house.example/userinfo"], azp: "portal", scope: "openid profile", gty: "password" }],
    ["an access token by RFC 9068, as Auth0 and others can issue it", "at+jwt", { client_id: "portal", jti: "j" }],
    ["an access token by RFC 9068 with the full media type", "application/at+jwt", { client_id: "portal", nonce: "n" }],
    ["an access token of Cognito", undefined, { token_use: "access", client_id: AUDIENCE, aud: undefined, scope: "openid" }],
    ["an access token of Entra", "JWT", { ver: "2.0", azp: "portal", scp: "access_as_user", oid: "o", tid: "t", uti: "u", rh: "r" }],
    ["an access token of Okta", undefined, { ver: 1, cid: "portal", uid: "u", scp: ["openid"] }],
    ["a token without any type", undefined, {}],
  ])("%s is accepted", async (_, typ, claims) => {
    expect(await verdict(await issue({ claims, ...(typ === undefined ? {} : { typ }) }))).toEqual([200, null, null]);
  });

  test.each([
    ["Keycloak's ID token", "JWT", { typ: "ID", nonce: "n", at_hash: "h" }],
    ["Keycloak's refresh token", "JWT", { typ: "Refresh" }],
    ["Keycloak's offline token", "JWT", { typ: "Offline" }],
    ["Keycloak's token that is bound to a key", "JWT", { typ: "DPoP" }],
    ["Cognito's ID token", undefined, { token_use: "id" }],
    ["a refresh token by token_type", undefined, { token_type: "refresh" }],
    ["a type claim that is not a text", undefined, { token_use: 1 }],
    ["an ID token with a nonce", "JWT", { nonce: "n" }],
    ["an ID token beside an access token", "JWT", { at_hash: "h" }],
    ["an ID token beside a code", undefined, { c_hash: "h" }],
    ["a logout token", "logout+jwt", { events: { "http://schemas.openid.net/event/backchannel-logout": {} } }],
    ["a logout token without a type", undefined, { events: { "http://schemas.openid.net/event/backchannel-logout": {} } }],
    ["a security event", "secevent+jwt", {}],
    ["a proof of possession", "dpop+jwt", {}],
  ])("%s is refused", async (_, typ, claims) => {
    expect(await verdict(await issue({ claims, ...(typ === undefined ? {} : { typ }) }))).toEqual([401, "UNAUTHORIZED", "token_type"]);
  });

  test("a token without an audience is refused unless it is Cognito's for this audience", async () => {
    for (const claims of [{ aud: undefined }, { aud: undefined, client_id: AUDIENCE }, { aud: undefined, token_use: "access", client_id: "other" }])
      expect(await verdict(await issue({ claims }))).toEqual([401, "UNAUTHORIZED", "audience"]);
  });
});

describe("unavailable provider", () => {
  test("without the provider's keys a call answers 503, not 401", async () => {
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

  const SETTINGS = { audience: AUDIENCE, tenantClaim: "tenant_id", outbound: createTrustedOutbound(systemClock) };
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

  test("while the provider is down its last keys stay valid, and an unknown key answers unavailable instead of invalid", async () => {
    const { verify, clock } = open();
    const token = await issue({ expires: "2h" });
    expect((await verify(token)).userId).toBe("ann");
    provider.status = 503;
    clock.advance(11 * 60_000);
    expect((await verify(token)).tenantId).toBe(tenantId);
    await expect(verify(await stranger("fresh"))).rejects.toMatchObject(UNAVAILABLE);
  });

  test("the gateway asks the provider at most once in 30 s, and once more for an unknown key, however many calls need it", async () => {
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
    expect(provider.asked - before).toBe(4);
    // Finding a key does not allow the next search earlier.
    clock.advance(30_000);
    provider.status = 503;
    for (let n = 0; n < 5; n += 1) await expect(verify(await stranger(`k${n}`))).rejects.toMatchObject(UNAVAILABLE);
    expect((await verify(await issue({ expires: "2h" }))).userId).toBe("ann");
    expect(provider.asked - before).toBe(5);
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ["redirects", (response) => void response.writeHead(302, { location: `${provider.issuer}/elsewhere` }).end()],
    ["redirects permanently", (response) => void response.writeHead(301, { location: "/elsewhere" }).end()],
    ["sends more than 256 kB", (response) => void response.writeHead(200).end(JSON.stringify({ keys: provider.jwks, padding: "x".repeat(300_000) }))],
    ["never ends its answer", (response) => void response.writeHead(200).write('{"keys":[')],
    ["breaks off its answer", (response) => void response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy())],
    ["sends an HTML page", (response) => void response.writeHead(200).end("<html>")],
    ["sends no list of keys", (response) => void response.writeHead(200).end('{"keys":1}')],
    ["sends an invalid key", (response) => void response.writeHead(200).end('{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"EdDSA","alg":"EdDSA","x":"AA"}]}')],
    ["answers nothing", (response) => void response.writeHead(204).end()],
  ])("a key server that %s counts as unavailable", async (_, answer) => {
    provider.answer = answer;
    const token = await issue();
    await withTimeout(expect(open().verify(token)).rejects.toMatchObject(UNAVAILABLE), 20_000, "the key server's answer was not refused");
  });

  test("a key that the provider begins to use is found at once, the next after a pause of 30 s, and one that it withdraws stops working", async () => {
    const { verify, clock } = open();
    await verify(await issue());
    await addKey(provider, "ES256", "second");
    const token = await issue({ kid: "second", alg: "ES256", expires: "2h" });
    expect((await verify(token)).userId).toBe("ann");
    await addKey(provider, "ES256", "third");
    const next = await issue({ kid: "third", alg: "ES256", expires: "2h" });
    await expect(verify(next)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    clock.advance(30_000);
    expect((await verify(next)).userId).toBe("ann");
    provider.jwks.splice(-2);
    clock.advance(600_000);
    for (const each of [token, next]) await expect(verify(each)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });
});
