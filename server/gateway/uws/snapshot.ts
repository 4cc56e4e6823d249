// Copies a request while it may be read: the library's object lives on the stack and is gone after the first await.
import type { HttpRequest as UwsRequest, HttpResponse as UwsResponse } from "uWebSockets.js";
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";
import type { HttpRequest } from "../http/http-message.ts";
import { isSingle } from "../http/request-head.ts";

const NONE: ReadonlySet<string> = new Set();
const decoder = new TextDecoder();

/** Most requests come from few peers, and proxies keep their connections. */
const known = createBoundedCache<string>(1_000);

const peerOf = (res: UwsResponse): string => {
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

// The library makes a new string of each header name, and V8 interns it before it can be a key, at twice the cost of the rest of a header.
// Interning the few names here avoids that.
const MAX_NAMES = 500;
const names = new Map<string, string>();
const nameOf = (given: string): string => {
  const kept = names.get(given);
  if (kept !== undefined) return kept;
  if (names.size === MAX_NAMES) names.clear();
  names.set(given, given);
  return given;
};

/** A copy of the request that reads the peer's address on demand, as long as the library's object lives: few answers need it, and it is expensive. */
export class LiveRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HttpRequest["headers"];
  readonly repeated: ReadonlySet<string>;
  #peer: UwsResponse | string;

  constructor(req: UwsRequest, peer: UwsResponse | string) {
    const headers: Record<string, string> = Object.create(null);
    let repeated: Set<string> | null = null;
    req.forEach((given, value) => {
      const name = nameOf(given);
      const before = headers[name];
      if (before === undefined) headers[name] = value;
      else if (isSingle(name)) repeated = (repeated ?? new Set()).add(name);
      else headers[name] = `${before}${name === "cookie" ? ";" : ","} ${value}`;
    });
    this.method = req.getCaseSensitiveMethod();
    this.path = req.getUrl();
    this.query = req.getQuery() ?? "";
    this.headers = headers;
    this.repeated = repeated ?? NONE;
    this.#peer = peer;
  }

  get peer(): string {
    if (typeof this.#peer !== "string") this.#peer = peerOf(this.#peer);
    return this.#peer;
  }

  /** Forgets the library's object, which was aborted or is about to be answered. */
  release(): void {
    if (typeof this.#peer !== "string") this.#peer = "";
  }
}

/** With the address read at once, for use after the library's object is gone. */
export const snapshot = (res: UwsResponse, req: UwsRequest): HttpRequest => new LiveRequest(req, peerOf(res));
