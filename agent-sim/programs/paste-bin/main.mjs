// A paste bin: a form, POST / with a text, and each text under an address of its own until its days are over.
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { escapeHtml, html, page, plain, Refusal, readBody, requiredDataFolder, serve, wholeSetting, writeWhole } from "../kit.mjs";

const maxBytes = wholeSetting("PASTE_MAX_BYTES", { least: 1, most: 1_048_576, fallback: 65_536 });
const keepDays = wholeSetting("PASTE_KEEP_DAYS", { least: 1, most: 3_650, fallback: 30 });
const folder = requiredDataFolder();
const MAX_PASTES = 10_000;
const DAY_MS = 86_400_000;
const CLEAN_MS = 3_600_000;
const NAME = /^[0-9a-f]{24}$/;

const pastes = () => readdirSync(folder).filter((name) => NAME.test(name));
const isOver = (name) => statSync(join(folder, name)).mtimeMs < Date.now() - keepDays * DAY_MS;
const clean = () => {
  for (const name of pastes()) if (isOver(name)) rmSync(join(folder, name), { force: true });
};

const form = page(
  "Paste bin",
  `<form method="post"><textarea name="text" rows="12" style="width:100%" maxlength="${maxBytes}" aria-label="Text"></textarea><button>Save</button></form>` +
    `<p>Up to ${maxBytes} bytes, kept for ${keepDays} days.</p>`,
);

const textOf = async (request) => {
  const isForm = /^application\/x-www-form-urlencoded\b/.test(request.headers["content-type"] ?? "");
  // A form writes a byte as up to three characters.
  const body = await readBody(request, isForm ? maxBytes * 3 + 100 : maxBytes);
  const text = isForm ? (new URLSearchParams(body).get("text") ?? "") : body;
  if (text === "") throw new Refusal(400, "the text is empty");
  if (Buffer.byteLength(text) > maxBytes) throw new Refusal(413, `more than ${maxBytes} bytes`);
  return text;
};

const store = async (request) => {
  const text = await textOf(request);
  if (pastes().length >= MAX_PASTES) throw new Refusal(507, "the bin is full");
  const name = randomBytes(12).toString("hex");
  try {
    writeWhole(join(folder, name), text);
  } catch (error) {
    throw new Refusal(507, `the text cannot be kept: ${error.code}`);
  }
  return { ...html(page("Saved", `<p><a href="/${name}">/${escapeHtml(name)}</a></p>`), 201), headers: { location: `/${name}` } };
};

const read = (name) => {
  if (!NAME.test(name) || !pastes().includes(name) || isOver(name)) return null;
  return plain(readFileSync(join(folder, name), "utf8"));
};

clean();
const cleaning = setInterval(clean, CLEAN_MS);
serve(
  async (request, { pathname }) => {
    if (request.method === "POST" && pathname === "/") return store(request);
    if (request.method !== "GET" && request.method !== "HEAD") throw new Refusal(405, "only GET, and POST to /");
    return pathname === "/" ? html(form) : read(pathname.slice(1));
  },
  () => clearInterval(cleaning),
);
