// A feed reader: fetches RSS and Atom feeds from time to time and shows their newest items on one page.
import { join } from "node:path";
import { dataFolder, escapeHtml, html, json, listSetting, page, Refusal, readJson, serve, webAddress, wholeSetting, writeWhole } from "../kit.mjs";

const feeds = listSetting("FEEDS", 50).map((text) => webAddress("FEEDS", text));
const refreshMinutes = wholeSetting("REFRESH_MINUTES", { least: 1, most: 1_440, fallback: 30 });
const folder = dataFolder();
const MAX_FEED_BYTES = 2_097_152;
const ITEMS_PER_FEED = 20;
const TIMEOUT_MS = 20_000;

const path = folder === null ? null : join(folder, "items.json");
/** By feed: its title, its items, and when and why it was last not read. */
const read = new Map(path === null ? [] : Object.entries(readJson(path, {})).filter(([feed]) => feeds.includes(feed)));

const NAMED = new Map(Object.entries({ lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" }));
const character = (code) => (code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "");
const entity = (whole, name) => {
  if (name.startsWith("#x")) return character(Number.parseInt(name.slice(2), 16));
  return name.startsWith("#") ? character(Number.parseInt(name.slice(1), 10)) : (NAMED.get(name) ?? whole);
};
const textIn = (xml) =>
  xml
    .replace(/<!\[CDATA\[(.*?)\]\]>/gs, (_, text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;"))
    .replace(/<[^>]*>/g, "")
    .replace(/&(#x?[0-9a-f]+|\w+);/gi, entity)
    .trim()
    .slice(0, 300);
const element = (xml, name) => textIn(new RegExp(`<${name}\\b[^>]*>(.*?)</${name}>`, "s").exec(xml)?.[1] ?? "");
const linkIn = (xml) => {
  const ofAtom = /<link\b(?![^>]*rel=["'](?!alternate))[^>]*href=["']([^"']+)["']/.exec(xml)?.[1];
  const link = ofAtom === undefined ? element(xml, "link") : textIn(ofAtom);
  return /^https?:\/\//.test(link) ? link : null;
};

const parse = (xml) => {
  const items = [...xml.matchAll(/<(item|entry)\b[^>]*>(.*?)<\/\1>/gs)].slice(0, ITEMS_PER_FEED);
  if (items.length === 0 && !/<(rss|feed|rdf:RDF)\b/i.test(xml)) throw new Error("this is no feed");
  return {
    title: element(xml.replace(/<(item|entry)\b.*/s, ""), "title"),
    items: items.map(([, , item]) => ({ title: element(item, "title") || "(without a title)", link: linkIn(item) })),
  };
};

const bodyOf = async (response) => {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_FEED_BYTES) throw new Error(`more than ${MAX_FEED_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
};

const refresh = async (feed) => {
  try {
    const response = await fetch(feed, { signal: AbortSignal.timeout(TIMEOUT_MS), headers: { accept: "application/atom+xml, application/rss+xml, text/xml" } });
    if (!response.ok) throw new Error(`it answered ${response.status}`);
    read.set(feed, { ...parse(await bodyOf(response)), problem: null });
  } catch (error) {
    process.stderr.write(`${feed}: ${error.message}\n`);
    read.set(feed, { title: "", items: [], ...read.get(feed), problem: String(error.message).slice(0, 200) });
  }
};

const keep = () => {
  if (path === null) return;
  try {
    writeWhole(path, JSON.stringify(Object.fromEntries(read)));
  } catch (error) {
    // They are fetched again after a restart.
    process.stderr.write(`the items cannot be kept: ${error.message}\n`);
  }
};

let refreshing = false;
const refreshAll = async () => {
  if (refreshing) return;
  refreshing = true;
  for (const feed of feeds) await refresh(feed);
  keep();
  refreshing = false;
};

const itemHtml = ({ title, link }) =>
  `<li>${link === null ? escapeHtml(title) : `<a href="${escapeHtml(link)}" rel="noopener noreferrer">${escapeHtml(title)}</a>`}</li>`;
const feedHtml = (feed) => {
  const { title = "", items = [], problem = null } = read.get(feed) ?? {};
  const note = problem === null ? "" : `<p>Not read the last time: ${escapeHtml(problem)}</p>`;
  return `<h2>${escapeHtml(title || feed)}</h2>${note}<ul>${items.map(itemHtml).join("")}</ul>`;
};

void refreshAll();
const timer = setInterval(refreshAll, refreshMinutes * 60_000);
serve(
  async ({ method }, { pathname }) => {
    if (method !== "GET" && method !== "HEAD") throw new Refusal(405, "only GET and HEAD");
    if (pathname === "/items.json") return json(Object.fromEntries(read));
    if (pathname !== "/") return null;
    return html(page("Feeds", feeds.length === 0 ? "<p>No feed is set.</p>" : feeds.map(feedHtml).join("")));
  },
  () => clearInterval(timer),
);
