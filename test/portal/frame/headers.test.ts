// The console's files over HTTP: which path gets which, in which encoding, how long they may be kept, and what they may do in a browser.
import { rm } from "node:fs/promises";
import { type IncomingHttpHeaders, request } from "node:http";
import { request as secureRequest } from "node:https";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser } from "../../kit/browser/browser.ts";
import { MODULE, MODULE_PATH, makeConsoleFolder, PAGE } from "../../kit/browser/console-folder.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { createAuthority } from "../../kit/net/certificates.ts";

// A gateway of its own: it serves a folder of three files.
let world: World;
let made: Awaited<ReturnType<typeof makeConsoleFolder>>;
beforeAll(async () => {
  made = await makeConsoleFolder();
  world = await startWorld({ CONSOLE: "on", RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_FAILED_AUTH: "off" }, { settings: { consoleFolder: made.folder } });
});
afterAll(async () => {
  await world.close();
  await made.remove();
});

interface Raw {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}
/** As it travels: `fetch` would decompress, and resolve the dots of a path. */
const raw = (path: string, headers: Record<string, string> = {}, { method = "GET", url = world.url, ca = "" } = {}): Promise<Raw> =>
  new Promise((resolve, reject) => {
    const { hostname, port, protocol } = new URL(url);
    const send = protocol === "https:" ? secureRequest : request;
    send({ hostname, port, path, method, headers, ...(ca === "" ? {} : { ca }) }, (response) => {
      const parts: Buffer[] = [];
      response
        .on("data", (part: Buffer) => parts.push(part))
        .on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }));
    })
      .on("error", reject)
      .end();
  });
const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const shown = ({ status, headers, body }: Raw) => [status, headers["content-type"], body.toString()];
const codeOf = ({ status, headers, body }: Raw) => [status, headers["content-type"], JSON.parse(body.toString()).code];
const PAGE_ANSWER = [200, "text/html; charset=utf-8", PAGE];
const NOT_FOUND = [404, "application/json; charset=utf-8", "NOT_FOUND"];

describe("the console's paths", () => {
  test("the root, index.html and the files are there for everybody who asks", async () => {
    expect(shown(await raw("/"))).toEqual(PAGE_ANSWER);
    expect(shown(await raw("/index.html"))).toEqual(PAGE_ANSWER);
    expect(shown(await raw(MODULE_PATH))).toEqual([200, "text/javascript; charset=utf-8", MODULE]);
    expect(shown(await raw("/favicon.svg"))).toEqual([200, "image/svg+xml", "<svg/>"]);
    expect(shown(await raw("/?tab=1"))).toEqual(PAGE_ANSWER);
  });

  test.each(["/devices", "/devices/dev_01JD/", "/pair?code=ABCD-EFGH", "/invite?token=x", "/sign-in?error=SIGN_IN_FAILED", "/v1x", "/apps/My%20App"])(
    "a browser that opens %s gets the page, a script gets 404",
    async (path) => {
      expect(shown(await raw(path, HTML))).toEqual(PAGE_ANSWER);
      expect(codeOf(await raw(path, { accept: "application/json" }))).toEqual(NOT_FOUND);
      expect(codeOf(await raw(path))).toEqual(NOT_FOUND);
    },
  );

  test.each([
    "/assets/gone-12345678.js",
    "/assets/",
    "/..%2fpackage.json",
    "/%2e%2e/package.json",
    "/../package.json",
    "/assets/..%2f..%2fpackage.json",
    "/a%5c..%5cb",
    "/a%00b",
    "/index.html%00.js",
    "//evil.example/",
    "/.git/config",
    "/assets/index-Ab_1-cD2.js.gz",
    "/v1/nowhere",
    "/api",
    "/api/v1/nowhere",
    "/internal/metrics",
    "/.well-known/nothing",
    "/trpc",
  ])("%s is never a page", async (path) => {
    expect(codeOf(await raw(path, HTML))).toEqual(NOT_FOUND);
  });

  test("compressed forms have no path of their own", async () => {
    expect(codeOf(await raw("/index.html.br"))).toEqual(NOT_FOUND);
  });

  test("only GET and HEAD read a file", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      const refused = await raw("/", HTML, { method });
      expect([method, codeOf(refused), refused.headers.allow]).toEqual([
        method,
        [405, "application/json; charset=utf-8", "METHOD_NOT_ALLOWED"],
        "GET, HEAD, OPTIONS",
      ]);
      expect(codeOf(await raw("/devices", HTML, { method }))).toEqual(NOT_FOUND);
    }
    expect((await raw("/", {}, { method: "OPTIONS" })).status).toBe(204);
  });

  test("the API stays where it was", async () => {
    for (const path of ["/v1/info", "/api/v1/info", "/livez", "/readyz", "/.well-known/jwks.json"])
      expect([path, (await raw(path, HTML)).headers["content-type"]]).toEqual([path, "application/json; charset=utf-8"]);
    expect((await raw("/v1/docs", HTML)).body.toString()).toContain("swagger-ui");
  });
});

