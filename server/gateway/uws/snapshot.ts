// Copies a request while it may be read: the library's object lives on the stack and is gone after the first await.
import type { HttpRequest as UwsRequest, HttpResponse as UwsResponse } from "uWebSockets.js";
import { LRUCache } from "lru-cache";
import type { HttpRequest } from "../exchange.ts";

const NONE: ReadonlySet<string> = new Set();
const decoder = new TextDecoder();

/** Most requests come from few peers, and proxies keep their connections. */
const known = new LRUCache<string, string>({ max: 1_000 });

export const peerOf = (res: UwsResponse): string => {
  const text = decoder.decode(res.getRemoteAddressAsText());
  const seen = known.get(text);
  if (seen !== undefined) return seen;
  const peer = readable(text);
  known.set(text, peer);
  return peer;
};

const readable = (text: string): string => {
  // An IPv4 peer of a dual-stack listener shows as 0000:…:ffff:7f00:0001.
  const mapped = /^(?:0000:){5}ffff:([0-9a-f]{2})([0-9a-f]{2}):([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
  return mapped === null
    ? text
    : mapped
        .slice(1)
        .map((byte) => Number.parseInt(byte, 16))
        .join(".");
};

export const snapshot = (res: UwsResponse, req: UwsRequest): HttpRequest => {
  const headers: Record<string, string> = Object.create(null);
  let repeated: Set<string> | null = null;
  req.forEach((name, value) => {
    if (headers[name] === undefined) headers[name] = value;
    else repeated = (repeated ?? new Set()).add(name);
  });
  return { method: req.getCaseSensitiveMethod(), path: req.getUrl(), query: req.getQuery() ?? "", headers, repeated: repeated ?? NONE, peer: peerOf(res) };
};
