// What this installation itself listens on, by address and port: the listeners of this process, its embedded database, and those of the nodes that the
// cluster snapshot knows. Calls to addresses of others never reach these.
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { canonicalAddress } from "../../core/people/addresses.ts";
import type { NodeListeners } from "../../core/ports/cluster-snapshot.ts";

export interface OwnEndpoint {
  /** An address, `localhost`, or a name, which counts as all addresses of the machine. */
  readonly host: string;
  readonly port: number;
}

export interface OwnListenersDeps {
  /** The endpoints of this process, and of the databases that it was given; read at each use, as ports become known late. */
  readonly endpoints: () => readonly OwnEndpoint[];
  /** The addresses of this machine's interfaces. */
  readonly addresses?: () => readonly string[];
}

export interface OwnListeners {
  isOwn(address: string, port: number): boolean;
  /** For the other nodes: each address with its port. */
  published(): readonly string[];
  /** The other live nodes; `isHere`: on this machine. */
  learn(others: readonly (NodeListeners & { readonly isHere: boolean })[]): void;
}

/** The endpoints of a URL with an address or localhost; a name may be any machine's. */
export const endpointsOf = (url: string | undefined, defaultPort: number): readonly OwnEndpoint[] => {
  if (url === undefined || !URL.canParse(url)) return [];
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  return host === "localhost" || isIP(host) !== 0 ? [{ host, port: port === "" ? defaultPort : Number(port) }] : [];
};

/** A machine with more addresses publishes the first. */
const MAX_PUBLISHED = 100;
const UNSPECIFIED: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);
const LOOPBACK = ["127.0.0.1", "::1"];

const isLoopback = (address: string): boolean => address === "::1" || address.startsWith("127.");
const textOf = (address: string, port: number): string => `${address.includes(":") ? `[${address}]` : address}:${port}`;

const interfaceAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((all = []) => all.flatMap(({ address }) => canonicalAddress(address.replace(/%.*$/, "")) ?? []));

export const createOwnListeners = ({ endpoints, addresses = interfaceAddresses }: OwnListenersDeps): OwnListeners => {
  /** The ports of nodes on this machine. */
  let neighbours: ReadonlySet<number> = new Set();
  let elsewhere: ReadonlySet<string> = new Set();

  /** Linux takes the unspecified address for loopback, and all of 127/8 for itself. */
  const isHere = (address: string): boolean => UNSPECIFIED.has(address) || isLoopback(address) || addresses().includes(address);
  const bound = ({ host }: OwnEndpoint): readonly string[] => {
    if (host === "localhost") return LOOPBACK;
    const address = isIP(host) === 0 ? null : canonicalAddress(host);
    return address === null || UNSPECIFIED.has(address) ? [...LOOPBACK, ...addresses().filter((each) => !isLoopback(each))] : [address];
  };

  return {
    isOwn: (given, port) => {
      const address = canonicalAddress(given) ?? given;
      if (elsewhere.has(textOf(address, port))) return true;
      const own = endpoints().filter((each) => each.port === port);
      if (own.length === 0 && !neighbours.has(port)) return false;
      // Somewhere else than on this machine only where the operator named an address.
      return isHere(address) ? neighbours.has(port) || own.some((each) => bound(each).some(isHere)) : own.some((each) => bound(each).includes(address));
    },
    published: () => [...new Set(endpoints().flatMap((each) => bound(each).map((address) => textOf(address, each.port))))].slice(0, MAX_PUBLISHED),
    learn: (others) => {
      const here = others.filter((each) => each.isHere).flatMap(({ listeners }) => listeners);
      neighbours = new Set(here.map((text) => Number(text.slice(text.lastIndexOf(":") + 1))));
      const away = others.filter((each) => !each.isHere).flatMap(({ listeners }) => listeners);
      elsewhere = new Set(away.filter((text) => !/^(127\.|\[::1\])/.test(text)));
    },
  };
};
