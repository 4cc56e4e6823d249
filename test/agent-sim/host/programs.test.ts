// The programs that come with the agent, each as a real process: what they serve, how they bound their input, and how they end.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { packageRoot } from "../../../agent-sim/agent/own-files.ts";
import { PROGRAMS as FOLDER } from "../../../agent-sim/host/processes/launch.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";

const OWN_PROGRAMS = join(packageRoot(import.meta.dirname), FOLDER);

let folder: string;
let port: number;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "programs-"));
  port = await freePort();
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

const fileOf = (program: string): string => join(OWN_PROGRAMS, program, "main.mjs");
const start = async (program: string, variables: Readonly<Record<string, string>> = {}): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [fileOf(program)], { env: { PORT: String(port), DATA_DIR: folder, ...variables }, stdio: "ignore" });
  children.push(child);
  await eventually(async () => expect((await ask("/health")).status).toBe(200));
  return child;
};
const ask = (path: string, init?: RequestInit): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`, init);
const page = async (path: string): Promise<string> => (await ask(path)).text();
const end = async (child: ChildProcess): Promise<unknown> => {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  return (await ended)[0];
};
const serveOnce = async (answer: { status: number; body: string }): Promise<{ readonly server: Server; readonly url: string }> => {
  const server = createServer((_request, response) => response.writeHead(answer.status).end(answer.body)).listen(0);
  await once(server, "listening");
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }; // as: it listens on a port
};

const PROGRAMS = readdirSync(OWN_PROGRAMS).filter((name) => !name.endsWith(".mjs"));

test("these five come with the agent", () => {
  expect(PROGRAMS.sort()).toEqual(["feed-reader", "key-value", "paste-bin", "static-site", "status-page"]);
});

test.each(PROGRAMS)("%s answers its health check, knows no other page, and ends with code 0 on SIGTERM", async (program) => {
  const child = await start(program);
  expect((await ask("/")).status).toBe(200);
  expect((await ask("/no/such/page")).status).toBe(404);
  expect((await ask("/", { method: "PATCH" })).status).not.toBe(500);
  expect(await end(child)).toBe(0);
});

test.each([
  ["static-site", { PORT: "" }, /PORT/],
  ["static-site", { SITE_TITLE: "x".repeat(201) }, /SITE_TITLE/],
  ["key-value", { KV_MAX_KEYS: "none" }, /KV_MAX_KEYS/],
  ["key-value", { KV_MAX_KEYS: "-1" }, /KV_MAX_KEYS/],
  ["key-value", { DATA_DIR: "" }, /DATA_DIR/],
  ["feed-reader", { FEEDS: "file:///etc/passwd" }, /FEEDS/],
  ["feed-reader", { REFRESH_MINUTES: "0" }, /REFRESH_MINUTES/],
  ["paste-bin", { PASTE_MAX_BYTES: "1e9" }, /PASTE_MAX_BYTES/],
  ["paste-bin", { PASTE_KEEP_DAYS: "0" }, /PASTE_KEEP_DAYS/],
  ["status-page", { STATUS_TARGETS: "a=ftp://a.example" }, /STATUS_TARGETS/],
  ["status-page", { STATUS_TARGETS: "a=http://a.example,a=http://b.example" }, /two targets/],
])("%s with %o ends with code 1 and says why", (program, variables, message) => {
  const env = { PORT: String(port), DATA_DIR: folder, ...variables };
  const { status, stderr } = spawnSync(process.execPath, [fileOf(program)], { env, encoding: "utf8", timeout: 20_000 });
  expect(status).toBe(1);
  expect(stderr).toMatch(message);
});

describe("static-site", () => {
  test("shows its title and message, as text and not as HTML", async () => {
    await start("static-site", { SITE_TITLE: "Tea & more", SITE_MESSAGE: "<script>" });
    expect(await page("/")).toContain("<h1>Tea &amp; more</h1><p>&lt;script&gt;</p>");
  });
  test("serves the files of its folder and none outside of it", async () => {
    writeFileSync(join(folder, "index.html"), "front");
    writeFileSync(join(folder, "a.css"), "a {}");
    symlinkSync("/etc/hostname", join(folder, "out"));
    await start("static-site");
    expect(await page("/")).toBe("front");
    expect((await ask("/a.css")).headers.get("content-type")).toContain("text/css");
    const outside = await Promise.all(["/out", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/a%00b"].map(async (path) => (await ask(path)).status));
    expect(outside).toEqual([404, 404, 404, 404]);
    expect((await ask("/%zz")).status).toBe(400);
  });
});

describe("key-value", () => {
  const put = async (key: string, body: string, headers: Record<string, string> = {}): Promise<number> =>
    (await ask(`/keys/${key}`, { method: "PUT", body, headers })).status;

  test("keeps values across restarts, up to its limit of keys", async () => {
    const child = await start("key-value", { KV_MAX_KEYS: "2" });
    expect([await put("a", "1"), await put("b", "2"), await put("c", "3"), await put("a", "4")]).toEqual([204, 204, 507, 204]);
    await end(child);
    await start("key-value", { KV_MAX_KEYS: "2" });
    expect(await page("/keys/a")).toBe("4");
    expect(await (await ask("/keys")).json()).toEqual(["a", "b"]);
    expect([(await ask("/keys/b", { method: "DELETE" })).status, (await ask("/keys/b")).status]).toEqual([204, 404]);
  });
  test("refuses keys and values out of bounds", async () => {
    await start("key-value");
    expect([await put("x".repeat(201), "1"), await put("__proto__", "1"), await put("a", "x".repeat(65_537))]).toEqual([400, 400, 413]);
  });
  test("with a token serves only those who know it", async () => {
    await start("key-value", { KV_TOKEN: "open sesame" });
    expect([await put("a", "1"), await put("a", "1", { authorization: "Bearer open" }), await put("a", "1", { authorization: "Bearer open sesame" })]).toEqual([
      401, 401, 204,
    ]);
  });
});

describe("paste-bin", () => {
  test("keeps a text under an address of its own, across restarts", async () => {
    const child = await start("paste-bin");
    const saved = await ask("/", { method: "POST", body: "hello <b>" });
    expect(saved.status).toBe(201);
    const address = saved.headers.get("location") ?? "";
    await end(child);
    await start("paste-bin");
    const shown = await ask(address);
    expect([await shown.text(), shown.headers.get("content-type")]).toEqual(["hello <b>", "text/plain; charset=utf-8"]);
  });
  test("takes the text of its form, and refuses an empty one and one that is too large", async () => {
    await start("paste-bin", { PASTE_MAX_BYTES: "10" });
    const post = async (text: string): Promise<number> => (await ask("/", { method: "POST", body: new URLSearchParams({ text }) })).status;
    expect([await post("äöüäö"), await post(""), await post("äöüäöx")]).toEqual([201, 400, 413]);
    expect((await ask("/", { method: "POST", body: "x".repeat(100_000) })).status).toBe(413);
  });
});

describe("feed-reader", () => {
  const FEED = `<?xml version="1.0"?><rss><channel><title>News</title><item><title>One &amp; <![CDATA[<two>]]></title><link>https://a.example/1</link></item>
    <item><title>Bad</title><link>javascript:alert(1)</link></item></channel></rss>`;

  test("shows the items of its feeds and why one was not read, and keeps them", async () => {
    const answer = { status: 200, body: FEED };
    const [good, bad] = [await serveOnce(answer), await serveOnce({ status: 500, body: "" })];
    const child = await start("feed-reader", { FEEDS: `${good.url}, ${bad.url}` });
    await eventually(async () => {
      const text = await page("/");
      expect(text).toContain("<h2>News</h2>");
      expect(text).toContain('<a href="https://a.example/1" rel="noopener noreferrer">One &amp; &lt;two&gt;</a>');
      expect(text).toContain("<li>Bad</li>");
      expect(text).toContain("Not read the last time: it answered 500");
    });
    answer.status = 404;
    await end(child);
    await start("feed-reader", { FEEDS: good.url });
    await eventually(async () => expect(await page("/")).toMatch(/News.*it answered 404.*One &amp;/s));
    good.server.close();
    bad.server.close();
  });
});

describe("status-page", () => {
  test("shows which targets answer", async () => {
    const up = await serveOnce({ status: 200, body: "" });
    await start("status-page", { STATUS_TITLE: "Our things", STATUS_TARGETS: `Up=${up.url}, Down=http://127.0.0.1:1/` });
    await eventually(async () =>
      expect(await (await ask("/status.json")).json()).toMatchObject([
        { name: "Up", state: "up", uptimePercent: 100 },
        { name: "Down", state: "down", uptimePercent: 0 },
      ]),
    );
    expect(await page("/")).toContain("<h1>Our things</h1>");
    up.server.close();
  });
});
