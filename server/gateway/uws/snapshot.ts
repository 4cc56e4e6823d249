// Copies a request while it may be read: the library's object lives on the stack and is gone after the first await.
import type { HttpRequest as UwsRequest, HttpResponse as UwsResponse } from "uWebSockets.js";
import type { HttpRequest } from "../exchange.ts";

const decoder = new TextDecoder();

export const peerOf = (res: UwsResponse): string => {
  const text = decoder.decode(res.getRemoteAddressAsText());
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
  const repeated = new Set<string>();
  req.forEach((name, value) => {
    if (name in headers) repeated.add(name);
    else headers[name] = value;
  });
  return { method: req.getCaseSensitiveMethod(), path: req.getUrl(), query: req.getQuery() ?? "", headers, repeated, peer: peerOf(res) };
};
