// Judges the head of a request before anybody routes it: one host, one meaning. Whatever two programs could read in two ways gets 400.
import type { IncomingMessage } from "node:http";
import type { EdgeMessage, EdgeRequest } from "../core/ports/edge.ts";
import type { HttpRequest } from "../gateway/http/http-message.ts";
import { callerAddress, createRequestInfo, isWithin, type parseNetworks } from "../gateway/http/request-info.ts";

const HOST = /^(\[[\da-f:.]{2,45}\]|[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?)(?::\d{1,5})?$/;
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is;
const MAX_HOST = 253;
/** What must not come twice: two programs would take different ones. */
const SINGLE: ReadonlySet<string> = new Set(["host", "content-length", "transfer-encoding", "content-type", "authorization"]);

export interface Refused {
  readonly refused: { readonly code: string; readonly message: string };
}

type Networks = ReturnType<typeof parseNetworks>;

const refused = (code: string, message: string): Refused => ({ refused: { code, message } });

const twice = ({ rawHeaders }: EdgeMessage): string | null => {
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? "").toLowerCase();
    if (SINGLE.has(name) && seen.has(name)) return name;
    seen.add(name);
  }
  return null;
};

const one = (value: string | readonly string[] | undefined): string | undefined => (typeof value === "string" ? value : value?.[0]);

/** The target and the host that it stands for: HTTP/1.1 may name the host in the target, too, and HTTP/2 has a header of its own. */
const targetOf = (message: EdgeMessage): { readonly authority: string; readonly target: string } | Refused => {
  const url = message.url ?? "";
  const host = one(message.headers.host);
  const absolute = ABSOLUTE.exec(url);
  const named = message.httpVersionMajor === 2 ? one(message.headers[":authority"]) : absolute?.[1];
  if (named !== undefined && host !== undefined && named.toLowerCase() !== host.toLowerCase()) return refused("HOST_AMBIGUOUS", "The request names two hosts.");
  const authority = (named ?? host ?? "").toLowerCase();
  const rest = absolute?.[2];
  const target = rest === undefined ? url : rest.startsWith("/") ? rest : `/${rest}`;
  if (!target.startsWith("/")) return target === "*" ? { authority, target: "/*" } : refused("TARGET_INVALID", "The request has no path.");
  return { authority, target };
};

const flatHeaders = ({ headers }: EdgeMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, typeof value === "string" ? value : value.join(", ")]])),
  );

export const createReadHead = (proxies: Networks) => {
  const infoOf = createRequestInfo(proxies);
  return (message: EdgeMessage, isTls: boolean): EdgeRequest | Refused => {
    const repeated = twice(message);
    if (repeated !== null) return refused(repeated === "host" ? "HOST_AMBIGUOUS" : "HEADER_TWICE", `The header ${repeated} came twice.`);
    const found = targetOf(message);
    if ("refused" in found) return found;
    const { authority, target } = found;
    const name = HOST.exec(authority)?.[1]?.replace(/\.$/, "");
    if (name === undefined || name.length > MAX_HOST) return refused("HOST_INVALID", "The request names no valid host.");
    const [path = "", query] = [target.replace(/[?#].*$/s, ""), /\?([^#]*)/s.exec(target)?.[1]];
    const peer = message.socket.remoteAddress?.replace(/^::ffff:/, "") ?? "";
    const headers = flatHeaders(message);
    const request = { method: message.method ?? "GET", path, query: query ?? "", headers, repeated: new Set<string>(), peer };
    const fromProxy = isWithin(peer, proxies);
    return {
      message,
      method: request.method,
      host: name,
      authority,
      path,
      query: request.query,
      ip: callerAddress(request, proxies),
      secure: isTls || (fromProxy && headers["x-forwarded-proto"] === "https"),
      fromProxy,
      requestId: infoOf(request, "/v1").requestId,
    };
  };
};
export type ReadHead = ReturnType<typeof createReadHead>;

/** The head as it was sent, without some of its headers. */
export const headText = ({ method, url, httpVersion, rawHeaders }: IncomingMessage, without: ReadonlySet<string>): string => {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (!without.has((rawHeaders[at] ?? "").toLowerCase())) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
};

/** For what judges requests of the public listener, too. */
export const httpRequestOf = ({ message, method, path, query, ip }: EdgeRequest): HttpRequest => {
  const headers = flatHeaders(message);
  return { method, path, query, headers, repeated: new Set(), peer: ip };
};
