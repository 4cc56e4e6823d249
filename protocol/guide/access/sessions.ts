// Guide to sign-in and sessions.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER, TOMORROW } from "../records.ts";

const { sessionId } = IDS;
const session = {
  sessionId,
  method: "oidc",
  current: true,
  ip: "203.0.113.7",
  userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
  createdAt: AT,
  lastSeenAt: LATER,
  expiresAt: TOMORROW,
};
const signedIn = { session, csrfToken: "q3Jx8V0bT5mK1nR7wZ4yC6dF9gH2sL8pQ0eU3iO5aXk" };
const token = "4kQ9xT2mV7bN1rL6wZ8yC3dF5gH0sJ4pQ7eU1iO9aXk";

export const sessions: Guide<"sessions"> = {
  login: {
    description:
      "Open it in a browser. It goes to the identity provider and comes back to `return_to` with a session cookie, which the browser then sends with every call. Changes also need the header `x-csrf-token`, with the value of the cookie that `GET /auth/config` names. Without an identity provider, pass the `token` of a link that the operator made with `npm run cli -- sign-in`.",
    input: { return_to: "/devices" },
    output: { location: "https://login.example.org/authorize?client_id=mooring&response_type=code" },
  },
  callback: {
    description: "The identity provider sends the browser here. Register this URL there as the redirect URI.",
    input: { code: "9f1c", state: "p2vK" },
    output: { location: "https://gateway.example.org/devices" },
  },
  signIn: {
    description:
      "Exchanges the token of a sign-in link for a session. A token works once, within ten minutes. The response sets the session cookie; programs that are no browser keep it, or get access tokens from `POST /auth/token`.",
    input: { token },
    output: signedIn,
  },
  current: { description: "Returns the session and its CSRF token. Both are null for a caller with an access token that no session got.", output: signedIn },
  token: {
    description: "Returns an access token for 15 minutes, which ends with its session. Needs the session cookie and a gateway that issues tokens itself.",
    output: { accessToken: "eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl", tokenType: "Bearer", expiresAt: TOMORROW },
  },
  logout: { description: "Ends the session at once, and within 5 seconds on every node, with its live streams.", output: { endSessionUrl: null } },
  list: { description: "Lists where you are signed in. A session ends when nobody has used it for a day.", output: { items: [session] } },
  end: { description: "Every node refuses the session within 5 seconds and ends its live streams.", input: { sessionId } },
  endOthers: { description: "Ends all of your sessions except the one that makes this call.", output: { ended: 2 } },
};
