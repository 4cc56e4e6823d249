// What a router connects to: only what an approved route names, and of names only what they mean there, looked at after they are resolved.
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from "node:dns";
import { BlockList, connect, isIP, type LookupFunction, type Socket } from "node:net";
import type { DialReason } from "../../../protocol/index.ts";
import { ADDRESS_REFUSED } from "../../agent/index.ts";

export interface RouterRoute {
  readonly routeId: string;
  readonly kind: string;
  readonly network: string | null;
  readonly domains: readonly string[];
  readonly host: string | null;
  readonly port: number | null;
  readonly allowPublic: boolean;
}

export type Lookup = (name: string, options: LookupOptions & { readonly all: true }, done: (error: Error | null, found: LookupAddress[]) => void) => void;

const AUTHORITY = /^(mrt_\w{1,60})@(?:\[([\da-fA-F:.]{2,45})\]|([^\s:[\]@/]{1,253})):(\d{1,5})$/;

const listOf = (networks: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits = "0"] = network.split("/");
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
};
const has = (list: BlockList, address: string): boolean => list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
const PRIVATE = listOf(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"]);
export const isPrivateAddress = (address: string): boolean => has(PRIVATE, address);
/** Addresses that mean something else on every machine, those of the metadata of clouds among them. */
const SPECIAL = listOf(["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32", "224.0.0.0/3", "::/127", "fe80::/10", "ff00::/8", "::ffff:0:0/96"]);
const isAllowed = (address: string, allowPublic: boolean): boolean => !has(SPECIAL, address) && (allowPublic || isPrivateAddress(address));

const matches = (domain: string, name: string): boolean => (domain.startsWith("*.") ? name.endsWith(domain.slice(1)) : domain === name);

/** Whether the route leads to this address or name. */
const leadsTo = ({ kind, network, domains, host, port }: RouterRoute, asked: string, askedPort: number): boolean => {
  if (kind === "host") return host === asked && port === askedPort;
  if (kind === "domain") return isIP(asked) === 0 && domains.some((domain) => matches(domain, asked));
  return network !== null && isIP(asked) !== 0 && isIP(asked) === isIP(network.split("/")[0] ?? "") && has(listOf([network]), asked);
};

/** Names mean nothing but private addresses; the router itself is reached by its address alone. */
const judgedLookup =
  (lookup: Lookup, allowPublic: boolean): LookupFunction =>
  (name, options, done) =>
    lookup(name, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, []);
      const allowed = found.filter(({ address }) => isAllowed(address, allowPublic));
      const [first] = allowed;
      if (first === undefined) return done(Object.assign(new Error(`${name} leads to no address that the route allows`), { code: ADDRESS_REFUSED }), []);
      return options.all === true ? done(null, allowed) : done(null, first.address, first.family);
    });

/** Begins to connect for a stream of the gateway. Null: the stream is none of a route. */
export const connectForRoute = (authority: string, routes: ReadonlyMap<string, RouterRoute>, lookup: Lookup = systemLookup): Socket | DialReason | null => {
  if (!authority.startsWith("mrt_")) return null;
  const [, routeId = authority, v6, other = "", digits = "0"] = AUTHORITY.exec(authority) ?? [];
  const route = routes.get(routeId);
  if (route === undefined) return "unknown";
  const [host, port] = [(v6 ?? other).toLowerCase(), Number(digits)];
  // A stream that names the route alone asks whether it is known here.
  if (!leadsTo(route, host, port)) return "not_allowed";
  return connect({ host, port, allowHalfOpen: true, lookup: judgedLookup(lookup, route.allowPublic) });
};