describe("an answer with a file", () => {
  test.each(["/", MODULE_PATH])("%s travels as the reader prefers, each form with a strong tag of its own", async (path) => {
    const tags = new Set<string | undefined>();
    for (const [accepted, encoding, open] of [
      ["gzip, deflate, br, zstd", "br", brotliDecompressSync],
      ["gzip", "gzip", gunzipSync],
      ["identity", undefined, (body: Buffer) => body],
      ["br;q=0, gzip;q=0", undefined, (body: Buffer) => body],
    ] as const) {
      const { headers, body } = await raw(path, { "accept-encoding": accepted });
      expect([accepted, headers["content-encoding"], headers.vary]).toEqual([accepted, encoding, "Accept-Encoding"]);
      expect(open(body).toString()).toBe(path === "/" ? PAGE : MODULE);
      expect(headers.etag).toMatch(/^"[\w-]{27}"$/);
      expect(headers["content-length"]).toBe(String(body.length));
      tags.add(headers.etag);
    }
    expect(tags.size).toBe(3);
  });

  test("who has the form already gets 304 without a body; who has another one gets this one", async () => {
    const sent = { "accept-encoding": "br" };
    const { headers } = await raw("/", sent);
    const etag = headers.etag ?? "";
    for (const known of [etag, `"other", W/${etag}`, "*"]) {
      const answer = await raw("/", { ...sent, "if-none-match": known });
      expect([known, answer.status, answer.body.length, answer.headers.etag, answer.headers["cache-control"], answer.headers.vary]).toEqual([
        ...[known, 304, 0, etag, "no-cache", "Accept-Encoding"],
      ]);
    }
    expect((await raw("/", { "if-none-match": etag })).status).toBe(200);
    expect((await raw("/devices", { ...HTML, ...sent, "if-none-match": etag })).status).toBe(304);
  });

  test("HEAD states what GET would carry", async () => {
    for (const path of ["/", MODULE_PATH]) {
      const [whole, bare] = [await raw(path, { "accept-encoding": "br" }), await raw(path, { "accept-encoding": "br" }, { method: "HEAD" })];
      const { date: _, ...stated } = bare.headers;
      expect([bare.status, bare.body.length, { ...whole.headers, ...stated }]).toEqual([200, 0, whole.headers]);
    }
  });

  test("files that are named after their content are kept for a year, all others are asked for again", async () => {
    expect((await raw(MODULE_PATH)).headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    for (const path of ["/", "/favicon.svg", "/index.html"]) expect([path, (await raw(path)).headers["cache-control"]]).toEqual([path, "no-cache"]);
    expect((await raw("/devices", HTML)).headers["cache-control"]).toBe("no-cache");
  });

  test("no file may load, send or be framed elsewhere", async () => {
    for (const path of ["/", "/favicon.svg", MODULE_PATH])
      expect((await raw(path)).headers).toMatchObject({
        "content-security-policy":
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
      });
  });

  test("a bad head is refused for a file as for a call", async () => {
    expect(codeOf(await raw("/", { host: "a@b" }))).toEqual([400, "application/json; charset=utf-8", "VALIDATION_FAILED"]);
  });
});

describe("sign-in with the console", () => {
  const reasonOf = (location: string | null) => Object.fromEntries(new URL(location ?? "", world.url).searchParams);

  test("a link leads to the console's first page, or to the page that the person wanted", async () => {
    const link = async (returnTo = "") => {
      const { url } = await world.app.signInLink({ userId: "ann" });
      return (await openBrowser().visit("GET", `${url}${returnTo}`, { headers: HTML })).location;
    };
    expect(await link()).toBe(`${world.url}/`);
    expect(await link("&return_to=%2Fdevices%3Fq%3Dtag%253Aeu")).toBe(`${world.url}/devices?q=tag%3Aeu`);
  });

  test("a used link leads a browser to the sign-in page with code and reason, and answers a script in JSON", async () => {
    const { url } = await world.app.signInLink({ userId: "ann" });
    expect((await openBrowser().visit("GET", url, { headers: HTML })).status).toBe(303);
    const again = await openBrowser().visit("GET", url, { headers: HTML });
    expect([again.status, again.location?.replace(/\?.*/, ""), again.headers.getSetCookie()]).toEqual([303, `${world.url}/sign-in`, []]);
    expect(reasonOf(again.location)).toEqual({ error: "SIGN_IN_FAILED", reason: "link_invalid", requestId: again.headers.get("x-request-id") });
    const script = await openBrowser().visit("GET", url);
    expect([script.status, script.body.code]).toEqual([401, "SIGN_IN_FAILED"]);
  });

  test.each(["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"])("no sign-in leads to %s", async (target) => {
    const { url } = await world.app.signInLink({ userId: "ann" });
    const page = await openBrowser().visit("GET", `${url}&return_to=${encodeURIComponent(target)}`, { headers: HTML });
    expect([page.status, new URL(page.location ?? "").pathname, reasonOf(page.location)["error"]]).toEqual([303, "/sign-in", "RETURN_URL_NOT_ALLOWED"]);
  });

  test("a callback that nothing began leads to the sign-in page, too", async () => {
    const page = await openBrowser().visit("GET", `${world.url}/v1/auth/callback?code=x&state=y`, { headers: HTML });
    expect([page.status, reasonOf(page.location)["error"]]).toEqual([303, "SIGN_IN_NOT_CONFIGURED"]);
  });

  test("codes and invites lead to pages of the console", async () => {
    const begun = await fetch(`${world.url}/v1/pairing/initiate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ device_fingerprint: "sha256:headers-test-device" }),
    });
    const { data } = (await begun.json()) as { data: { pairing_code: string; portal_url: string } };
    expect(data.portal_url).toBe(`${world.url}/pair?code=${data.pairing_code}`);
    const owner = await (await world.tenant()).user("owner");
    const invite = await world.call(owner, "POST", "/v1/invites", { body: { email: "bea@people.example", roleId: "viewer" } });
    expect(invite.body.data.link).toMatch(new RegExp(`^${world.url}/invite\\?token=[\\w-]{43}$`));
  });
});

describe("other installations", () => {
  test("a gateway without the build names its documents, one with the console off nothing", async () => {
    const [unbuilt, off] = [
      await startWorld({ CONSOLE: "on" }, { settings: { consoleFolder: `${made.folder}/nothing` } }),
      await startWorld({ CONSOLE: "off" }, { settings: { consoleFolder: made.folder } }),
    ];
    try {
      const found = await raw("/", HTML, { url: unbuilt.url });
      expect([found.status, found.headers.location]).toEqual([302, "/v1/docs"]);
      expect(codeOf(await raw("/devices", HTML, { url: unbuilt.url }))).toEqual(NOT_FOUND);
      expect(codeOf(await raw("/", HTML, { url: off.url }))).toEqual(NOT_FOUND);
      expect(codeOf(await raw("/v1/auth/login?token=none", HTML, { url: off.url }))).toEqual([401, "application/json; charset=utf-8", "SIGN_IN_FAILED"]);
    } finally {
      await Promise.all([unbuilt.close(), off.close()]);
    }
  });

  test("files are answered from memory, over TLS as well", async () => {
    const authority = await createAuthority();
    const { certFile, keyFile } = await authority.issue("console");
    const own = await makeConsoleFolder();
    const env = { CONSOLE: "on", TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile };
    const secure = await startWorld(env, { settings: { consoleFolder: own.folder } });
    try {
      await rm(own.folder, { recursive: true });
      const options = { url: secure.url, ca: authority.ca.toString() };
      expect(shown(await raw("/devices", HTML, options))).toEqual(PAGE_ANSWER);
      expect(shown(await raw(MODULE_PATH, {}, options))).toEqual([200, "text/javascript; charset=utf-8", MODULE]);
    } finally {
      await secure.close();
      await authority.remove();
    }
  });
});
