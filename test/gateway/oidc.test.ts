// A real identity provider: its key server, its keys of three kinds, and everything that looks like its tokens but is not.
import { createServer, type Server } from "node:http";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
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
    response.writeHead(provider.status, { "content-type": "application/json" }).end(JSON.stringify({ keys: provider.jwks }));
  });
  const port = await new Promise<number>((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const provider: Provider = { issuer: `http://127.0.0.1:${port}`, keys: new Map(), jwks: [], status: 200, asked: 0, close };
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
  readonly expires?: string | number;
}
const issue = ({ kid = "EdDSA", alg = kid, key, claims = {}, expires = "5m" }: Token = {}): Promise<string> => {
  const signer = key ?? provider.keys.get(kid)?.privateKey;
  if (signer === undefined) throw new Error(`no key ${kid}`);
  return new SignJWT({ sub: "ann", iss: provider.issuer, aud: AUDIENCE, tenant_id: tenantId, email: "ann@example.com", ...claims })
    .setProtectedHeader({ alg, kid })
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign(signer);
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

  test("its last keys stay good, and a key that may be new is not called wrong", async () => {
    const tokens = createOidcTokens(provider.issuer, undefined, { audience: AUDIENCE, tenantClaim: "tenant_id" });
    const token = await issue({ expires: "2h" });
    expect((await tokens.verify(token)).userId).toBe("ann");
    provider.status = 503;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11 * 60_000 });
    try {
      expect((await tokens.verify(token)).tenantId).toBe(tenantId);
      const { privateKey } = await generateKeyPair("EdDSA");
      await expect(tokens.verify(await issue({ kid: "fresh", alg: "EdDSA", key: privateKey, expires: "2h" }))).rejects.toMatchObject({
        code: "IDENTITY_PROVIDER_UNAVAILABLE",
      });
    } finally {
      vi.useRealTimers();
      provider.status = 200;
    }
  });

  test("a key that the provider adds is found once the cooldown is over", async () => {
    const tokens = createOidcTokens(provider.issuer, undefined, { audience: AUDIENCE, tenantClaim: "tenant_id" });
    await tokens.verify(await issue());
    await addKey(provider, "ES256", "second");
    const token = await issue({ kid: "second", alg: "ES256" });
    await expect(tokens.verify(token)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 31_000 });
    try {
      expect((await tokens.verify(token)).userId).toBe("ann");
    } finally {
      vi.useRealTimers();
    }
  });
});
