// Judges what callers ask of a route: where it leads, by way of which devices, and for whom.
import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import type { MeshConsumers } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { contains, judgeAddress, judgeNetwork } from "../../core/networks.ts";

export interface AskedRoute {
  readonly name: string;
  readonly kind: "subnet" | "domain" | "host";
  readonly network?: string | null | undefined;
  readonly domains?: readonly string[] | undefined;
  readonly host?: string | null | undefined;
  readonly port?: number | null | undefined;
  readonly routers: readonly { readonly deviceId: string; readonly metric: number }[];
  readonly consumers: MeshConsumers;
  readonly listenPort?: number | null | undefined;
  readonly probe?: { readonly host: string; readonly port: number } | null | undefined;
  readonly enabled?: boolean | undefined;
  readonly allowPublic?: boolean | undefined;
}

export interface JudgedRoute {
  readonly name: string;
  readonly kind: string;
  readonly network: string | null;
  readonly domains: string[];
  readonly host: string | null;
  readonly port: number | null;
  readonly consumers: MeshConsumers;
  readonly listenPort: number | null;
  readonly probe: { readonly host: string; readonly port: number } | null;
  readonly enabled: boolean;
  readonly allowPublic: boolean;
  readonly targetHash: string;
}

const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
const MAX_NAME = 253;
const HASH_CHARS = 32;

const refused = (reason: string, network: string): AppError => new AppError("MESH_NETWORK_NOT_ALLOWED", { details: { reason, network } });
const missing = (path: string, message: string): AppError =>
  new AppError("VALIDATION_FAILED", { details: { reason: "kind", issues: [{ path, code: "custom", message }] } });

/** In lower case and ASCII, without the final dot. Null: no name. */
export const canonicalName = (given: string): string | null => {
  const name = domainToASCII(given.trim().replace(/\.$/, "").toLowerCase());
  if (name.length === 0 || name.length > MAX_NAME || isIP(name) !== 0) return null;
  return name.split(".").every((label) => LABEL.test(label)) ? name : null;
};

/** An address, or a name that some router resolves. `127.0.0.1` is allowed, because it is the router itself. */
const judgeHost = (given: string, allowPublic: boolean): string => {
  const text = given.trim();
  if (isIP(text) !== 0) {
    const reason = judgeAddress(text);
    if (reason !== null && reason !== "loopback" && !(reason === "public" && allowPublic)) throw refused(reason, text);
    return text.toLowerCase();
  }
  const name = canonicalName(text);
  if (name === null || name === "localhost" || name.endsWith(".localhost")) throw refused("not_a_host", text);
  return name;
};

const judgeDomain = (given: string): string => {
  const isWild = given.trim().startsWith("*.");
  const name = canonicalName(isWild ? given.trim().slice(2) : given);
  if (name === null || name === "localhost" || name.endsWith(".localhost")) throw refused("not_a_domain", given.slice(0, MAX_NAME));
  return isWild ? `*.${name}` : name;
};

/** Whether a route to these domains leads to the name: 0 for no, else more for a closer match. */
export const closeness = (domains: readonly string[], name: string): number =>
  domains.reduce((best, domain) => {
    if (domain === name) return Math.max(best, domain.length * 2 + 1);
    return domain.startsWith("*.") && name.endsWith(domain.slice(1)) ? Math.max(best, domain.length * 2) : best;
  }, 0);

interface Target {
  readonly network: string | null;
  readonly domains: string[];
  readonly host: string | null;
  readonly port: number | null;
}
const NOWHERE: Target = { network: null, domains: [], host: null, port: null };

const TARGETS: Readonly<Record<AskedRoute["kind"], (asked: AskedRoute, allowPublic: boolean) => Target>> = {
  subnet: ({ network }, allowPublic) => {
    if (network == null) throw missing("network", "a route of kind subnet needs a network");
    const judged = judgeNetwork(network, allowPublic);
    if ("refusal" in judged) throw refused(judged.refusal, network);
    return { ...NOWHERE, network: judged.network.text };
  },
  domain: ({ domains = [] }) => {
    if (domains.length === 0) throw missing("domains", "a route of kind domain needs at least one name");
    return { ...NOWHERE, domains: [...new Set(domains.map(judgeDomain))] };
  },
  host: ({ host, port }, allowPublic) => {
    if (host == null || port == null) throw missing(host == null ? "host" : "port", "a route of kind host needs a host and a port");
    return { ...NOWHERE, host: judgeHost(host, allowPublic), port };
  },
};

const judgeProbe = ({ kind, probe }: AskedRoute, { network, domains }: Target): JudgedRoute["probe"] => {
  if (probe == null) return null;
  const isInside = kind === "subnet" ? contains(network ?? "", probe.host) : closeness(domains, canonicalName(probe.host) ?? "") > 0;
  if (!isInside) throw refused("probe_outside", probe.host);
  return { host: probe.host.toLowerCase(), port: probe.port };
};

/** A field of another kind would be forgotten in silence. */
const FIELDS: Readonly<Record<AskedRoute["kind"], readonly string[]>> = {
  subnet: ["network", "probe"],
  domain: ["domains", "probe"],
  host: ["host", "port", "listenPort"],
};
const judgeFields = (asked: AskedRoute): void => {
  const { network, domains = [], host, port, listenPort, probe } = asked;
  const given = { network, domains: domains.length === 0 ? null : domains, host, port, listenPort, probe };
  const own = FIELDS[asked.kind];
  const other = Object.entries(given).find(([name, value]) => value != null && !own.includes(name));
  if (other !== undefined) throw missing(other[0], `a route of kind ${asked.kind} has no ${other[0]}`);
};

const sorted = (values: readonly string[]): string[] => [...new Set(values)].sort();
/** The same for the same target and the same devices, in whatever order they were named. */
const hashOf = (kind: string, target: Target, { deviceIds, tags, fleetIds, all }: MeshConsumers): string => {
  const whom = [sorted(deviceIds), sorted(tags), sorted(fleetIds), all];
  const what = JSON.stringify([kind, { ...target, domains: sorted(target.domains) }, whom]);
  return createHash("sha256").update(what).digest("hex").slice(0, HASH_CHARS);
};

export const judgeRoute = (asked: AskedRoute): JudgedRoute => {
  const { name, kind, routers, listenPort = null, enabled = true, allowPublic = false } = asked;
  judgeFields(asked);
  const target = TARGETS[kind](asked, allowPublic);
  if (routers.length === 0) throw new AppError("MESH_ROUTER_REQUIRED", { details: { reason: "no_router" } });
  const { consumers } = asked;
  const both = routers.find(({ deviceId }) => consumers.deviceIds.some((each) => each === deviceId));
  if (both !== undefined) throw new AppError("MESH_ROUTER_REQUIRED", { details: { reason: "router_is_consumer", deviceId: both.deviceId } });
  if (new Set(routers.map(({ deviceId }) => deviceId)).size < routers.length) throw missing("routers", "names a device twice");
  const targetHash = hashOf(kind, target, consumers);
  return { name, kind, ...target, consumers, listenPort, probe: judgeProbe(asked, target), enabled, allowPublic, targetHash };
};
