// What every transport needs to know about an HTTP request: its id, its prefix, its caller's address.
import ipaddr from "ipaddr.js";
import { newId } from "../../core/ids.ts";
import type { CallOrigin } from "../../core/ports/in-process.ts";
import { readTraceparent } from "../../core/ports/trace.ts";
import type { HttpRequest } from "./http-message.ts";

export type Prefix = "/v1" | "/api/v1";
export type ErrorShape = "a" | "b";

export interface RequestInfo extends CallOrigin {
  readonly prefix: Prefix;
  readonly shape: ErrorShape;
  /** The caller asked for a shape: say so in the answer. */
  readonly shapeChosen: boolean;
  /** Read it before the first await, see `HttpRequest.peer`. */
  readonly ip: string;
  readonly traceparent: string | null;
  readonly userAgent?: string | null;
}

const REQUEST_ID = /^[A-Za-z0-9_-]{8,64}$/;

type Network = ReturnType<typeof ipaddr.parseCIDR>;
export const parseNetworks = (cidrs: readonly string[]): readonly Network[] => cidrs.map((cidr) => ipaddr.parseCIDR(cidr));

export const isWithin = (address: string, networks: readonly Network[]): boolean => {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits));
};

/** Some proxies append the caller's port. */
const HOP = /^(?:\[([\da-fA-F:.]+)\](?::\d{1,5})?|(\d+\.\d+\.\d+\.\d+):\d{1,5})$/;

/** The address in canonical form, or null when the text is none. */
const hopAddress = (hop: string): string | null => {
  const [, bracketed, withPort] = HOP.exec(hop) ?? [];
  const text = bracketed ?? withPort ?? hop;
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text) ? ipaddr.process(text).toString() : null;
};

/**
 * The right-most address that is not a trusted proxy; the peer itself when it is none.
 * Each proxy vouches for the hop that it appended. The walk ends at text that is no address: nobody vouches for what stands left of it.
 */
export const callerAddress = ({ peer, headers }: Pick<HttpRequest, "peer" | "headers">, proxies: readonly Network[]): string => {
  if (proxies.length === 0 || !isWithin(peer, proxies)) return peer;
  for (const hop of (headers["x-forwarded-for"] ?? "").split(",").reverse()) {
    const address = hopAddress(hop.trim());
    if (address === null) return peer;
    if (!isWithin(address, proxies)) return address;
  }
  return peer;
};

/** Rate limits count an IPv6 network of 64 bits as one caller. */
export const limitAddress = (ip: string): string => {
  if (!ip.includes(":") || !ipaddr.IPv6.isValid(ip)) return ip;
  return ipaddr.IPv6.parse(ip)
    .parts.slice(0, 4)
    .map((part) => part.toString(16))
    .join(":");
};

// A class, because it looks for the address on first use; run-handler.ts says why it is no literal with a getter.
class Facts implements RequestInfo {
  readonly requestId: string;
  readonly prefix: Prefix;
  readonly shape: ErrorShape;
  readonly shapeChosen: boolean;
  readonly traceparent: string | null;
  readonly userAgent: string | null;
  readonly #request: HttpRequest;
  readonly #proxies: readonly Network[];
  #ip: string | null = null;

  constructor(request: HttpRequest, prefix: Prefix, proxies: readonly Network[]) {
    const { headers } = request;
    const asked = headers["x-svc-error-shape"]?.toLowerCase();
    const chosen = asked === "a" || asked === "b";
    const given = headers["x-request-id"];
    this.requestId = given !== undefined && REQUEST_ID.test(given) ? given : newId("req");
    this.prefix = prefix;
    this.shape = chosen ? asked : prefix === "/v1" ? "b" : "a";
    this.shapeChosen = chosen;
    this.traceparent = readTraceparent(headers["traceparent"]);
    this.userAgent = headers["user-agent"] ?? null;
    this.#request = request;
    this.#proxies = proxies;
  }

  get headers(): HttpRequest["headers"] {
    return this.#request.headers;
  }

  get peer(): string {
    return this.#request.peer;
  }

  get ip(): string {
    this.#ip ??= callerAddress(this.#request, this.#proxies);
    return this.#ip;
  }
}

export const createRequestInfo =
  (proxies: readonly Network[]) =>
  (request: HttpRequest, prefix: Prefix): RequestInfo =>
    new Facts(request, prefix, proxies);
