// Operations of an agent about itself: who it is, its configuration and its inventory.
import { createHash } from "node:crypto";
import { prettifyError } from "zod";
import {
  type AgentEvent,
  type AppId,
  CAPABILITIES,
  CARRIER_PATH,
  CONNECT_PATHS,
  contract,
  MESH_PATH,
  ReportedApp,
  SUBPROTOCOL,
} from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { AgentPrincipal, TenantScope } from "../../core/scope.ts";
import type { DeviceApps } from "../apps/index.ts";
import type { Devices } from "../devices/index.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import type { MeshRoutes } from "../mesh-routes/index.ts";
import type { Tunnels } from "../tunnels/index.ts";
import { createReleases } from "./releases.ts";

export interface AgentSettings {
  readonly heartbeatSeconds: number;
  readonly pollSeconds: number;
  readonly requestsPerMinute: number;
  readonly heartbeatsPerMinute: number;
  readonly maxOutputBytes: number;
  readonly releasesFolder?: string | undefined;
  /** The address at which agents reach this service, such as https://example.org; known once the listener is open. */
  readonly publicUrl: () => string;
  readonly edgeUrl: () => string;
}

export interface AgentDeps extends Pick<FeatureKit, "clock" | "emit"> {
  readonly devices: Pick<Devices, "find" | "describe">;
  readonly apps: () => DeviceApps;
  readonly tunnels: () => Tunnels["ofDevice"];
  readonly meshRoutes: () => MeshRoutes["ofDevice"];
  readonly settings: AgentSettings;
  readonly onError: (error: unknown) => void;
}

export interface AgentFeature extends Feature<typeof contract.agent> {
  /** The newest release of the channel. Null: there is none. "elsewhere": this gateway offers no releases at all. */
  readonly newestRelease: (channel: string) => Promise<string | null | "elsewhere">;
}

const socketUrl = (publicUrl: string): string => `${publicUrl.replace(/^http/, "ws").replace(/\/+$/, "")}${CONNECT_PATHS[0]}`;

const self = ({ principal }: TenantScope): AgentPrincipal => {
  if (principal.kind !== "agent") throw new AppError("FORBIDDEN", { details: { reason: "credential_kind" } });
  return principal;
};

/** Each app by itself: an agent whose word for one cannot be read still tells of the others. */
const sorted = (apps: readonly ({ readonly appId: AppId } | ReportedApp)[]) => {
  const read = apps.map((app) => ({ appId: app.appId, ...ReportedApp.safeParse(app) }));
  return {
    fitting: read.flatMap(({ data }) => data ?? []),
    unusable: read.flatMap(({ appId, error }) => (error === undefined ? [] : [{ appId, message: prettifyError(error).slice(0, MAX_MESSAGE) }])),
  };
};
const MAX_MESSAGE = 500;

const revoked = (): AppError => new AppError("FORBIDDEN", { details: { reason: "device_revoked" } });

export const createAgent = ({ clock, emit, devices, apps, tunnels, meshRoutes, settings, onError }: AgentDeps): AgentFeature => {
  const releases = createReleases({ folder: settings.releasesFolder, clock, onError });
  return {
    newestRelease: releases.newest,
    handlers: implement(contract.agent, {
      me: async ({ scope }) => {
        const { agentId, deviceId, deploymentId } = self(scope);
        const { requestsPerMinute, heartbeatsPerMinute, maxOutputBytes } = settings;
        return {
          agentId,
          deviceId,
          tenantId: scope.tenantId,
          deploymentId,
          serverTime: clock.now().toISOString(),
          limits: { requestsPerMinute, heartbeatsPerMinute, maxOutputBytes },
        };
      },
      config: async ({ scope }) => {
        const device = await devices.find(scope, self(scope).deviceId);
        if (device === undefined) throw revoked();
        const config = {
          heartbeatSeconds: settings.heartbeatSeconds,
          pollSeconds: settings.pollSeconds,
          socketUrl: socketUrl(settings.publicUrl()),
          subprotocol: SUBPROTOCOL,
          features: [...CAPABILITIES],
          maintenance: device.maintenance ?? { enabled: false, until: null },
          logLevel: "info" as const,
        };
        return { ...config, version: createHash("sha256").update(JSON.stringify(config)).digest("hex").slice(0, 16) };
      },
      desiredState: async ({ scope }) => {
        const { deviceId } = self(scope);
        const asked = [apps().desiredState(scope, deviceId), tunnels().desired(scope, deviceId), meshRoutes().desired(scope, deviceId)] as const;
        const [state, desired, routes] = await Promise.all(asked);
        const hash = createHash("sha256")
          .update(`${state.hash}${JSON.stringify([desired, routes])}`)
          .digest("hex")
          .slice(0, 32);
        return {
          ...state,
          hash,
          tunnels: desired,
          carrier: { url: `${settings.edgeUrl()}${CARRIER_PATH}` },
          mesh: { url: `${settings.edgeUrl()}${MESH_PATH}`, routes },
        };
      },
      reportState: async ({ scope }, { tunnels: reported, advertises, ...report }) => {
        const { deviceId } = self(scope);
        if (reported !== undefined) await tunnels().report(scope, deviceId, reported);
        const refused = advertises === undefined ? [] : await meshRoutes().advertise(scope, deviceId, advertises);
        const { fitting, unusable } = sorted(report.apps);
        return { ...(await apps().report(scope, deviceId, { ...report, apps: fitting, unread: unusable.map(({ appId }) => appId) })), unusable, refused };
      },
      sendLogs: async ({ scope }, { chunk }) => ({ watched: await apps().sendLogs(scope, self(scope).deviceId, chunk) }),
      reportEvents: ({ scope, commit }, { events }) =>
        commit(async (tx) => {
          const { deviceId } = self(scope);
          const toEvent = ({ timestamp, ...event }: AgentEvent) => ({ ...event, deviceId, timestamp: new Date(timestamp).toISOString() });
          const hidden = await apps().hide(
            tx,
            scope,
            deviceId,
            events.map(({ details }) => details),
          );
          await emit(
            tx,
            events.map((event, at) => happened(scope, contract.devices.events.reported, deviceId, toEvent({ ...event, details: hidden[at] ?? {} }))),
          );
          return { accepted: events.length };
        }),
      reportInventory: async ({ scope }, inventory) => {
        const { deviceId } = self(scope);
        const { hostname, platform, arch, osVersion, agentVersion, ipAddresses } = inventory;
        const updatedAt = await devices.describe(scope, { deviceId, machine: { hostname, platform, arch, osVersion, agentVersion }, inventory, ipAddresses });
        if (updatedAt === undefined) throw revoked();
        return { deviceId, updatedAt: updatedAt.toISOString() };
      },
      latestUpdate: async (_, machine) => (await releases.latest(machine)) ?? { release: null, signed: null },
      updatePackage: (_, { file }) => releases.readPackage(file),
    }),
  };
};
