// A browser's side of sessions: keeps cookies as browsers do, follows redirects by hand, and sends the CSRF token with changes.
import { CookieJar } from "tough-cookie";

export interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
  readonly body: any;
  /** Where the answer sends the browser, resolved. */
  readonly location: string | null;
}

export interface Visit {
  readonly body?: unknown;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

const CSRF_COOKIE = /(?:^|; )(?:__Host-)?mooring_csrf=([\w-]+)/;

export const openBrowser = () => {
  const jar = new CookieJar();

  const visit = async (method: string, url: string, { body, form, headers = {} }: Visit = {}): Promise<Page> => {
    const cookies = await jar.getCookieString(url);
    const csrfToken = CSRF_COOKIE.exec(cookies)?.[1];
    const response = await fetch(url, {
      method,
      redirect: "manual",
      headers: {
        ...(cookies === "" ? {} : { cookie: cookies }),
        ...(method === "GET" ? {} : { origin: new URL(url).origin, ...(csrfToken === undefined ? {} : { "x-csrf-token": csrfToken }) }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      signal: AbortSignal.timeout(15_000),
    });
    for (const cookie of response.headers.getSetCookie()) await jar.setCookie(cookie, url);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") === true && text !== "";
    const location = response.headers.get("location");
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : null,
      location: location && new URL(location, url).href,
    };
  };

  /** Goes where the answers lead, until one does not redirect or `until` says stop. Returns the last one and its address. */
  const follow = async (url: string, until: (url: string) => boolean = () => false): Promise<{ readonly page: Page; readonly url: string }> => {
    let at = url;
    for (let hops = 0; hops < 20; hops += 1) {
      const page = await visit("GET", at);
      if (page.location === null || until(page.location)) return { page, url: page.location ?? at };
      at = page.location;
    }
    throw new Error(`more than 20 redirects from ${url}`);
  };

  const cookie = async (url: string, name: string): Promise<string | undefined> => (await jar.getCookies(url)).find(({ key }) => key === name)?.value;
  return { jar, visit, follow, cookie };
};
export type Browser = ReturnType<typeof openBrowser>;
