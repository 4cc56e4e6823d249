// Proves a person by the cookie of a session. A browser sends it by itself, so a change needs proof that a page of ours makes it.
import { timingSafeEqual } from "node:crypto";
import { AppError } from "../../core/errors.ts";
import { CSRF_HEADER, cookieNames, mayHoldSession, readCookie } from "../../core/people/session-cookies.ts";
import type { SessionLookup, SessionRecord } from "../../core/ports/lookups.ts";
import type { SignedInSession } from "../../core/scope.ts";
import type { HttpRequest } from "../http/http-message.ts";

type Asked = Pick<HttpRequest, "headers" | "method">;

export interface SessionCredential {
  readonly kind: "session";
  readonly request: Asked;
}

export interface SessionAuthDeps {
  readonly sessions: SessionLookup;
  readonly publicUrl: () => string;
  /** Beside the gateway's own: where portals are. */
  readonly origins: readonly string[];
}

export interface ProvenSession extends Pick<SessionRecord, "userId" | "email" | "emailVerified" | "claimedTenantId"> {
  readonly session: SignedInSession;
}

export interface SessionAuth {
  /** Null without a cookie of this gateway. */
  prove(credential: SessionCredential): Promise<ProvenSession | null>;
  /** The session that a token or a stream ticket was made in. Throws once it has ended. */
  require(sessionId: string): Promise<SignedInSession>;
}

/** Null unless the request carries a session. Read it last: a browser attaches cookies by itself, and only a header is sent on purpose. */
export const readSession = ({ headers, method }: Asked): SessionCredential | null =>
  headers["cookie"] !== undefined && mayHoldSession(headers["cookie"]) ? { kind: "session", request: { headers, method } } : null;

const ended = (): AppError => new AppError("UNAUTHORIZED", { details: { reason: "session_ended" } });
const forbidden = (reason: string): AppError => new AppError("FORBIDDEN", { details: { reason } });

/** The page that makes the call: one of the host that it calls, or of a portal. Browsers name it with every change. */
const checkOrigin = ({ headers }: Asked, allowed: readonly string[]): void => {
  const { origin, host } = headers;
  if (origin === undefined || allowed.includes(origin)) return;
  if (!URL.canParse(origin) || new URL(origin).host !== host) throw forbidden("origin_not_allowed");
};

const checkCsrfToken = ({ headers }: Asked, { csrfTokens }: SessionRecord): void => {
  const given = headers[CSRF_HEADER];
  if (given === undefined) throw forbidden("csrf_token_missing");
  const a = Buffer.from(given);
  const isSame = (token: string): boolean => a.length === Buffer.byteLength(token) && timingSafeEqual(a, Buffer.from(token));
  if (!csrfTokens.some(isSame)) throw forbidden("csrf_token_wrong");
};

const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD"]);

export const createSessionAuth = ({ sessions, publicUrl, origins }: SessionAuthDeps): SessionAuth => ({
  prove: async ({ request }) => {
    const url = publicUrl();
    const secret = readCookie(request.headers["cookie"], cookieNames(url).session);
    if (secret === null) return null;
    const isChange = !SAFE.has(request.method);
    if (isChange) checkOrigin(request, [new URL(url).origin, ...origins]);
    const record = await sessions.find(secret);
    if (record === null) throw ended();
    if (isChange) checkCsrfToken(request, record);
    const { userId, email, emailVerified, claimedTenantId, sessionId, signedInAt } = record;
    return { userId, email, emailVerified, claimedTenantId, session: { sessionId, signedInAt, byCookie: true } };
  },
  require: async (sessionId) => {
    const record = await sessions.byId(sessionId);
    if (record === null) throw ended();
    return { sessionId, signedInAt: record.signedInAt, byCookie: false };
  },
});
