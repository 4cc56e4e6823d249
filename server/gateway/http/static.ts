// The files of the console, read into memory at start with what the build compressed. Other paths that a browser opens are pages of the console.
import { hash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative } from "node:path";
import { AppError } from "../../core/errors.ts";
import { isKnown } from "../rest/versions.ts";
import { encodingFor } from "./compression.ts";
import type { HttpRequest, HttpResponse } from "./http-message.ts";

/** The answers with one file, by encoding. */
interface StaticFile {
  readonly plain: HttpResponse;
  readonly br: HttpResponse | null;
  readonly gzip: HttpResponse | null;
}
/** By path. */
export type StaticFiles = ReadonlyMap<string, StaticFile>;
export type Static = (request: Pick<HttpRequest, "method" | "path" | "headers">) => HttpResponse | null;

const TYPES: ReadonlyMap<string, string> = new Map([
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
  [".json", "application/json; charset=utf-8"],
  [".webmanifest", "application/manifest+json; charset=utf-8"],
  [".txt", "text/plain; charset=utf-8"],
  [".svg", "image/svg+xml"],
  [".png", "image/png"],
  [".ico", "image/x-icon"],
  [".woff2", "font/woff2"],
]);

/** No nonce, so the page is the same bytes for everybody. */
const POLICY = [
  "default-src 'none'",
  ...["script-src", "style-src", "img-src", "font-src", "connect-src"].map((kind) => `${kind} 'self'`),
  ...["base-uri", "form-action", "frame-ancestors"].map((kind) => `${kind} 'none'`),
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
/** The headers of every file: an image opened in a tab of its own is a document, too. */
const SECURITY = {
  "Content-Security-Policy": POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
};

/** The build names these after their content. */
const HASHED = /^\/assets\/.+-[\w-]{8}\.\w+$/;
const HOME = "/index.html";

const read = (path: string): Promise<Uint8Array | null> =>
  readFile(path).catch((error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? null : Promise.reject(error)));

const fileOf = (path: string, plain: Uint8Array, { br, gzip }: { readonly br: Uint8Array | null; readonly gzip: Uint8Array | null }): StaticFile => {
  const shared = {
    "Content-Type": TYPES.get(extname(path)) ?? "application/octet-stream",
    "Cache-Control": HASHED.test(path) ? "public, max-age=31536000, immutable" : "no-cache",
    Vary: "Accept-Encoding",
    ...SECURITY,
  };
  const answer = (body: Uint8Array, encoding: Readonly<Record<string, string>>): HttpResponse => ({
    status: 200,
    body,
    headers: { ...shared, ...encoding, ETag: `"${hash("sha256", body, "base64url").slice(0, 27)}"` },
  });
  return {
    plain: answer(plain, {}),
    br: br && answer(br, { "Content-Encoding": "br" }),
    gzip: gzip && answer(gzip, { "Content-Encoding": "gzip" }),
  };
};

/** Null for a folder that is not there or not whole. */
export const readStatic = async (folder: string): Promise<StaticFiles | null> => {
  if ((await read(join(folder, HOME))) === null) return null;
  const files = new Map<string, StaticFile>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const at = join(entry.parentPath, entry.name);
    const path = `/${relative(folder, at)}`;
    const plain = entry.isFile() && !/\.(?:br|gz)$/.test(path) ? await read(at) : null;
    if (plain !== null) files.set(path, fileOf(path, plain, { br: await read(`${at}.br`), gzip: await read(`${at}.gz`) }));
  }
  return files;
};

/** Paths of the API and of probes; what is unknown below them is an error in JSON. */
const TAKEN = /^\/(?:v1|api|trpc|internal|\.well-known|livez|readyz)(?:\/|$)/;
/** Files that a build no longer has, and names that could mean another path to somebody who decodes them. */
const NO_PAGE = /^\/assets\/|\/[/.]|[^!-~]|\\|%(?:[01][\da-f]|2[ef]|5c|7f)/i;
/** Without files somebody who looks around still finds the documentation. */
const TO_DOCS: HttpResponse = { status: 302, body: null, headers: { Location: "/v1/docs", "Cache-Control": "no-store" } };

const isRead = (method: string): boolean => method === "GET" || method === "HEAD";
export const acceptsHtml = ({ headers }: Pick<HttpRequest, "headers">): boolean => headers["accept"]?.includes("text/html") === true;

/** Answers null for what is not the console's. */
export const createStatic = (files: StaticFiles | null): Static => {
  if (files === null) return ({ method, path }) => (path === "/" && isRead(method) ? TO_DOCS : null);
  const home = files.get(HOME);
  return (request) => {
    const { method, path, headers } = request;
    if (path.startsWith("/v1/") || TAKEN.test(path)) return null;
    const exact = path === "/" ? home : files.get(path);
    if (!isRead(method)) {
      if (exact === undefined) return null;
      throw new AppError("METHOD_NOT_ALLOWED", { details: { allow: ["GET", "HEAD", "OPTIONS"] } });
    }
    const file = exact ?? (acceptsHtml(request) && !NO_PAGE.test(path) ? home : undefined);
    if (file === undefined) return null;
    const answer = file[encodingFor(headers["accept-encoding"]) ?? "plain"] ?? file.plain;
    return isKnown(headers["if-none-match"], answer.headers["ETag"] ?? "") ? { ...answer, status: 304, body: null } : answer;
  };
};
