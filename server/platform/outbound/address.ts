// Which addresses calls to others may reach: public ones, and those of the operator's allow-list.
import { BlockList, isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Why this address may not be called; null if it may. */
export type JudgeAddress = (address: string) => string | null;

const BLOCKED_V4 = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24"],
  ...["192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
];
/** All of today's public IPv6 is in it. Outside: v4-compatible, NAT64, discard, segment routing, unique local, link-local, site-local, multicast. */
const GLOBAL_V6 = ["2000::/3"];
/** Of that: Teredo and other protocol assignments, documentation, 6to4. */
const BLOCKED_V6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

const listOf = (cidrs: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", bits = ""] = cidr.split("/");
    list.addSubnet(network, Number(bits), network.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
};

const [blockedV4, globalV6, blockedV6] = [BLOCKED_V4, GLOBAL_V6, BLOCKED_V6].map(listOf) as [BlockList, BlockList, BlockList]; // as: map keeps the number

const isPublic = (address: string): boolean =>
  address.includes(":") ? globalV6.check(address, "ipv6") && !blockedV6.check(address, "ipv6") : !blockedV4.check(address, "ipv4");

/** `allowed` is judged first. An IPv4 address inside IPv6 (::ffff:a.b.c.d) is judged as IPv4. */
export const createJudgeAddress = (allowed: readonly string[]): JudgeAddress => {
  const allowList = listOf(allowed);
  return (text) => {
    if (isIP(text) === 0) return "is not an address";
    const address = ipaddr.process(text).toString();
    if (allowList.check(address, address.includes(":") ? "ipv6" : "ipv4") || isPublic(address)) return null;
    return `the address ${address} is not public`;
  };
};
