// Tunnels: a way from outside to a service of a device. The way of a visit:
//
// 1. visits/index.ts finds the tunnel of the host name, visits/gate.ts decides who may come in.
// 2. visits/forward.ts carries the request over a connection that visits/pool.ts opens on the carrier of the device or of a connector.
//    Tunnels of TCP have no host name: visits/ports.ts listens at a port of the edge for each, and decides by address alone.
// 3. standing.ts tells devices which tunnels they have, hears how they fare, and tells people.
import type { contract } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { Carriers } from "../../core/ports/carriers.ts";
import type { EdgeHandler, EdgePages } from "../../core/ports/edge.ts";
import type { CallInProcess } from "../../core/ports/in-process.ts";
import type { Memberships } from "../../core/ports/lookups.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FirstUse } from "../../platform/signature-memory.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createConnectors } from "./connectors.ts";
import { createTunnelHandlers } from "./handlers.ts";
import type { TunnelHandlersDeps } from "./reads.ts";
import { createTunnelStanding, type TunnelStanding } from "./standing.ts";
import { countTunnels, findByToken, findNamedTunnels, findTunnel, findTunnelByHostname, findTunnelOfApp, type TunnelRow, tunnelsWithPorts } from "./store.ts";
import { createTunnelUsage } from "./usage.ts";
import { hashOf } from "./visits/gate.ts";
import { createVisits, SETTINGS, type VisitsDeps } from "./visits/index.ts";
import { createVisitLimits } from "./visits/limits.ts";
import { createPasses } from "./visits/passes.ts";
import { createTunnelPorts, PORTS_JOB } from "./visits/ports.ts";

export interface TunnelsDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan" | "secretBox" | "enqueue">,
    Pick<TunnelHandlersDeps, "knownDevices" | "portOf" | "domain" | "tcpPorts" | "edgeUrl"> {
  readonly nodeId: string;
  /** Where other nodes reach this one. */
  readonly nodeUrl: () => string;
  readonly carriers: () => Carriers;
  readonly pages: EdgePages;
  readonly call: CallInProcess;
  readonly publicUrl: () => string;
  /** The address at which the edge listens. */
  readonly edgeHost: string;
  /** Runs this job of the node soon. */
  readonly wakeJob: (name: string) => void;
  readonly memberships: () => Memberships;
  readonly blocks: VisitsDeps["blocks"];
  /** A caller who is limited to some devices does not visit others. */
  readonly isVisible: (scope: SystemScope, deviceId: string) => Promise<boolean>;
  readonly tellNodes: (tenantId: string) => void;
  /** Whether a code is used for the first time, on whichever node. */
  readonly isFirstUse: FirstUse;
  readonly onError: (error: unknown) => void;
  readonly settings?: VisitsDeps["settings"];
}

export interface Tunnels extends Feature<typeof contract.tunnels> {
  /** Something of these tenants has changed, here or on another node. */
  readonly forget: (tenantIds: readonly string[]) => void;
  readonly ofDevice: Pick<TunnelStanding, "desired" | "report">;
  /** The tunnel whose token a connector brings. */
  readonly connectorOf: (token: string) => Promise<{ readonly key: string; readonly tenantId: string } | null>;
  /** Who serves a tunnel's visitors under another host name; null: it is gone. */
  readonly handlerOf: (tenantId: string, target: { readonly kind: string; readonly id: string }) => Promise<EdgeHandler | null>;
  /** The tunnel that a target stands for. */
  readonly targetOf: (db: Clients, scope: SystemScope, target: { readonly kind: string; readonly id: string }) => Promise<TunnelRow | null>;
  /** As the targets of bulk operations. */
  readonly named: typeof findNamedTunnels;
  /** The keys among these for which a carrier is open, on whichever node. */
  readonly connected: (scope: SystemScope, keys: readonly string[]) => Promise<ReadonlySet<string>>;
  /** The other nodes that hold a carrier of this key. */
  readonly nodesOf: (key: string) => Promise<readonly { readonly url: string }[]>;
  /** Follows the carriers of this node from now on. */
  readonly follow: () => void;
}

export const createTunnels = (deps: TunnelsDeps): Tunnels => {
  const { db, carriers, memberships, isVisible, isFirstUse, tellNodes, wakeJob } = deps;
  const passes = createPasses(deps);
  const isMember = async ({ tenantId, deviceId }: TunnelRow, userId: string): Promise<boolean> => {
    const member = await memberships().find(tenantId, userId);
    if (member === null || !member.permissions.has("tunnel:use")) return false;
    const { role, permissions, limits } = member;
    const scope: SystemScope = { tenantId: member.tenantId, principal: { kind: "user", userId, email: null, role, permissions, limits } };
    return deviceId === null ? limits.length === 0 : isVisible(scope, deviceId);
  };
  const dial = {
    dial: (...asked: Parameters<Carriers["dial"]>) => carriers().dial(...asked),
    has: (key: string) => carriers().has(key),
  };
  const useCode = (code: string): Promise<boolean> => isFirstUse({ agentId: "tunnels", signature: hashOf(code), place: "enter" });
  const usage = createTunnelUsage(deps);
  const limits = createVisitLimits(deps.clock);
  const ports = createTunnelPorts({
    ...deps,
    carriers: dial,
    use: usage.add,
    limits,
    host: deps.edgeHost,
    ports: deps.tcpPorts,
    find: () => tunnelsWithPorts(db),
    idleMs: deps.settings?.upgradedIdleMs ?? SETTINGS.upgradedIdleMs,
  });
  const visits = createVisits({
    ...deps,
    limits,
    use: usage.add,
    passes,
    isMember,
    useCode,
    carriers: dial,
    find: (hostname) => findTunnelByHostname(db, hostname),
  });
  const connectors = createConnectors({
    carriers,
    byToken: (tokenHash) => findByToken(db, tokenHash),
    byId: (tenantId, tunnelId) => findTunnel(db, { tenantId } as SystemScope, tunnelId), // as: of a carrier
    onError: deps.onError,
  });
  const forget = (tenantIds: readonly string[]): void => {
    visits.forget(tenantIds);
    wakeJob(PORTS_JOB);
    connectors.recheck(tenantIds);
  };
  const changed = (tenantId: string): void => {
    forget([tenantId]);
    tellNodes(tenantId);
  };
  const standing = createTunnelStanding({ ...deps, changed });
  const targetOf: Tunnels["targetOf"] = (clients, scope, { kind, id }) =>
    kind === "tunnel" ? findTunnel(clients, scope, id) : kind === "app" ? findTunnelOfApp(clients, scope, id) : Promise.resolve(null);
  return {
    handlers: createTunnelHandlers({ ...deps, passes, changed, endConnectors: (tunnelId) => carriers().end(tunnelId) }),
    // The device has read its tunnels, or will at its next report: the row says how they fare.
    outcomes: { sync: async () => undefined },
    jobs: [...standing.jobs, ...usage.jobs, ...ports.jobs],
    counters: { tunnels: countTunnels },
    edge: { hostOf: visits.hostOf, leave: ports.leave },
    ofDevice: standing,
    targetOf,
    named: findNamedTunnels,
    connected: standing.connected,
    nodesOf: standing.nodesOf,
    follow: () => carriers().listen(standing.listener),
    connectorOf: connectors.admit,
    forget,
    handlerOf: async (tenantId, target) => {
      const row = await targetOf(db, { tenantId } as SystemScope, target); // as: read from a row
      return row === null || row.protocol === "tcp" ? null : visits.handlerOf(row);
    },
  };
};
