// What the programs share: settings from the environment, an HTTP server with bounds and a clean end, HTML, and writes that are whole or not at all.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const END_WITHIN_MS = 5_000;

/** A bad configuration ends the program. */
export const refuse = (message) => {
  process.stderr.write(`${message}\n`);
  process.exit(1);
};

export const textSetting = (name, fallback, maxLength = 1_000) => {
  const text = process.env[name] ?? fallback;
  if (text === undefined || text === "") return refuse(`${name} is not set`);
  return text.length > maxLength ? refuse(`${name} is longer than ${maxLength} characters`) : text;
};

export const wholeSetting = (name, { least, most, fallback }) => {
  const text = process.env[name] ?? String(fallback);
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= most ? number : refuse(`${name} must be a whole number from ${least} to ${most}, not "${text.slice(0, 50)}"`);
};

/** The parts of a list with commas or line breaks between them. */
export const listSetting = (name, most) => {
  const parts = (process.env[name] ?? "").split(/[,\n]/).flatMap((part) => (part.trim() === "" ? [] : [part.trim()]));
  return parts.length > most ? refuse(`${name} has more than ${most} entries`) : parts;
};

export const webAddress = (setting, text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) ? url.href : refuse(`${setting}: "${text.slice(0, 100)}" is not an http or https address`);
};

/** Null without DATA_DIR: nothing is kept then. */
export const dataFolder = () => {
  const folder = process.env["DATA_DIR"];
  if (folder === undefined || folder === "") return null;
  try {
    mkdirSync(folder, { recursive: true });
    return folder;
  } catch (error) {
    return refuse(`DATA_DIR cannot be used: ${error.message}`);
  }
};
export const requiredDataFolder = () => dataFolder() ?? refuse("DATA_DIR is not set");

export const writeWhole = (path, text) => {
  writeFileSync(`${path}.next`, text, { mode: 0o600, flush: true });
  renameSync(`${path}.next`, path);
};

/** What a file holds as JSON; the fallback if there is no such file. A damaged file ends the program rather than be overwritten. */
export const readJson = (path, fallback) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    return error.code === "ENOENT" ? fallback : refuse(`${path} cannot be read: ${error.message}`);
  }
};

/** Ends the handling of a request with this status. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const readBody = async (request, maxBytes) => {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Refusal(413, `more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
};

const ENTITIES = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&#39;"],
]);
export const escapeHtml = (text) => String(text).replace(/[&<>"']/g, (character) => ENTITIES.get(character));

export const page = (title, body) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title>` +
  `<style>body{font:1rem/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem}</style></head><body><h1>${escapeHtml(title)}</h1>${body}</body></html>`;

const HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'none'; form-action 'self'",
};

export const html = (body, status = 200) => ({ status, type: "text/html; charset=utf-8", body });
export const plain = (body, status = 200) => ({ status, type: "text/plain; charset=utf-8", body });
export const json = (value, status = 200) => ({ status, type: "application/json", body: JSON.stringify(value) });

const toAnswer = (error) => {
  if (error instanceof Refusal) return plain(`${error.message}\n`, error.status);
  process.stderr.write(`${error.stack}\n`);
  return plain("something went wrong\n", 500);
};

const answerOf = async (handle, request) => {
  try {
    const url = new URL(request.url, "http://app");
    if (url.pathname === "/health") return plain("ok\n");
    return (await handle(request, url)) ?? plain("not found\n", 404);
  } catch (error) {
    return toAnswer(error instanceof TypeError && error.code === "ERR_INVALID_URL" ? new Refusal(400, "bad address") : error);
  }
};

/** Serves on PORT until SIGTERM; `onEnd` runs before the end. */
export const serve = (handle, onEnd = () => undefined) => {
  const port = wholeSetting("PORT", { least: 1, most: 65_535 });
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, async (request, response) => {
    const { status, type, body, headers = {} } = await answerOf(handle, request);
    const text = status === 204 ? "" : body;
    // What is left of a body that was refused is not read.
    const closing = request.complete ? {} : { connection: "close" };
    response.writeHead(status, { ...HEADERS, ...(status === 204 ? {} : { "content-type": type }), ...headers, ...closing });
    response.end(request.method === "HEAD" ? undefined : text);
    if (request.url !== "/health") process.stdout.write(`${request.method} ${request.url.slice(0, 200)} ${status}\n`);
  });
  server.maxConnections = 256;
  server.on("error", (error) => refuse(`cannot listen on port ${port}: ${error.message}`));
  server.listen(port, () => process.stdout.write(`listening on port ${port}\n`));
  const end = () => {
    process.stdout.write("ending\n");
    onEnd();
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    setTimeout(() => process.exit(0), END_WITHIN_MS).unref();
  };
  process.once("SIGTERM", end);
  process.once("SIGINT", end);
};
