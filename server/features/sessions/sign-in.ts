// How people get a session: by way of the identity provider, or with the token of a link that the operator made.
import type { contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { Handlers, Call as OperationCall } from "../../core/feature.ts";
import { newId, newSecret, secretHash } from "../../core/ids.ts";
import { cookieNames, isSecureUrl, readCookie, writeCookie } from "../../core/people/session-cookies.ts";
import { isStorableText } from "../../core/rows/storable.ts";
import type { OpenScope } from "../../core/scope.ts";
import type { SignInChecks } from "../../platform/identity/identity-provider.ts";
import { toSession } from "./record.ts";
import { csrfTokenOf } from "./session-lookup.ts";
import { insertSession, noteUser, type SignedInUser, takeLink } from "./store.ts";
import type { SessionsDeps } from "./types.ts";

type SignInOperation = "login" | "callback" | "signIn";
type SignInHandlers = Pick<Handlers<typeof contract.sessions>, SignInOperation>;

const SESSIONS_PER_USER = 50;
/** How long a person may take at the provider. */
const SIGN_IN_SECONDS = 600;
const SEALED_FOR = "sign-in";
const MAX_USER_AGENT = 300;

interface Remembered extends SignInChecks {
  readonly returnTo: string;
  readonly until: number;
}

interface SignIn extends SignedInUser {
  readonly claimedTenantId: string | null;
}

type Fail = OperationCall<(typeof contract.sessions)["operations"]["signIn"]>["fail"];
type Call = Pick<OpenScope, "requestId" | "ip" | "userAgent">;

const callOf = ({ requestId, ip, userAgent = null }: OpenScope): Call => ({
  requestId,
  // A public call looks for its caller's address when asked, and only before its first wait.
  ip,
  userAgent: userAgent !== null && isStorableText(userAgent) ? userAgent.slice(0, MAX_USER_AGENT) : null,
});

const textsOf = (given: Readonly<Record<string, unknown>>): URLSearchParams =>
  new URLSearchParams(Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === "string"));

/** `who` says in the transaction who signs in; it may refuse. */
const createOpenSession =
  ({ db, clock, audit, secretBox, settings, signedIn }: SessionsDeps) =>
  async (call: Call, operation: SignInOperation, method: "oidc" | "link", who: (tx: Tx) => Promise<SignIn>) => {
    const secret = newSecret();
    const sessionId = newId("ses");
    const row = await db.tx(async (tx) => {
      audit.begin(tx);
      const { claimedTenantId, ...user } = await who(tx);
      const now = clock.now();
      await noteUser(tx, user, now);
      await signedIn(tx, user.userId);
      const { ip, userAgent = null } = call;
      const made = { sessionId, userId: user.userId, hash: secretHash(secret), method, claimedTenantId, ip, userAgent };
      const session = await insertSession(tx, { ...made, createdAt: now, lifeSeconds: settings.lifeSeconds }, SESSIONS_PER_USER);
      const actor = { type: "user", id: user.userId, email: user.email } as const;
      await audit.append(tx, { tenantId: null, actor, action: `sessions.${operation}`, resource: { type: "sessions", id: sessionId }, code: null, call });
      return session;
    });
    const url = settings.publicUrl();
    const names = cookieNames(url);
    const form = { secure: isSecureUrl(url), maxAgeSeconds: settings.lifeSeconds };
    const csrfToken = csrfTokenOf(secretBox, sessionId);
    const cookies = [writeCookie(names.session, secret, form), writeCookie(names.csrf, csrfToken, { ...form, readable: true })];
    return { session: toSession(row, sessionId), csrfToken, cookies };
  };

/** What a browser keeps of its sign-in while it is at the provider, sealed. */
const createMemory = ({ secretBox, clock, settings }: SessionsDeps) => ({
  cookie: (checks: SignInChecks, returnTo: string): string => {
    const kept: Remembered = { ...checks, returnTo, until: clock.now().getTime() + SIGN_IN_SECONDS * 1_000 };
    const url = settings.publicUrl();
    const value = Buffer.from(secretBox.seal(JSON.stringify(kept), SEALED_FOR)).toString("base64url");
    return writeCookie(cookieNames(url).signIn, value, { secure: isSecureUrl(url), maxAgeSeconds: SIGN_IN_SECONDS });
  },
  read: (cookies: string | undefined): Remembered | null => {
    const value = readCookie(cookies, cookieNames(settings.publicUrl()).signIn);
    if (value === null) return null;
    try {
      const kept = JSON.parse(secretBox.open(Buffer.from(value, "base64url"), SEALED_FOR)) as Remembered; // as: nobody else can seal
      return kept.until > clock.now().getTime() ? kept : null;
    } catch {
      return null;
    }
  },
  forget: (): string => {
    const url = settings.publicUrl();
    return writeCookie(cookieNames(url).signIn, "", { secure: isSecureUrl(url), maxAgeSeconds: 0 });
  },
});

export const createSignIn = (deps: SessionsDeps): SignInHandlers => {
  const { clock, provider, tokens, settings } = deps;
  const openSession = createOpenSession(deps);
  const memory = createMemory(deps);

  /** Null for a place where no browser may be sent. */
  const targetOf = (returnTo: string | undefined): string | null => {
    if (returnTo === undefined) return settings.home();
    if (!URL.canParse(returnTo, settings.portalUrl())) return null;
    const { href } = new URL(returnTo, settings.portalUrl());
    return settings.isReturnAllowed(href) ? href : null;
  };

  const byLink = (call: Call, operation: "login" | "signIn", { token, fail }: { readonly token: string; readonly fail: Fail }) => {
    if (tokens.local === undefined) throw fail("SIGN_IN_NOT_CONFIGURED");
    return openSession(call, operation, "link", async (tx) => {
      const link = await takeLink(tx, secretHash(token), clock.now());
      if (link === null) throw fail("SIGN_IN_FAILED", { reason: "link_invalid" });
      return { ...link, emailVerified: link.email !== null, name: null };
    });
  };

  return {
    login: async ({ scope, fail, reply }, { return_to, token }) => {
      const call = callOf(scope);
      const target = targetOf(return_to);
      if (target === null) throw fail("RETURN_URL_NOT_ALLOWED");
      if (token !== undefined) {
        reply.cookies = (await byLink(call, "login", { token, fail })).cookies;
        return { location: target };
      }
      if (provider === null) throw fail("SIGN_IN_NOT_CONFIGURED");
      const { location, checks } = await provider.begin();
      reply.cookies = [memory.cookie(checks, target)];
      return { location };
    },

    callback: async ({ scope, fail, reply }, { cookies, ...parameters }) => {
      const call = callOf(scope);
      if (provider === null) throw fail("SIGN_IN_NOT_CONFIGURED");
      const remembered = memory.read(cookies);
      if (remembered === null) throw fail("SIGN_IN_FAILED", { reason: "not_begun" });
      const { tenantId, ...person } = await provider.complete(textsOf(parameters), remembered);
      const opened = await openSession(call, "callback", "oidc", async () => ({ ...person, claimedTenantId: tenantId }));
      reply.cookies = [...opened.cookies, memory.forget()];
      return { location: remembered.returnTo };
    },

    signIn: async ({ scope, fail, reply }, { token }) => {
      const { cookies, ...signedIn } = await byLink(callOf(scope), "signIn", { token, fail });
      reply.cookies = cookies;
      return signedIn;
    },
  };
};
