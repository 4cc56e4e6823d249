// Which route a consumer's connection takes, which router it goes through, and the failover to the next one. Pure, so that every case is a line of a test.
import { isIP } from "node:net";
import { contains } from "../../core/networks.ts";
import { closeness } from "./input.ts";

export interface RouterState {
  readonly deviceId: string;
  readonly metric: number;
  readonly state: string;
}

export interface RoutePlan {
  readonly routeId: string;
  readonly kind: string;
  readonly network: string | null;
  readonly domains: readonly string[];
  readonly host: string | null;
  readonly port: number | null;
  readonly activeRouter: string | null;
  readonly routers: readonly RouterState[];
}

export interface MeshTarget {
  readonly host: string;
  readonly port: number;
}

const AUTHORITY = /^(?:\[([\da-fA-F:.]{2,45})\]|([^\s:[\]@/]{1,253})):(\d{1,5})$/;
const MAX_PORT = 65_535;

/** `host:port`, an IPv6 address in brackets. */
export const readTarget = (authority: string): MeshTarget | null => {
  const [, v6, other = "", digits = ""] = AUTHORITY.exec(authority) ?? [];
  const port = Number(digits);
  if (port < 1 || port > MAX_PORT || (v6 !== undefined && isIP(v6) !== 6)) return null;
  return { host: (v6 ?? other).toLowerCase().replace(/\.$/, ""), port };
};
export const writeTarget = ({ host, port }: MeshTarget): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** How closely the route fits: a host before a name, a name before a network, a long prefix before a short one. 0: it does not lead there. */
const HOST_FIT = 1_000_000;
const NAME_FIT = 10_000;
export const fitOf = ({ kind, network, domains, host, port }: RoutePlan, target: MeshTarget): number => {
  if (kind === "host") return host === target.host && port === target.port ? HOST_FIT : 0;
  if (kind === "domain") {
    const close = isIP(target.host) === 0 ? closeness(domains, target.host) : 0;
    return close === 0 ? 0 : NAME_FIT + close;
  }
  return network !== null && contains(network, target.host) ? 1 + Number(network.split("/")[1]) : 0;
};

/** Routes that lead there, the closest first. */
export const routesTo = <R extends RoutePlan>(routes: readonly R[], target: MeshTarget): R[] =>
  routes
    .map((route) => ({ route, fit: fitOf(route, target) }))
    .filter(({ fit }) => fit > 0)
    .sort((a, b) => b.fit - a.fit)
    .map(({ route }) => route);

/** The router of now first, then others that answered the last probes. */
export const routersToTry = ({ activeRouter, routers }: Pick<RoutePlan, "activeRouter" | "routers">): string[] => {
  const others = routers
    .filter(({ deviceId, state }) => deviceId !== activeRouter && state === "up")
    .sort((a, b) => a.metric - b.metric)
    .map(({ deviceId }) => deviceId);
  return activeRouter === null ? others : [activeRouter, ...others];
};

export interface RouteStanding {
  readonly status: "active" | "degraded" | "down" | "disabled";
  readonly activeRouter: string | null;
}
/** Sticky: a router that answers stays, whatever another one's metric. */
export const routeStandingOf = (
  { enabled, approval, activeRouter }: { readonly enabled: boolean; readonly approval: string; readonly activeRouter: string | null },
  routers: readonly RouterState[],
): RouteStanding => {
  if (!enabled) return { status: "disabled", activeRouter: null };
  if (approval !== "approved") return { status: "down", activeRouter: null };
  const up = routers.filter(({ state }) => state === "up");
  const [first] = [...up].sort((a, b) => a.metric - b.metric);
  if (first === undefined) return { status: "down", activeRouter: null };
  const kept = up.find(({ deviceId }) => deviceId === activeRouter) ?? first;
  return { status: up.length < routers.length ? "degraded" : "active", activeRouter: kept.deviceId };
};

export const PROBE_MISSES = 2;
/** One miss may be a coincidence; before the first answer it is none. */
export const afterProbe = (
  before: { readonly state: string; readonly misses: number },
  reason: string | null,
): { readonly state: "unknown" | "up" | "down"; readonly misses: number } => {
  if (reason === null) return { state: "up", misses: 0 };
  const misses = before.misses + 1;
  return { state: before.state !== "up" || misses >= PROBE_MISSES ? "down" : "up", misses };
};
