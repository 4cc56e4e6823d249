// A static site: a front page with a title and a message, and the files of the data folder.
import { open, realpath } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import { dataFolder, escapeHtml, html, page, Refusal, serve, textSetting } from "../kit.mjs";

const title = textSetting("SITE_TITLE", "A new site", 200);
const message = textSetting("SITE_MESSAGE", "It works.", 10_000);
const folder = dataFolder();
const MAX_BYTES = 16_777_216;

const TYPES = new Map(
  Object.entries({
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".pdf": "application/pdf",
  }),
);

const decoded = (path) => {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new Refusal(400, "bad address");
  }
};

/** The real path of a file within the folder, links included; null if there is none. */
const fileAt = async (path) => {
  if (folder === null || path.includes("\0")) return null;
  const root = await realpath(folder);
  const real = await realpath(join(root, path)).catch(() => null);
  return real?.startsWith(`${root}${sep}`) ? real : null;
};

const readFile = async (path) => {
  const file = await open(path, "r");
  try {
    const stat = await file.stat();
    if (!stat.isFile()) return null;
    if (stat.size > MAX_BYTES) throw new Refusal(413, "this file is too large");
    return { status: 200, type: TYPES.get(extname(path).toLowerCase()) ?? "application/octet-stream", body: await file.readFile() };
  } finally {
    await file.close();
  }
};

serve(async ({ method }, { pathname }) => {
  if (method !== "GET" && method !== "HEAD") throw new Refusal(405, "only GET and HEAD");
  const wanted = decoded(pathname);
  const path = await fileAt(wanted.endsWith("/") ? `${wanted}index.html` : wanted);
  if (path !== null) return readFile(path);
  return wanted === "/" ? html(page(title, `<p>${escapeHtml(message)}</p>`)) : null;
});
