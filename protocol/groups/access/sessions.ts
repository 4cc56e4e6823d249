// Sign-in of people and their sessions: through the identity provider, or by a link of the operator where the gateway issues tokens itself.
import { z } from "zod";
import { ref, SessionId } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";

const Timestamp = z.iso.datetime();

export const UserSession = z.object({
  sessionId: SessionId,
  method: z.enum(["oidc", "link"]).describe("How the person signed in: through the identity provider, or by the operator's link."),
  current: z.boolean().describe("Whether this call was made in this session."),
  ip: z.string(),
  userAgent: z.string().nullable(),
  createdAt: Timestamp,
  lastSeenAt: Timestamp.describe("Accurate to a minute."),
  expiresAt: Timestamp.describe("When the session ends, however often it is used. It ends earlier if nobody uses it."),
});
export type UserSession = z.infer<typeof UserSession>;

const SignedIn = z.object({
  session: UserSession,
  csrfToken: z.string().describe("Send it as `x-csrf-token` with each change that is made with the cookie."),
});
const CurrentSession = z.object({ session: UserSession.nullable(), csrfToken: SignedIn.shape.csrfToken.nullable() });
const SessionToken = z.object({ accessToken: z.string(), tokenType: z.literal("Bearer"), expiresAt: Timestamp });
const SignedOut = z.object({
  endSessionUrl: z.string().nullable().describe("Where the browser can end its session at the identity provider, too; null if nowhere."),
});
const EndedSessions = z.object({ ended: z.int() });
const ReturnTo = z.string().min(1).max(1_024).describe("Where the browser goes afterwards: an allowed URL, or a path on the portal's host.");
const Location = z.object({ location: z.string() });

const open = { auth: ["public"], permission: "public", tenancy: "none", limit: "anonymous" } as const;
const setsCookies = { "Set-Cookie": "The cookies of the session, each in a header of its own." };
const sendsOn = { ...setsCookies, Location: "Where the browser goes next." };
const own = { auth: ["user"], permission: "self", tenancy: "none" } as const;

export const sessions = group({
  tag: "Account",
  records: { UserSession, SignedIn, CurrentSession, SessionToken, SignedOut, EndedSessions },
  operations: {
    login: query({
      ...open,
      summary: "Send a browser to sign in",
      rest: ["GET /auth/login"],
      status: 303,
      responseHeaders: sendsOn,
      input: z.strictObject({
        return_to: ReturnTo.optional(),
        token: z.string().min(1).max(128).optional().describe("Token of a sign-in link of the operator's; without an identity provider only."),
      }),
      output: Location,
      errors: ["RETURN_URL_NOT_ALLOWED", "SIGN_IN_FAILED", "SIGN_IN_NOT_CONFIGURED", "IDENTITY_PROVIDER_UNAVAILABLE"],
    }),
    callback: query({
      ...open,
      summary: "Complete a sign-in at the identity provider",
      rest: ["GET /auth/callback"],
      status: 303,
      responseHeaders: sendsOn,
      headers: { cookies: "cookie" },
      // Providers add parameters of their own.
      input: z.looseObject({
        cookies: z.string().max(8_192).optional().describe("The browser's cookies, among them the one that the sign-in began with."),
        state: z.string().max(256).optional().describe("As the sign-in gave it to the identity provider."),
        code: z.string().max(4_096).optional().describe("The identity provider's code, which the gateway exchanges for the person's identity."),
      }),
      output: Location,
      errors: ["SIGN_IN_FAILED", "SIGN_IN_NOT_CONFIGURED", "IDENTITY_PROVIDER_UNAVAILABLE"],
    }),
    signIn: mutation({
      ...open,
      summary: "Sign in with the token of a link",
      rest: ["POST /auth/sign-in"],
      status: 201,
      idempotency: "none",
      responseHeaders: setsCookies,
      input: z.strictObject({ token: z.string().min(1).max(128) }),
      output: SignedIn,
      errors: ["SIGN_IN_FAILED", "SIGN_IN_NOT_CONFIGURED"],
    }),
    current: query({
      ...own,
      summary: "Get the caller's session",
      rest: ["GET /auth/session"],
      whileImpersonated: true,
      input: z.strictObject({}),
      output: CurrentSession,
    }),
    token: mutation({
      ...own,
      summary: "Get a short-lived access token for the caller's session",
      rest: ["POST /auth/token"],
      idempotency: "none",
      input: z.strictObject({}),
      output: SessionToken,
      errors: ["SIGN_IN_NOT_CONFIGURED"],
    }),
    logout: mutation({
      ...own,
      summary: "Sign out",
      rest: ["POST /auth/logout"],
      whileImpersonated: true,
      responseHeaders: setsCookies,
      input: z.strictObject({}),
      output: SignedOut,
    }),
    list: query({
      ...own,
      summary: "List the caller's sessions, newest first",
      rest: ["GET /account/sessions"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(UserSession) }),
    }),
    end: mutation({
      ...own,
      summary: "End a session",
      rest: ["DELETE /account/sessions/{sessionId}"],
      status: 204,
      input: z.strictObject({ sessionId: ref("ses") }),
      output: z.null(),
      errors: ["SESSION_NOT_FOUND"],
    }),
    endOthers: mutation({
      ...own,
      summary: "End all other sessions",
      rest: ["DELETE /account/sessions"],
      input: z.strictObject({}),
      output: EndedSessions,
    }),
  },
});
