// People's sign-in and their sessions. A session lives in a browser's cookie; each node refuses it within five seconds after its end.

import { contract } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newSecret, secretHash } from "../../core/ids.ts";
import { cookieNames, isSecureUrl, writeCookie } from "../../core/people/session-cookies.ts";
import { userOf } from "../../core/people/user-of.ts";
import { operatorTx } from "../../core/ports/audit.ts";
import type { SessionLookup } from "../../core/ports/lookups.ts";
import { actorOf } from "../../core/scope.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature } from "../kit.ts";
import { toSession } from "./record.ts";
import { createSessionLookup, csrfTokenOf } from "./session-lookup.ts";
import { createSignIn } from "./sign-in.ts";
import { deleteEverySession, deleteSessions, deleteUser, findSession, insertLink, sessionsOf } from "./store.ts";
import type { SessionsDeps } from "./types.ts";

export type { SessionSettings } from "./types.ts";

export interface NewLink {
  readonly userId: string;
  /** Counts as verified; without it the address that is known stays. */
  readonly email?: string | undefined;
  /** The session may act in this tenant only. */
  readonly tenantId?: string | undefined;
}

export interface SignInLink {
  readonly url: string;
  readonly token: string;
  readonly expiresAt: string;
}

export interface SessionsFeature extends Feature<typeof contract.sessions> {
  readonly jobs: readonly Job[];
  readonly lookup: SessionLookup;
  /** Makes a link that signs this person in, once, within ten minutes. For the one who runs the installation. */
  readonly createLink: (link: NewLink, baseUrl?: string) => Promise<SignInLink>;
  /** Ends the sessions of everybody, for the one who runs the installation. Returns how many there were. */
  readonly endAll: () => Promise<number>;
  /** Deletes what sign-ins told of the person, and ends the sessions. */
  readonly deleteUser: (tx: Tx, userId: string) => Promise<void>;
}

const LINK_SECONDS = 600;
const TOKEN_SECONDS = 900;

export const createSessions = (deps: SessionsDeps): SessionsFeature => {
  const { db, clock, secretBox, settings } = deps;
  const { lookup, jobs, forgetAll } = createSessionLookup({ db, clock, secretBox, idleSeconds: settings.idleSeconds });
  return {
    handlers: implement(contract.sessions, { ...createSignIn(deps), ...createReads(deps), ...createEnds(deps, forgetAll) }),
    lookup,
    jobs,
    deleteUser,
    endAll: () => operatorTx(db, deps.audit)("cli.after-restore", deleteEverySession),
    createLink: async ({ userId, email = null, tenantId = null }, baseUrl = settings.publicUrl()) => {
      const token = newSecret();
      const expiresAt = secondsFromNow(LINK_SECONDS, clock.now());
      await insertLink(db, { hash: secretHash(token), userId, email, claimedTenantId: tenantId, expiresAt });
      return { url: `${baseUrl}/v1/auth/login?token=${token}`, token, expiresAt: expiresAt.toISOString() };
    },
  };
};

const createReads = ({ db, clock, secretBox, tokens, settings }: SessionsDeps): Pick<Handlers<typeof contract.sessions>, "current" | "list" | "token"> => ({
  current: async ({ scope }) => {
    const { session } = userOf(scope);
    const row = session === undefined ? null : await findSession(db, { sessionId: session.sessionId }, settings.idleSeconds, clock.now());
    return row === null ? { session: null, csrfToken: null } : { session: toSession(row, row.sessionId), csrfToken: csrfTokenOf(secretBox, row.sessionId) };
  },

  list: async ({ scope }) => {
    const { userId, session } = userOf(scope);
    const rows = await sessionsOf(db, userId, settings.idleSeconds, clock.now());
    return { items: rows.map((row) => toSession(row, session?.sessionId)) };
  },

  token: async ({ scope, fail }) => {
    const { userId, email, emailVerified, session } = userOf(scope);
    if (tokens.local === undefined) throw fail("SIGN_IN_NOT_CONFIGURED");
    // A token that could renew itself would be as good as the session.
    if (session?.byCookie !== true) throw new AppError("FORBIDDEN", { details: { reason: "session_required" } });
    const row = await findSession(db, { sessionId: session.sessionId }, settings.idleSeconds, clock.now());
    if (row === null) throw new AppError("UNAUTHORIZED", { details: { reason: "session_ended" } });
    const expiresAt = secondsFromNow(TOKEN_SECONDS, clock.now());
    const person = { userId, email: email ?? undefined, emailVerified: emailVerified === true, tenantId: row.claimedTenantId ?? undefined };
    const { sessionId, signedInAt } = session;
    const accessToken = await tokens.local.mint({ issuer: settings.publicUrl(), ...person, sessionId, signedInAt, ttlSeconds: TOKEN_SECONDS });
    return { accessToken, tokenType: "Bearer", expiresAt: expiresAt.toISOString() };
  },
});

const createEnds = (
  { provider, settings, leaveImpersonation }: SessionsDeps,
  forgetAll: () => void,
): Pick<Handlers<typeof contract.sessions>, "logout" | "end" | "endOthers"> => ({
  logout: async ({ scope, reply, commit }) => {
    const { userId, session, impersonator } = userOf(scope);
    if (impersonator?.impersonation != null) {
      const { tenantId, impersonationId } = impersonator.impersonation;
      return commit(async (tx) => {
        await leaveImpersonation(tx, { tenantId }, impersonationId, actorOf(scope.principal));
        // The browser's own session, which this call did not use, goes on.
        return { endSessionUrl: null };
      });
    }
    const endSessionUrl = provider === null ? null : await provider.endSessionUrl();
    const url = settings.publicUrl();
    const { session: own, csrf } = cookieNames(url);
    reply.cookies = [own, csrf].map((name) => writeCookie(name, "", { secure: isSecureUrl(url), maxAgeSeconds: 0 }));
    return commit(async (tx, afterwards) => {
      afterwards(forgetAll);
      if (session !== undefined) await deleteSessions(tx, userId, { only: session.sessionId });
      return { endSessionUrl };
    });
  },

  end: ({ scope, fail, commit }, { sessionId }) =>
    commit(async (tx, afterwards) => {
      afterwards(forgetAll);
      if ((await deleteSessions(tx, userOf(scope).userId, { only: sessionId })) === 0) throw fail("SESSION_NOT_FOUND", { sessionId });
      return null;
    }),

  endOthers: ({ scope, commit }) =>
    commit(async (tx, afterwards) => {
      afterwards(forgetAll);
      const { userId, session } = userOf(scope);
      return { ended: await deleteSessions(tx, userId, { except: session?.sessionId }) };
    }),
});
