// What the edge serves of tunnels: finds the tunnel of a host name in memory, lets its visitors in, and carries their requests.
import type { Duplex } from "node:stream";
import type { Clock } from "../../../core/clock.ts";
import type { Carriers } from "../../../core/ports/carriers.ts";
import { type EdgeHandler, type EdgePages, type EdgeRequest, type EdgeResponse, hasLeft } from "../../../core/ports/edge.ts";
import { createBoundedCache } from "../../../core/structures/bounded-cache.ts";
import { hostHeaderOf } from "../names.ts";
import type { TunnelRow } from "../store.ts";
import { countVisit, type TunnelUsage } from "../usage.ts";
import { createForward, type ForwardDeps, type Visit } from "./forward.ts";
import { cookieName, createGate, type Entrance, type VisitGateDeps } from "./gate.ts";
import type { VisitLimits } from "./limits.ts";
import { createPool, servedBy } from "./pool.ts";

export interface VisitsDeps extends VisitGateDeps {
  readonly clock: Clock;
  readonly carriers: Pick<Carriers, "dial" | "has">;
  readonly pages: EdgePages;
  /** In whichever tenant. */
  readonly find: (hostname: string) => Promise<TunnelRow | null>;
  /** Counts what passes. */
  readonly use: TunnelUsage["add"];
  readonly limits: VisitLimits;
  /** All names of tunnels end so. */
  readonly domain: string;
  readonly settings?: Partial<ForwardDeps["settings"]> | undefined;
}

interface Entry {
  readonly at: number;
  readonly tunnel: TunnelRow | null;
}

export const SETTINGS: ForwardDeps["settings"] = { answerMs: 100_000, idleMs: 100_000, upgradedIdleMs: 3_600_000 };
const MAX_ENTRIES = 10_000;
// Hints clear entries at once, and may get lost.
const KNOWN_MS = 30_000;
const UNKNOWN_MS = 5_000;

export const createVisits = ({ clock, carriers, pages, find, use, limits, domain, settings, ...deps }: VisitsDeps) => {
  const known = createBoundedCache<Entry>(MAX_ENTRIES);
  const pool = createPool(carriers);
  const gate = createGate({ clock, ...deps });
  const forward = createForward({ pool, ...pages, settings: { ...SETTINGS, ...settings } });

  const tunnelOf = (host: string): TunnelRow | null | Promise<TunnelRow | null> => {
    const found = known.get(host);
    if (found !== undefined && clock.elapsed() - found.at < (found.tunnel === null ? UNKNOWN_MS : KNOWN_MS)) return found.tunnel;
    return find(host).then((tunnel) => {
      known.set(host, { at: clock.elapsed(), tunnel });
      return tunnel;
    });
  };

  const visitOf = (tunnel: TunnelRow, request: EdgeRequest): Visit => {
    const host = tunnel.hostHeader === "service" ? hostHeaderOf(tunnel.service) : request.authority;
    const passed = countVisit(use, tunnel.tunnelId);
    const idleMs = tunnel.idleSeconds === null ? null : tunnel.idleSeconds * 1_000;
    return { ...servedBy(carriers, tunnel), request, host, cookie: cookieName(request.secure), idleMs, passed };
  };
  const redirect = (response: EdgeResponse, { location, cookie }: Extract<Entrance, { kind: "sent" }>): void => {
    response.writeHead(303, { Location: location, "Cache-Control": "no-store", ...(cookie === undefined ? {} : { "Set-Cookie": cookie }) });
    response.end();
  };

  const handlerOf = (tunnel: TunnelRow): EdgeHandler => ({
    handle: async (request, response) => {
      const admission = await gate(tunnel, request);
      if (admission.kind === "refused") return pages.refuse({ request, response }, admission.error);
      if (admission.kind === "sent") return redirect(response, admission);
      if (hasLeft(response)) return undefined;
      const full = limits.take(tunnel, request.ip, (done) => response.once("close", done));
      if (full !== null) return pages.refuse({ request, response }, full);
      return forward.send(visitOf(tunnel, request), response);
    },
    upgrade: async (request, socket: Duplex, head) => {
      const admission = await gate(tunnel, request);
      if (admission.kind !== "in") {
        const error = admission.kind === "refused" ? admission.error : { status: 401, code: "UNAUTHORIZED", message: "Sign in first." };
        return pages.refuseSocket({ request, socket }, error);
      }
      if (socket.destroyed) return undefined;
      const full = limits.take(tunnel, request.ip, (done) => socket.once("close", done));
      if (full !== null) return pages.refuseSocket({ request, socket }, full);
      return forward.upgrade(visitOf(tunnel, request), socket, head);
    },
  });

  return {
    handlerOf,
    hostOf: async (host: string): Promise<EdgeHandler | null> => {
      if (!host.endsWith(`.${domain}`)) return null;
      const tunnel = await tunnelOf(host);
      return tunnel === null || tunnel.protocol === "tcp" ? null : handlerOf(tunnel);
    },
    /** Something of these tenants has changed. */
    forget: (tenantIds: Iterable<string>): void => {
      const changed = new Set(tenantIds);
      for (const [host, { tunnel }] of known.entries()) {
        if (tunnel !== null && !changed.has(tunnel.tenantId)) continue;
        known.delete(host);
        if (tunnel !== null) pool.forget(tunnel.tunnelId);
      }
    },
  };
};
export type Visits = ReturnType<typeof createVisits>;
