// The headers of a visit on their way to the service and back: those of the connection end here, ours never go on, and forwarding headers are ours.
import type { EdgeRequest } from "../../../core/ports/edge.ts";

/** Name, value, name, value, ... as node:http takes and gives them. */
export type RawHeaders = readonly string[];

export const KEY_HEADER = "x-mooring-key";
export const TOKEN_HEADER = "x-mooring-token";

const CONNECTION: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["http2-settings", "expect"],
]);
const FORWARDING: ReadonlySet<string> = new Set(["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-real-ip"]);
const OURS: ReadonlySet<string> = new Set([KEY_HEADER, TOKEN_HEADER, "host"]);
const OWN_KEY = /^(?:Bearer|Basic) +svk_/i;

const pairs = function* (raw: RawHeaders): Generator<readonly [name: string, value: string]> {
  for (let at = 0; at < raw.length; at += 2) yield [raw[at] ?? "", raw[at + 1] ?? ""];
};

/** What `Connection` names belongs to this connection alone. */
const namedByConnection = (raw: RawHeaders): ReadonlySet<string> => {
  const names = new Set<string>();
  for (const [name, value] of pairs(raw)) if (name.toLowerCase() === "connection") for (const word of value.split(",")) names.add(word.trim().toLowerCase());
  return names;
};

/** Without our cookie; null when nothing is left. */
const otherCookies = (value: string, cookie: string): string | null => {
  const left = value.split(";").filter((pair) => !pair.trim().startsWith(`${cookie}=`));
  return left.length === 0 ? null : left.join(";").trim();
};

const quoted = (ip: string): string => (ip.includes(":") ? `"[${ip}]"` : ip);

export interface Forwarding {
  readonly request: EdgeRequest;
  /** What the service gets as Host. */
  readonly host: string;
  /** The name of our cookie. */
  readonly cookie: string;
}

export const toService = ({ request, host, cookie }: Forwarding): string[] => {
  const { message, ip, secure, authority, fromProxy } = request;
  const raw = message.rawHeaders;
  const named = namedByConnection(raw);
  const kept: string[] = ["Host", host];
  const forwarded: string[] = [];
  for (const [name, value] of pairs(raw)) {
    const lower = name.toLowerCase();
    if (lower.startsWith(":") || CONNECTION.has(lower) || named.has(lower) || OURS.has(lower)) continue;
    if (lower === "authorization" && OWN_KEY.test(value)) continue;
    if (FORWARDING.has(lower)) {
      if (fromProxy && lower === "x-forwarded-for") forwarded.push(value);
      continue;
    }
    const left = lower === "cookie" ? otherCookies(value, cookie) : value;
    if (left !== null) kept.push(name, left);
  }
  const proto = secure ? "https" : "http";
  kept.push("X-Forwarded-For", [...forwarded, ip].join(", "), "X-Forwarded-Proto", proto, "X-Forwarded-Host", authority);
  kept.push("Forwarded", `for=${quoted(ip)};host="${authority}";proto=${proto}`);
  return kept;
};

const DOMAIN = /;\s*domain\s*=\s*([^;]*)/i;
/** A cookie for a wider domain would reach other tenants' tunnels. */
const ownCookie = (value: string, host: string): string => {
  const domain = DOMAIN.exec(value)?.[1]?.trim().replace(/^\./, "").toLowerCase();
  return domain === undefined || domain === host ? value : value.replace(DOMAIN, "");
};

export const toVisitor = (raw: RawHeaders, host: string, keep: ReadonlySet<string> = new Set()): string[] => {
  const named = namedByConnection(raw);
  const kept: string[] = [];
  for (const [name, value] of pairs(raw)) {
    const lower = name.toLowerCase();
    if (!keep.has(lower) && (CONNECTION.has(lower) || named.has(lower))) continue;
    kept.push(name, lower === "set-cookie" ? ownCookie(value, host) : value);
  }
  return kept;
};

/** HTTP/2 takes an object, with a list where a header comes more than once. */
export const headersObject = (raw: RawHeaders): Record<string, string | string[]> => {
  const all: Record<string, string | string[]> = {};
  for (const [name, value] of pairs(raw)) {
    const lower = name.toLowerCase();
    const before = all[lower];
    all[lower] = before === undefined ? value : [...(typeof before === "string" ? [before] : before), value];
  }
  return all;
};
