// Which addresses calls to others may reach: public ones, and those of the operator's allow-list.
import { BlockList, isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Why this address may not be called; null if it may. */
export type JudgeAddress = (address: string, port: number) => string | null;
export type IsOwn = (address: string, port: number) => boolean;

export const OWN = "the host is this service itself";
/** Where clouds tell their machines credentials: refused also within an allow-list. The first of these is routed like a public address. */
const METADATA = [
  ...["168.63.129.16/32", "169.254.169.254/32", "169.254.170.0/24", "169.254.42.42/32", "169.254.0.23/32", "100.100.100.200/32", "192.0.0.192/32"],
  ...["fd00:ec2::/64", "fd20:ce::254/128", "fd00:42::42/128", "fd00:a9fe:a9fe::1/128"],
];

const BLOCKED_V4 = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24"],
  ...["192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
  // Services inside of Azure and IBM Cloud, in ranges that are registered as public.
  ...["168.63.129.16/32", "161.26.0.0/16", "166.8.0.0/14"],
];
/** All of today's public IPv6 is in it. Outside: v4-compatible, NAT64, discard, segment routing, unique local, link-local, site-local, multicast. */
const GLOBAL_V6 = ["2000::/3"];
/** The exceptions: Teredo and other protocol assignments, documentation, 6to4. */
const BLOCKED_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

const listOf = (cidrs: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", bits = ""] = cidr.split("/");
    list.addSubnet(network, Number(bits), network.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
};

const [blockedV4, globalV6, blockedV6, metadata] = [listOf(BLOCKED_V4), listOf(GLOBAL_V6), listOf(BLOCKED_V6), listOf(METADATA)];
const isIn = (list: BlockList, address: string): boolean => list.check(address, address.includes(":") ? "ipv6" : "ipv4");

const isPublic = (address: string): boolean =>
  address.includes(":") ? globalV6.check(address, "ipv6") && !blockedV6.check(address, "ipv6") : !blockedV4.check(address, "ipv4");

/** Our own and metadata come before `allowed`. An IPv4 address inside IPv6 (::ffff:a.b.c.d) is judged as IPv4. */
export const createJudgeAddress = (allowed: readonly string[], isOwn: IsOwn): JudgeAddress => {
  const allowList = listOf(allowed);
  return (text, port) => {
    if (isIP(text) === 0) return "is not an address";
    const address = ipaddr.process(text).toString();
    if (isOwn(address, port)) return OWN;
    if (isIn(metadata, address)) return `the address ${address} is that of a metadata service`;
    if (isIn(allowList, address) || isPublic(address)) return null;
    return `the address ${address} is not public`;
  };
};
