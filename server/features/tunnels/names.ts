// Judges what callers name: the host name of a tunnel, the service that it leads to, and the addresses that may come.
import { randomBytes } from "node:crypto";
import { domainToASCII } from "node:url";
import { UNIX_SERVICE } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { canonicalNetwork, parseAddress } from "../../core/people/addresses.ts";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_SERVICE = 2_048;
const RANDOM_BYTES = 4;

export const badService = (reason: string, details: Readonly<Record<string, unknown>> = {}): AppError =>
  new AppError("TUNNEL_SERVICE_INVALID", { details: { reason, ...details } });

/** Names that people read aloud, of letters and digits that are told apart. */
const random = (): string => randomBytes(RANDOM_BYTES).toString("hex");

const slugOf = (name: string): string =>
  name
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 30)
    .replace(/-+$/, "") || "app";

export const randomHostname = (name: string, domain: string): string => `${slugOf(name)}-${random()}.${domain}`;

/** The whole host name of what a caller asks for: one label of the tenant's own in the domain of tunnels. */
export const judgeTunnelHostname = (given: string, { domain, slug }: { readonly domain: string; readonly slug: string }): string => {
  const ascii = domainToASCII(given.trim().replace(/\.$/, "").toLowerCase());
  const suffix = `.${domain}`;
  const asked = ascii.endsWith(suffix) ? ascii.slice(0, -suffix.length) : ascii;
  const own = `--${slug}`;
  const name = asked.endsWith(own) ? asked.slice(0, -own.length) : asked;
  // The first `--` divides name and tenant, so a name holds none.
  if (!LABEL.test(name) || name.includes("--")) throw badService("hostname", { hostname: given.slice(0, 253) });
  const label = `${name}${own}`;
  if (!LABEL.test(label)) throw badService("hostname_too_long", { hostname: given.slice(0, 253) });
  return `${label}${suffix}`;
};

export interface Service {
  readonly service: string;
  readonly protocol: "http" | "https" | "tcp";
  /** Null: it is a unix socket. */
  readonly targetPort: number | null;
}

const PROTOCOLS: ReadonlyMap<string, Service["protocol"]> = new Map([
  ["http:", "http"],
  ["https:", "https"],
  ["tcp:", "tcp"],
]);
/** TCP has none: 0 is refused. */
const DEFAULT_PORT = { http: 80, https: 443, tcp: 0 } as const;

const isPrivate = (host: string): boolean => {
  if (host === "localhost") return true;
  const address = parseAddress(host);
  if (address === null) return false;
  const range = address.range();
  return range === "loopback" || range === "private" || range === "uniqueLocal";
};

/** The name that a service hears where visitors' own is not passed on. */
export const hostHeaderOf = (service: string): string => new URL(service).host || "localhost";

/** A URL as the device sees it. What the device may reach, its agent decides again. */
export const judgeService = (given: string): Service => {
  if (given.length > MAX_SERVICE || !URL.canParse(given)) throw badService("url");
  const url = new URL(given);
  if (url.protocol === "unix:") {
    if (!UNIX_SERVICE.test(given)) throw badService("path");
    return { service: given, protocol: "http", targetPort: null };
  }
  const protocol = PROTOCOLS.get(url.protocol);
  if (protocol === undefined) throw badService("scheme", { scheme: url.protocol.replace(":", "") });
  if (url.username !== "" || url.password !== "") throw badService("credentials");
  if ((url.pathname !== "/" && url.pathname !== "") || url.search !== "" || url.hash !== "") throw badService("path");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (!isPrivate(host)) throw badService("address", { host });
  const targetPort = url.port === "" ? DEFAULT_PORT[protocol] : Number(url.port);
  if (targetPort === 0) throw badService("port");
  return { service: `${protocol}://${url.hostname}:${targetPort}`, protocol, targetPort };
};

/** What comes over TCP says nothing of who it is, so its address must do. */
export const judgeTcpAccess = ({
  protocol,
  accessMode,
  allow,
}: {
  readonly protocol: string;
  readonly accessMode: string;
  readonly allow: readonly string[];
}): void => {
  if (protocol !== "tcp" || accessMode === "public") return;
  if (accessMode === "token") throw badService("tcp_without_token");
  if (allow.length === 0) throw badService("tcp_needs_allow");
};

export const judgeAllow = (given: readonly string[]): string[] =>
  given.map((text) => {
    const network = canonicalNetwork(text.trim());
    if (network === null) throw badService("allow", { network: text.slice(0, 64) });
    return network;
  });
