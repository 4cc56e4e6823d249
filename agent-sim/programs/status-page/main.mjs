// A status page: asks each target whether it answers, and shows which do and how often they did lately.
import { join } from "node:path";
import { dataFolder, escapeHtml, html, json, listSetting, page, Refusal, readJson, refuse, serve, textSetting, webAddress, writeWhole } from "../kit.mjs";

const title = textSetting("STATUS_TITLE", "Status", 200);
const CHECK_MS = 30_000;
const TIMEOUT_MS = 10_000;
const REMEMBERED = 120;

/** Each is an address, or a name and an address: `Shop=https://shop.example`. */
const toTarget = (text) => {
  const [, name, address] = /^([^=/:]{1,100})=(.+)$/.exec(text) ?? [null, null, text];
  const url = webAddress("STATUS_TARGETS", address);
  return { name: (name ?? url).trim(), url };
};
const targets = listSetting("STATUS_TARGETS", 50).map(toTarget);
if (new Set(targets.map(({ name }) => name)).size < targets.length) refuse("STATUS_TARGETS has two targets of one name");

const folder = dataFolder();
const path = folder === null ? null : join(folder, "history.json");
/** By target: whether it answered, oldest first. */
const history = new Map(path === null ? [] : Object.entries(readJson(path, {})));

const answers = async (url) => {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
};

const keep = () => {
  if (path === null) return;
  try {
    writeWhole(path, JSON.stringify(Object.fromEntries(history)));
  } catch (error) {
    // It begins anew after a restart.
    process.stderr.write(`the history cannot be kept: ${error.message}\n`);
  }
};

const check = async ({ name, url }) => {
  const up = await answers(url);
  const before = history.get(name) ?? [];
  if (before.at(-1) !== up) process.stdout.write(`${name} is ${up ? "up" : "down"}\n`);
  history.set(name, [...before, up].slice(-REMEMBERED));
};
let checking = false;
const checkAll = async () => {
  if (checking) return;
  checking = true;
  await Promise.all(targets.map(check));
  keep();
  checking = false;
};

const stateOf = ({ name, url }) => {
  const past = history.get(name) ?? [];
  const up = past.at(-1);
  return {
    name,
    url,
    state: up === undefined ? "unknown" : up ? "up" : "down",
    uptimePercent: past.length === 0 ? null : Math.round((past.filter(Boolean).length / past.length) * 1_000) / 10,
  };
};
const rowHtml = ({ name, state, uptimePercent }) =>
  `<tr><th scope="row">${escapeHtml(name)}</th><td>${state}</td><td>${uptimePercent === null ? "" : `${uptimePercent} %`}</td></tr>`;

void checkAll();
const timer = setInterval(checkAll, CHECK_MS);
serve(
  async ({ method }, { pathname }) => {
    if (method !== "GET" && method !== "HEAD") throw new Refusal(405, "only GET and HEAD");
    const states = targets.map(stateOf);
    if (pathname === "/status.json") return json(states);
    if (pathname !== "/") return null;
    const table = `<table><thead><tr><th>Target</th><th>State</th><th>Lately</th></tr></thead><tbody>${states.map(rowHtml).join("")}</tbody></table>`;
    return html(page(title, targets.length === 0 ? "<p>No target is set.</p>" : table));
  },
  () => clearInterval(timer),
);
