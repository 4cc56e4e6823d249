// Networks in CIDR form that a mesh route may lead to: private ones of a sensible size, without host bits, and nothing that is special on every machine.
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export const NETWORK_REFUSALS = [
  "not_a_network",
  "host_bits_set",
  "prefix_too_short",
  "ipv4_mapped",
  "loopback",
  "link_local",
  "multicast",
  "unspecified",
  "public",
] as const;
export type NetworkRefusal = (typeof NETWORK_REFUSALS)[number];

export interface Network {
  /** In canonical form. */
  readonly text: string;
  readonly bits: number;
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
}

const SHORTEST = { ipv4: 8, ipv6: 32 } as const;
const FORM = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-fA-F:.]*:[\da-fA-F:.]*)\/\d{1,3}$/;
const SPECIAL: ReadonlyMap<string, NetworkRefusal> = new Map([
  ["loopback", "loopback"],
  ["linkLocal", "link_local"],
  ["multicast", "multicast"],
  ["broadcast", "multicast"],
  ["unspecified", "unspecified"],
  ["ipv4Mapped", "ipv4_mapped"],
]);
const PRIVATE: ReadonlySet<string> = new Set(["private", "carrierGradeNat", "uniqueLocal"]);

/** Why nobody may be led to this address; null: it is private. */
export const judgeAddress = (text: string): NetworkRefusal | null => {
  if (isIP(text) === 0) return "not_a_network";
  const range = ipaddr.parse(text).range();
  return SPECIAL.get(range) ?? (PRIVATE.has(range) ? null : "public");
};

const lastOf = ({ address, bits }: Network): ipaddr.IPv4 | ipaddr.IPv6 => {
  const bytes = address.toByteArray().map((byte, at) => byte | (0xff >> Math.min(8, Math.max(0, bits - at * 8))));
  return ipaddr.fromByteArray(bytes);
};

const read = (text: string): Network | null => {
  if (!FORM.test(text)) return null;
  try {
    const [address, bits] = ipaddr.parseCIDR(text);
    return { text: `${address.toString()}/${bits}`, bits, address };
  } catch {
    return null;
  }
};

export const judgeNetwork = (text: string, allowPublic: boolean): { readonly network: Network } | { readonly refusal: NetworkRefusal } => {
  const network = read(text);
  if (network === null) return { refusal: "not_a_network" };
  const { address, bits } = network;
  const [first, last] = [address.toString(), lastOf(network)];
  // The beginning decides about special ranges, and both ends about private ones: a short prefix may hold others between them.
  const special = SPECIAL.get(address.range()) ?? SPECIAL.get(last.range());
  if (bits === 0) return { refusal: "prefix_too_short" };
  if (special !== undefined) return { refusal: special };
  if (bits < SHORTEST[address.kind()]) return { refusal: "prefix_too_short" };
  const masked = ipaddr.fromByteArray(address.toByteArray().map((byte, at) => byte & ~(0xff >> Math.min(8, Math.max(0, bits - at * 8))) & 0xff));
  if (masked.toString() !== first) return { refusal: "host_bits_set" };
  const isPrivate = PRIVATE.has(address.range()) && PRIVATE.has(last.range());
  return isPrivate || allowPublic ? { network } : { refusal: "public" };
};

/** Whether the address lies in the network. */
export const contains = (network: string, address: string): boolean => {
  const cidr = read(network);
  if (cidr === null || isIP(address) === 0) return false;
  const parsed = ipaddr.process(address);
  return parsed.kind() === cidr.address.kind() && parsed.match(cidr.address as never, cidr.bits); // as: of one kind
};

/** Whether two networks have an address in common. */
export const overlap = (a: string, b: string): boolean => {
  const [one, two] = [read(a), read(b)];
  if (one === null || two === null) return false;
  return contains(a, two.address.toString()) || contains(b, one.address.toString());
};
