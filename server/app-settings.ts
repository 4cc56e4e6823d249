// What tests change about a node: shorter periods, smaller caches, no background jobs, and a catalogue that they have read before.

import type { ClusterSettings } from "./cluster.ts";
import type { ManySettings } from "./core/many/engine.ts";
import type { CarriersDeps } from "./edge/carrier/carriers.ts";
import type { EdgeLimits } from "./edge/limits.ts";
import type { AdminSettings } from "./features/admin/index.ts";
import type { AppCatalogue, AppLogSettings } from "./features/apps/index.ts";
import type { CommandSettings } from "./features/commands/index.ts";
import type { ExportSettings } from "./features/data-exports/index.ts";
import type { DeviceSettings } from "./features/devices/index.ts";
import type { ImportSettings } from "./features/imports/index.ts";
import type { MeshRoutesDeps } from "./features/mesh-routes/index.ts";
import type { TunnelsDeps } from "./features/tunnels/index.ts";
import type { WebhooksDeps } from "./features/webhooks/index.ts";
import type { ChannelSettings } from "./gateway/channel/settings.ts";
import type { Listener } from "./gateway/uws/listen.ts";
import type { OutboundSettings } from "./platform/outbound/outbound.ts";

export interface AppSettings {
  readonly cluster?: ClusterSettings;
  readonly commands?: Partial<CommandSettings>;
  readonly channel?: Partial<ChannelSettings>;
  readonly dataExports?: Partial<ExportSettings>;
  readonly devices?: Partial<DeviceSettings>;
  readonly imports?: Partial<ImportSettings>;
  readonly many?: Partial<ManySettings>;
  readonly admin?: Partial<AdminSettings>;
  readonly catalogue?: AppCatalogue;
  readonly appLogs?: Partial<AppLogSettings>;
  readonly outbound?: Partial<OutboundSettings>;
  readonly meshRoutes?: MeshRoutesDeps["settings"];
  readonly tunnels?: TunnelsDeps["settings"];
  readonly webhooks?: WebhooksDeps["settings"];
  readonly lingerMs?: number;
  readonly withoutJobs?: true;
  readonly certificateEveryMs?: number;
  /** Null: nobody compares the clock, which a test moves. */
  readonly clockEveryMs?: number | null;
  readonly consoleFolder?: string;
  readonly agentFolder?: string;
  readonly edge?: Partial<EdgeLimits>;
  readonly carriers?: CarriersDeps["settings"];
}

/** The state of one process, from its start to its end. */
export interface NodeState {
  draining: boolean;
  listeners: readonly Listener[];
  port: number;
  internalPort: number;
  edgePort: number;
  edgeHttpPort: number | null;
}
