// What tests change about a node: shorter periods, no background jobs, and a catalogue that they have read before.

import type { ClusterSettings } from "./cluster.ts";
import type { AdminSettings } from "./features/admin/index.ts";
import type { AppCatalogue, AppLogSettings } from "./features/apps/index.ts";
import type { CommandSettings } from "./features/commands/index.ts";
import type { WebhooksDeps } from "./features/webhooks/index.ts";
import type { ChannelSettings } from "./gateway/channel/settings.ts";
import type { Listener } from "./gateway/uws/listen.ts";
import type { OutboundSettings } from "./platform/outbound/outbound.ts";

export interface AppSettings {
  readonly cluster?: ClusterSettings;
  readonly commands?: Partial<CommandSettings>;
  readonly channel?: Partial<ChannelSettings>;
  readonly admin?: Partial<AdminSettings>;
  readonly catalogue?: AppCatalogue;
  readonly appLogs?: Partial<AppLogSettings>;
  readonly outbound?: Partial<OutboundSettings>;
  readonly webhooks?: WebhooksDeps["settings"];
  readonly lingerMs?: number;
  readonly withoutJobs?: true;
  readonly certificateEveryMs?: number;
  readonly consoleFolder?: string;
}

/** The state of one process, from its start to its end. */
export interface NodeState {
  draining: boolean;
  listeners: readonly Listener[];
  port: number;
  internalPort: number;
}
