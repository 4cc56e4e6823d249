// The operations that change tunnels.
import { contract, type DeviceId, type Tunnel, type TunnelLimits } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { orderOf } from "../../core/ports/command-outcomes.ts";
import { given } from "../../core/rows/records.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import { badService, judgeAllow, judgeService, judgeTcpAccess, judgeTunnelHostname, randomHostname, type Service } from "./names.ts";
import { aboutOf, createTokens, createTunnelReads, type TunnelHandlers, type TunnelHandlersDeps, unknownTunnel } from "./reads.ts";
import { createTunnelRecord } from "./record.ts";
import { changeTunnel, deleteTunnel, findTunnelByHostname, insertTunnel, lockTunnel, type TunnelPatch, type TunnelRow, takeFreePort } from "./store.ts";

const { events, commands } = contract.tunnels;
const requireLocked = async (tx: Tx, scope: SystemScope, tunnelId: string): Promise<TunnelRow> => {
  const row = await lockTunnel(tx, scope, tunnelId);
  if (row === null) throw unknownTunnel(tunnelId);
  return row;
};
const mayPublish = ({ principal }: TenantScope): boolean => principal.kind !== "agent" && principal.permissions.has("tunnel:publish");
const checkPublish = (scope: TenantScope, mode: string): void => {
  if (mode === "public" && !mayPublish(scope)) throw new AppError("FORBIDDEN", { details: { requiredPermission: "tunnel:publish" } });
};

interface Wanted {
  readonly name?: string | undefined;
  readonly hostname?: string | undefined;
  readonly access?: { readonly mode: "private" | "token" | "public"; readonly allow: readonly string[] } | undefined;
  readonly hostHeader?: "preserve" | "service" | undefined;
  readonly limits?: TunnelLimits | undefined;
  readonly expiresAt?: string | null | undefined;
}

/** The columns of the limits. */
const limitsOf = ({ requestsPerMinute = null, connections = null, idleSeconds = null }: Partial<TunnelLimits> = {}) => ({
  requestsPerMinute,
  maxConnections: connections,
  idleSeconds,
});

interface Change extends Wanted {
  readonly service?: string | undefined;
  readonly status?: "active" | "stopped" | undefined;
}

/** A port of the edge, where visitors cannot name a host. */
const portFor = async (tx: Tx, { protocol }: Service, tcpPorts: readonly number[]): Promise<number | null> => {
  if (protocol !== "tcp") return null;
  if (tcpPorts.length === 0) throw badService("tcp_not_offered", { setting: "TUNNEL_TCP_PORTS" });
  const port = await takeFreePort(tx, tcpPorts);
  if (port === null) throw badService("tcp_ports_taken");
  return port;
};

/** The columns that a field of the change replaces. */
const settingsOf = ({ name, access, hostHeader, limits, expiresAt }: Wanted): TunnelPatch => ({
  ...given({ name, hostHeader }),
  ...(access === undefined ? {} : { accessMode: access.mode, allow: judgeAllow(access.allow) }),
  ...(limits === undefined ? {} : limitsOf(limits)),
  ...(expiresAt === undefined ? {} : { expiresAt: expiresAt === null ? null : new Date(expiresAt) }),
});
const statusOf = (row: TunnelRow, status: "active" | "stopped" | undefined): TunnelPatch => {
  if (status === "stopped") return { status: "stopped", health: "inactive" };
  return status === "active" && row.status === "stopped" ? { status: "pending", failure: null } : {};
};

