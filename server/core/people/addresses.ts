// Addresses and networks in one form each, and which networks an address is in.
import ipaddr from "ipaddr.js";

export type Address = ReturnType<typeof ipaddr.process>;

/** Shorter prefixes are half of the internet, and a slip of the hand. */
const LEAST_BITS = { ipv4: 8, ipv6: 16 } as const;
const MAPPED_BITS = 96;

/** An IPv4 address that is mapped into IPv6 is the IPv4 address. Null for text that is no address. */
export const parseAddress = (text: string): Address | null =>
  ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes("%")) ? ipaddr.process(text) : null;

export const canonicalAddress = (text: string): string | null => parseAddress(text)?.toString() ?? null;

const networkText = (address: Address, bits: number): string => {
  const bytes = address.toByteArray().map((byte, at) => byte & ((0xff << Math.max(0, 8 - Math.max(0, bits - at * 8))) & 0xff));
  return `${ipaddr.fromByteArray(bytes).toString()}/${bits}`;
};

/** An address, or a network without the bits of its hosts. Null for any other text and for networks that are too wide. */
export const canonicalNetwork = (text: string): string | null => {
  const [, base = "", prefix = ""] = /^([^/]*)\/(\d{1,3})$/.exec(text) ?? [];
  if (base === "") return canonicalAddress(text);
  const address = parseAddress(base);
  if (address === null) return null;
  const isMapped = address.kind() === "ipv4" && base.includes(":");
  const bits = Number(prefix) - (isMapped ? MAPPED_BITS : 0);
  const most = address.kind() === "ipv4" ? 32 : 128;
  if (bits < LEAST_BITS[address.kind()] || bits > most) return null;
  return bits === most ? address.toString() : networkText(address, bits);
};

/** Tests addresses that are parsed already: a caller meets many networks. */
export const networkTest = (network: string): ((address: Address) => boolean) => {
  const [base, bits] = ipaddr.parseCIDR(network);
  const kind = base.kind();
  return (address) => address.kind() === kind && address.match(base, bits);
};
