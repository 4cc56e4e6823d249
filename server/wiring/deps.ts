// The parts of the installation and of this node that the features are made of.
import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import type { DuplicateProbe, Evictor } from "../core/ports/agent-sessions.ts";
import type { DeviceNotifier } from "../core/ports/delivery.ts";
import type { LoadCalls } from "../core/ports/load-calls.ts";
import type { RateLimiter } from "../core/ports/rate-limiter.ts";
import type { OwnSpans, Tracing } from "../core/ports/trace.ts";
import type { AdminSettings, ThisNode } from "../features/admin/index.ts";
import type { AppCatalogue, AppLogSettings } from "../features/apps/index.ts";
import type { CommandSettings } from "../features/commands/index.ts";
import type { GeneralDeps } from "../features/general/index.ts";
import type { WebhooksDeps } from "../features/webhooks/index.ts";
import type { Bus } from "../platform/cluster/bus.ts";
import type { ChangeNotifier } from "../platform/cluster/change-notifier.ts";
import type { Installation } from "../platform/installation.ts";
import type { JobBook } from "../platform/jobs.ts";
import type { OutboundSettings } from "../platform/outbound/outbound.ts";
import type { OwnListeners } from "../platform/outbound/own-listeners.ts";
import type { Log } from "../platform/telemetry/log.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";

export interface FeaturesDeps extends Installation {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
  readonly ownSpans: OwnSpans;
  readonly cluster: {
    readonly bus: Bus;
    readonly limiter: RateLimiter;
    readonly changes: ChangeNotifier;
    readonly notifier: DeviceNotifier & Evictor;
    /** The bus channel of one node. */
    channelOf(nodeId: string): string;
  };
  readonly nodeId: string;
  readonly node: ThisNode;
  readonly ownListeners: OwnListeners;
  readonly book: JobBook;
  /** Known once the listener is open, so read it at each use. */
  readonly publicUrl: () => string;
  /** Pings the sockets of all nodes, which open later. */
  readonly probe: DuplicateProbe;
  /** The calls of the transports, which open later. */
  readonly loadCalls: () => LoadCalls;
  /** The form of an address that rate limits count. */
  readonly addressKey: (ip: string) => string;
  readonly rateLimits: GeneralDeps["rateLimits"];
  readonly catalogue: AppCatalogue;
  /** The text of CHANGELOG.md. */
  readonly changelog: string;
  /** For tests. */
  readonly settings?: {
    readonly admin?: Partial<AdminSettings>;
    readonly appLogs?: Partial<AppLogSettings>;
    readonly commands?: Partial<CommandSettings>;
    readonly outbound?: Partial<OutboundSettings>;
    readonly webhooks?: WebhooksDeps["settings"];
  };
}
