// A key-value server: GET, PUT and DELETE /keys/<key>, GET /keys. With KV_TOKEN, a caller sends it as a bearer token.
import { createHash, timingSafeEqual } from "node:crypto";
import { join } from "node:path";
import { json, plain, Refusal, readBody, readJson, requiredDataFolder, serve, wholeSetting, writeWhole } from "../kit.mjs";

const maxKeys = wholeSetting("KV_MAX_KEYS", { least: 1, most: 100_000, fallback: 1_000 });
const token = process.env["KV_TOKEN"] ?? "";
const MAX_VALUE_BYTES = 65_536;
const path = join(requiredDataFolder(), "keys.json");
const values = new Map(Object.entries(readJson(path, {})));
const save = () => writeWhole(path, JSON.stringify(Object.fromEntries(values)));

const digest = (text) => createHash("sha256").update(text).digest();
const isAllowed = ({ headers: { authorization = "" } }) => token === "" || timingSafeEqual(digest(authorization), digest(`Bearer ${token}`));

const keyOf = (pathname) => {
  const key = /^\/keys\/([\w.:-]{1,200})$/.exec(pathname)?.[1];
  if (key === undefined || key === "__proto__") throw new Refusal(400, "a key has 1 to 200 letters, digits, dots, colons, dashes or underscores");
  return key;
};

/** Keeps memory and file the same, whatever the disk says. */
const change = (key, value) => {
  const before = values.get(key);
  if (value === undefined) values.delete(key);
  else values.set(key, value);
  try {
    save();
  } catch (error) {
    if (before === undefined) values.delete(key);
    else values.set(key, before);
    throw new Refusal(507, `the value cannot be kept: ${error.code}`);
  }
};

const METHODS = {
  GET: async (key) => (values.has(key) ? plain(values.get(key)) : null),
  PUT: async (key, request) => {
    const value = await readBody(request, MAX_VALUE_BYTES);
    if (!values.has(key) && values.size >= maxKeys) throw new Refusal(507, `there are ${maxKeys} keys already`);
    change(key, value);
    return plain("", 204);
  },
  DELETE: async (key) => {
    if (!values.has(key)) return null;
    change(key, undefined);
    return plain("", 204);
  },
};

serve(async (request, { pathname }) => {
  if (pathname === "/") return plain(`${values.size} of ${maxKeys} keys\n`);
  if (!isAllowed(request)) throw new Refusal(401, "the token is missing or wrong");
  if (pathname === "/keys" && request.method === "GET") return json([...values.keys()]);
  if (!pathname.startsWith("/keys/")) return null;
  if (!Object.hasOwn(METHODS, request.method)) throw new Refusal(405, "only GET, PUT and DELETE");
  return METHODS[request.method](keyOf(pathname), request);
});
