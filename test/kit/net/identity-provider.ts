// A real OpenID Connect provider on loopback (npm's oidc-provider), which a test can take down, keep waiting, and give other keys.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import Provider, { type Adapter, type AdapterPayload } from "oidc-provider";
import type { Browser } from "../browser/browser.ts";

export type Fault = (request: IncomingMessage, response: ServerResponse) => boolean;

const CLIENT = { id: "mooring", secret: "a client's secret, of some length" };

const newKey = async () => {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), alg: "RS256", use: "sig" };
};

/** What the provider remembers, which outlives a change of its keys. */
const createAdapter = () => {
  const kept = new Map<string, AdapterPayload>();
  return (model: string): Adapter => ({
    upsert: async (id, payload) => void kept.set(`${model} ${id}`, payload),
    find: async (id) => kept.get(`${model} ${id}`),
    findByUid: async (uid) => [...kept.values()].find((each) => each.uid === uid),
    findByUserCode: async () => undefined,
    consume: async (id) => void Object.assign(kept.get(`${model} ${id}`) ?? {}, { consumed: Math.floor(Date.now() / 1_000) }),
    destroy: async (id) => void kept.delete(`${model} ${id}`),
    revokeByGrantId: async (grantId) => {
      for (const [key, payload] of kept) if (payload.grantId === grantId) kept.delete(key);
    },
  });
};

const open = async (issuer: string, redirectUri: string, adapter: ReturnType<typeof createAdapter>) => {
  const provider = new Provider(issuer, {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri] }],
    adapter,
    jwks: { keys: [await newKey()] },
    cookies: { keys: ["a key for the provider's own cookies"] },
    claims: { openid: ["sub", "tenant_id"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, email: `${accountId}@example.com`, email_verified: true, name: `The ${accountId}` }),
    }),
  });
  return provider.callback();
};

/** The gateway's address must be known before. */
export const startIdentityProvider = async (gatewayUrl: string) => {
  const redirectUri = `${gatewayUrl}/v1/auth/callback`;
  let answer: ReturnType<Provider["callback"]> | null = null;
  let fault: Fault = () => false;
  const asked: string[] = [];
  const adapter = createAdapter();
  const server = createServer((request, response) => {
    asked.push(new URL(request.url ?? "/", "http://provider").pathname);
    if (!fault(request, response)) void answer?.(request, response);
  });
  const port = await new Promise<number>((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)));
  const issuer = `http://127.0.0.1:${port}`;
  answer = await open(issuer, redirectUri, adapter);

  /** A person signs in and consents. Returns where the provider sends the browser: the gateway's callback. */
  const approve = async (browser: Browser, authorizationUrl: string, user: string): Promise<string> => {
    const isCallback = (url: string): boolean => url.startsWith(redirectUri);
    let { page, url } = await browser.follow(authorizationUrl, isCallback);
    for (const form of [{ prompt: "login", login: user, password: "any" }, { prompt: "consent" }]) {
      if (isCallback(url)) break;
      const [, action = ""] = /<form[^>]* action="([^"]+)"/.exec(page.text) ?? [];
      if (action === "") throw new Error(`the provider shows no form: ${page.status} ${page.text.slice(0, 500)}`);
      const sent = await browser.visit("POST", new URL(action, url).href, { form });
      ({ page, url } = await browser.follow(sent.location ?? "", isCallback));
    }
    return url;
  };

  return {
    issuer,
    env: { OIDC_ISSUER: issuer, OIDC_JWKS_URI: `${issuer}/jwks`, OIDC_CLIENT_ID: CLIENT.id, OIDC_CLIENT_SECRET: CLIENT.secret },
    asked,
    approve,
    /** Returns true for a request that it answers instead of the provider. */
    fail: (next: Fault): void => {
      fault = next;
    },
    heal: (): void => {
      fault = () => false;
    },
    rotateKeys: async (): Promise<void> => {
      answer = await open(issuer, redirectUri, adapter);
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
export type TestIdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>;
