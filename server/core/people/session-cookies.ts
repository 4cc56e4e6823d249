// The cookies of browsers: names, reading and writing. The gateway reads what the feature `sessions` writes.

export interface CookieNames {
  /** HttpOnly: the session's secret. */
  readonly session: string;
  /** For scripts of the portal, which send its value as CSRF_HEADER. */
  readonly csrf: string;
  /** HttpOnly, for minutes: what the gateway remembers of a sign-in at the identity provider. */
  readonly signIn: string;
}

export const CSRF_HEADER = "x-csrf-token";

const namesWith = (prefix: string): CookieNames => ({
  session: `${prefix}mooring_session`,
  csrf: `${prefix}mooring_csrf`,
  signIn: `${prefix}mooring_sign_in`,
});
const PLAIN = namesWith("");
// With this prefix a browser accepts a cookie only over TLS and from this very host, so no other host of the domain can plant one.
const HOST_ONLY = namesWith("__Host-");

export const isSecureUrl = (publicUrl: string): boolean => publicUrl.startsWith("https:");
export const cookieNames = (publicUrl: string): CookieNames => (isSecureUrl(publicUrl) ? HOST_ONLY : PLAIN);

/** Whether a Cookie header may carry a session. */
export const mayHoldSession = (cookies: string): boolean => cookies.includes(`${PLAIN.session}=`);

/** Null if the cookie is missing, or there twice: nobody knows which of the two somebody planted. */
export const readCookie = (cookies: string | undefined, name: string): string | null => {
  const values = (cookies ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? (values[0] ?? null) : null;
};

export interface CookieForm {
  readonly secure: boolean;
  /** 0 deletes the cookie. */
  readonly maxAgeSeconds: number;
  readonly readable?: true;
}

/** `value` consists of letters that need no quotes, such as base64url. */
export const writeCookie = (name: string, value: string, { secure, maxAgeSeconds, readable }: CookieForm): string =>
  `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; SameSite=Lax${readable === true ? "" : "; HttpOnly"}${secure ? "; Secure" : ""}`;
