// Which of the addresses that an agent reports others can reach, and from where.
import ipaddr from "ipaddr.js";
import type { DeviceAddress } from "../../../protocol/index.ts";

const MAX_ADDRESSES = 16;
/** By the range's name in ipaddr.js. All others, such as loopback and link-local, reach nobody else. */
const KINDS: ReadonlyMap<string, DeviceAddress["kind"]> = new Map([
  ["private", "lan"],
  ["uniqueLocal", "lan"],
  ["carrierGradeNat", "lan"],
  ["unicast", "public"],
]);
const ORDER: readonly DeviceAddress["kind"][] = ["lan", "public"];

/** The agent's word decides nothing but the address: the gateway says what kind it is. Leaves out what is no address; IPv4 comes before IPv6. */
export const reachable = (reported: readonly string[]): readonly DeviceAddress[] => {
  const known = reported.flatMap((text) => {
    if (!ipaddr.IPv4.isValidFourPartDecimal(text) && !ipaddr.IPv6.isValid(text)) return [];
    const address = ipaddr.process(text);
    const kind = KINDS.get(address.range());
    return kind === undefined ? [] : [{ kind, address: address.toString() }];
  });
  const rank = ({ kind, address }: DeviceAddress): number => 2 * ORDER.indexOf(kind) + (address.includes(":") ? 1 : 0);
  return [...new Map(known.map((each) => [each.address, each])).values()].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_ADDRESSES);
};
