// Which names can be custom domains: no address, no wildcard, no public suffix such as co.uk, and nothing in the zones of this installation (IDNA, tldts).
import { isIP } from "node:net";
import { domainToASCII, domainToUnicode } from "node:url";
import { parse } from "tldts";

export const HOSTNAME_REFUSALS = [
  "not_a_hostname",
  "ip_address",
  "wildcard_unsupported",
  "too_long",
  "label_too_long",
  "single_label",
  "public_suffix",
  "own_zone",
] as const;
export type HostnameRefusal = (typeof HOSTNAME_REFUSALS)[number];

export type JudgedHostname = { readonly hostname: string } | { readonly refusal: HostnameRefusal };

const MAX_NAME = 253;
const MAX_LABEL = 63;
const LABEL = /^[a-z\d](?:[a-z\d-]*[a-z\d])?$/;
/** What would end or restructure the host of a URL, which `domainToASCII` reads. */
const NOT_IN_A_NAME = /[\s/?#@:\\%[\]<>^|`{}_\p{C}]/u;

const isWithin = (hostname: string, zone: string): boolean => hostname === zone || hostname.endsWith(`.${zone}`);

/** The name as the DNS knows it, or why it cannot be a custom domain. */
export const judgeHostname = (given: string, ownZones: readonly string[]): JudgedHostname => {
  if (given.includes("*")) return { refusal: "wildcard_unsupported" };
  if (isIP(given.replace(/^\[(.*)\]$/, "$1")) !== 0) return { refusal: "ip_address" };
  const stripped = given.replace(/[.\u3002\uff0e\uff61]$/u, "");
  if (stripped === "" || NOT_IN_A_NAME.test(stripped)) return { refusal: "not_a_hostname" };
  if (stripped.split(".").some((label) => label.length > MAX_LABEL && /^[\x21-\x7e]*$/.test(label))) return { refusal: "label_too_long" };
  const hostname = domainToASCII(stripped).toLowerCase();
  if (isIP(hostname) !== 0) return { refusal: "ip_address" };
  if (hostname.length > MAX_NAME || stripped.length > MAX_NAME) return { refusal: "too_long" };
  const labels = hostname.split(".");
  if (labels.some((label) => label.length > MAX_LABEL)) return { refusal: "label_too_long" };
  if (!labels.every((label) => LABEL.test(label))) return { refusal: "not_a_hostname" };
  if (ownZones.some((zone) => isWithin(hostname, zone))) return { refusal: "own_zone" };
  if (labels.length === 1) return { refusal: "single_label" };
  if (parse(hostname, { allowPrivateDomains: true }).domain === null) return { refusal: "public_suffix" };
  return { hostname };
};

/** The name with the letters that people write. */
export const displayNameOf = (hostname: string): string => domainToUnicode(hostname) || hostname;

/** Whether the name is the top of a zone, where no CNAME can stand. */
export const isApex = (hostname: string): boolean => parse(hostname, { allowPrivateDomains: true }).domain === hostname;
