// What callers read of tunnels, and what all their operations share.
import { randomBytes } from "node:crypto";
import type { contract, DeviceId, Tunnel } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { withActor, withActors } from "../../core/people/actors.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { createTunnelRecord, urlOf } from "./record.ts";
import { carriersOf, findTunnel, pageOfTunnels, type TunnelRow } from "./store.ts";
import { entryUrl, hashOf } from "./visits/gate.ts";
import type { Passes } from "./visits/passes.ts";

interface AppPort {
  readonly deviceId: string;
  readonly port: number;
}

export interface TunnelHandlersDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan" | "secretBox" | "enqueue"> {
  readonly domain: string;
  /** The ports of the edge for tunnels of TCP. */
  readonly tcpPorts: readonly number[];
  readonly edgeUrl: () => string;
  readonly passes: Passes;
  readonly knownDevices: (tx: Clients, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** The named port of an app on the device, or its first one. Null: there is no such app or port. */
  readonly portOf: (db: Clients, scope: SystemScope, appId: string, targetPort: number | undefined) => Promise<AppPort | null>;
  /** Tells this node and the others. */
  readonly changed: (tenantId: string) => void;
  /** Ends carriers that a former token opened, on all nodes. */
  readonly endConnectors: (tunnelId: string) => void;
}

export type TunnelHandlers = Handlers<typeof contract.tunnels>;
const TOKEN_BYTES = 32;
const HINT = 4;
/** Rows of carriers whose node has not told of them for longer do not count. */
export const FRESH_MS = 30_000;

export const unknownTunnel = (tunnelId: string): AppError => new AppError("TUNNEL_NOT_FOUND", { details: { tunnelId } });
export const aboutOf = ({ tunnelId, hostname, deviceId }: TunnelRow) => ({
  tunnelId: tunnelId as Tunnel["tunnelId"], // as: the column holds ids of tunnels
  hostname,
  ...(deviceId === null ? {} : { deviceId: deviceId as DeviceId }), // as: the column holds ids of devices
});
const requireOne = async (db: Clients, scope: SystemScope, tunnelId: string): Promise<TunnelRow> => {
  const row = await findTunnel(db, scope, tunnelId);
  if (row === null) throw unknownTunnel(tunnelId);
  return row;
};
export const createTokens = ({ secretBox }: Pick<TunnelHandlersDeps, "secretBox">) => ({
  make: (tenantId: string, tunnelId: string) => {
    const token = `mtt_${randomBytes(TOKEN_BYTES).toString("base64url")}`;
    return { tokenHash: hashOf(token), token: secretBox.seal(token, `tunnel-token|${tenantId}|${tunnelId}`), tokenHint: token.slice(-HINT) };
  },
  open: ({ token, tenantId, tunnelId }: TunnelRow): string => secretBox.open(token, `tunnel-token|${tenantId}|${tunnelId}`),
});

type Reads = Pick<TunnelHandlers, "listOfDevice" | "list" | "get" | "health" | "connections" | "enter" | "credentials">;
export const createTunnelReads = (deps: TunnelHandlersDeps): Reads => {
  const { db, clock, edgeUrl, passes, knownDevices } = deps;
  const toRecord = createTunnelRecord(edgeUrl);
  const tokens = createTokens(deps);
  const page = async (scope: SystemScope, query: Parameters<typeof pageOfTunnels>[2]) => {
    const { items, ...rest } = await pageOfTunnels(db, scope, query, toRecord);
    return { items: await withActors(db, scope, items), ...rest };
  };
  const carriers = ({ tunnelId, deviceId }: TunnelRow, scope: SystemScope) =>
    carriersOf(db, scope, [tunnelId, ...(deviceId === null ? [] : [deviceId])], new Date(clock.now().getTime() - FRESH_MS));
  return {
    list: ({ scope }, query) => page(scope, query),
    listOfDevice: async ({ scope }, query) => {
      const { deviceId } = query;
      if (!(await knownDevices(db, scope, [deviceId])).has(deviceId)) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
      return page(scope, query);
    },
    get: async ({ scope }, { tunnelId }) => withActor(db, scope, toRecord(await requireOne(db, scope, tunnelId))),
    health: async ({ scope }, { tunnelId }) => {
      const row = await requireOne(db, scope, tunnelId);
      const open = await carriers(row, scope);
      const state = open.length > 0 ? (row.failure === null ? "healthy" : "degraded") : row.health === "inactive" ? "inactive" : "down";
      return {
        tunnelId: row.tunnelId as Tunnel["tunnelId"], // as: the column holds ids of tunnels
        healthy: open.length > 0,
        state,
        service: row.serviceState as "unknown", // as: written by this feature alone
        lastSeen: (open[0]?.seenAt ?? row.lastSeenAt)?.toISOString() ?? null,
        connections: open.length,
      };
    },
    connections: async ({ scope }, { tunnelId }) => {
      const open = await carriers(await requireOne(db, scope, tunnelId), scope);
      return {
        items: open.map(({ carrierId, nodeId, openedAt, clientVersion, kind }) => ({
          id: carrierId,
          nodeId,
          openedAt: openedAt.toISOString(),
          clientVersion,
          kind: kind === "websocket" ? "websocket" : "raw",
        })),
      };
    },
    enter: async ({ scope }, { tunnelId, path }) => {
      const row = await requireOne(db, scope, tunnelId);
      const { principal } = scope;
      // A key comes again with each request and needs no cookie.
      const userId = principal.kind === "user" ? principal.userId : "";
      return { location: entryUrl(urlOf(row.hostname, edgeUrl()), passes.code(tunnelId, { userId }), path) };
    },
    credentials: async ({ scope }, { tunnelId }) => {
      const row = await requireOne(db, scope, tunnelId);
      return { tunnelId: row.tunnelId as Tunnel["tunnelId"], token: tokens.open(row), accountTag: scope.tenantId }; // as: the column holds ids of tunnels
    },
  };
};