export const createTunnelHandlers = (deps: TunnelHandlersDeps): TunnelHandlers => {
  const { emit, plan, enqueue, domain, tcpPorts, edgeUrl, knownDevices, portOf, changed, endConnectors } = deps;
  const toRecord = createTunnelRecord(edgeUrl);
  const tokens = createTokens(deps);

  /** The device reads its tunnels again. */
  const tellDevice = async (tx: Tx, scope: TenantScope, deviceId: string | null): Promise<() => void> => {
    if (deviceId === null) return () => undefined;
    const { notify } = await enqueue(tx, scope, [
      orderOf(commands.sync, { deviceId: deviceId as DeviceId, key: newId("cmd"), orderedBy: actorOf(scope.principal), payload: {} }), // as: of a row, or known
    ]);
    return notify;
  };
  const hostnameOf = async (tx: Tx, scope: TenantScope, given: string | undefined, name: string): Promise<string> => {
    if (given === undefined) return randomHostname(name, domain);
    const hostname = judgeTunnelHostname(given, { domain, slug: scope.tenant.slug });
    if ((await findTunnelByHostname(tx, hostname)) !== null) throw new AppError("TUNNEL_HOSTNAME_TAKEN", { details: { hostname } });
    return hostname;
  };

  const insert = async (
    tx: Tx,
    scope: TenantScope,
    target: Service & { readonly deviceId: string | null; readonly appId: string | null },
    { name = "app", hostname, access = { mode: "private", allow: [] }, hostHeader = "preserve", limits, expiresAt = null }: Wanted,
  ): Promise<TunnelRow> => {
    checkPublish(scope, access.mode);
    await plan.require(tx, scope, "tunnels", 1);
    const tunnelId = newId("tun");
    const allow = judgeAllow(access.allow);
    judgeTcpAccess({ ...target, accessMode: access.mode, allow });
    const row = await insertTunnel(tx, scope, {
      tunnelId,
      ...target,
      port: await portFor(tx, target, tcpPorts),
      name,
      hostname: await hostnameOf(tx, scope, hostname, name),
      accessMode: access.mode,
      allow,
      hostHeader,
      ...limitsOf(limits),
      ...tokens.make(scope.tenantId, tunnelId),
      expiresAt: expiresAt === null ? null : new Date(expiresAt),
      createdBy: actorOf(scope.principal),
    });
    await emit(tx, [happened(scope, events.created, tunnelId, aboutOf(row))]);
    if (access.mode === "public") await emit(tx, [happened(scope, events.published, tunnelId, aboutOf(row))]);
    return row;
  };

  const serviceOf = async (
    tx: Tx,
    scope: SystemScope,
    {
      deviceId,
      service,
      targetPort,
      protocol,
      appId,
    }: { deviceId: string; service?: string | undefined; targetPort?: number | undefined; protocol: string; appId?: string | undefined },
  ): Promise<Service> => {
    if (service !== undefined) return judgeService(service);
    if (appId !== undefined) {
      const found = await portOf(tx, scope, appId, targetPort);
      if (found === null || found.deviceId !== deviceId) throw new AppError("APP_NOT_FOUND", { details: { appId } });
      return judgeService(`${protocol}://127.0.0.1:${found.port}`);
    }
    if (targetPort !== undefined) return judgeService(`${protocol}://127.0.0.1:${targetPort}`);
    throw new AppError("TUNNEL_TARGET_REQUIRED", { details: { fields: ["service", "targetPort", "appId"] } });
  };

  const patchOf = async (tx: Tx, scope: TenantScope, row: TunnelRow, input: Change): Promise<TunnelPatch> => {
    const { hostname, access, service, status } = input;
    if (access !== undefined) checkPublish(scope, access.mode);
    const target = service === undefined ? null : judgeService(service);
    // Visitors of one find the other in another way.
    if (target !== null && (target.protocol === "tcp") !== (row.protocol === "tcp")) throw badService("protocol", { from: row.protocol, to: target.protocol });
    const moves = hostname !== undefined && judgeTunnelHostname(hostname, { domain, slug: scope.tenant.slug }) !== row.hostname;
    const settings = settingsOf(input);
    judgeTcpAccess({ ...row, ...settings });
    return {
      ...settings,
      ...(moves ? { hostname: await hostnameOf(tx, scope, hostname, row.name) } : {}),
      ...(target === null ? {} : { ...target, failure: null, serviceState: "unknown" }),
      ...statusOf(row, status),
    };
  };

  return implement(contract.tunnels, {
    ...createTunnelReads(deps),
    create: ({ scope, commit }, input) =>
      commit(async (tx, afterwards) => {
        const { deviceId, appId = null } = input;
        if (!(await knownDevices(tx, scope, [deviceId])).has(deviceId)) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
        const row = await insert(tx, scope, { ...(await serviceOf(tx, scope, input)), deviceId, appId }, input);
        const notify = await tellDevice(tx, scope, deviceId);
        afterwards(() => {
          notify();
          changed(scope.tenantId);
        });
        return toRecord(row);
      }),
    createGlobal: ({ scope, commit }, { name, config: { service = "http://127.0.0.1:80", ...wanted } }) =>
      commit(async (tx, afterwards) => {
        const row = await insert(tx, scope, { ...judgeService(service), deviceId: null, appId: null }, { ...wanted, name });
        afterwards(() => changed(scope.tenantId));
        return toRecord(row);
      }),
    update: ({ scope, commit }, { tunnelId, version, ...input }) =>
      commit(async (tx, afterwards) => {
        const before = await requireLocked(tx, scope, tunnelId);
        if (version !== undefined && version !== before.version) throw new AppError("VERSION_CONFLICT", { details: { currentVersion: before.version } });
        const row = await changeTunnel(tx, scope, { tunnelId }, await patchOf(tx, scope, before, input));
        if (row === null) throw unknownTunnel(tunnelId);
        if (row.status === "stopped" && before.status !== "stopped") await emit(tx, [happened(scope, events.stopped, tunnelId, aboutOf(row))]);
        if (row.accessMode === "public" && before.accessMode !== "public") await emit(tx, [happened(scope, events.published, tunnelId, aboutOf(row))]);
        const isForDevice = row.service !== before.service || row.status !== before.status;
        const notify = isForDevice ? await tellDevice(tx, scope, row.deviceId) : () => undefined;
        afterwards(() => {
          notify();
          changed(scope.tenantId);
        });
        return toRecord(row);
      }),
    remove: ({ scope, commit }, { tunnelId }) =>
      commit(async (tx, afterwards) => {
        const row = await requireLocked(tx, scope, tunnelId);
        await deleteTunnel(tx, scope, tunnelId);
        await emit(tx, [happened(scope, events.deleted, tunnelId, aboutOf(row))]);
        const notify = await tellDevice(tx, scope, row.deviceId);
        afterwards(() => {
          notify();
          changed(scope.tenantId);
          endConnectors(tunnelId);
        });
        return null;
      }),
    rotateCredentials: ({ scope, commit }, { tunnelId }) =>
      commit(async (tx, afterwards) => {
        await requireLocked(tx, scope, tunnelId);
        const row = await changeTunnel(tx, scope, { tunnelId }, tokens.make(scope.tenantId, tunnelId));
        if (row === null) throw unknownTunnel(tunnelId);
        await emit(tx, [happened(scope, events.rotated, tunnelId, aboutOf(row))]);
        afterwards(() => {
          changed(scope.tenantId);
          endConnectors(tunnelId);
        });
        return { tunnelId: row.tunnelId as Tunnel["tunnelId"], token: tokens.open(row), accountTag: scope.tenantId }; // as: the column holds ids of tunnels
      }),
  });
};
