// What the features are made of: the parts of the installation, those of a node that serves, and the kit that all features share.
import type { Config } from "../config.ts";
import type { ToLimit } from "../core/access.ts";
import type { Clock } from "../core/clock.ts";
import type { ManyEngine, ManySettings } from "../core/many/engine.ts";
import type { AttentionSource } from "../core/people/attention.ts";
import type { FindStuck } from "../core/people/stuck.ts";
import type { DuplicateProbe, Evictor } from "../core/ports/agent-sessions.ts";
import type { Carriers } from "../core/ports/carriers.ts";
import type { RegisteredOutcome } from "../core/ports/command-outcomes.ts";
import type { DeviceNotifier } from "../core/ports/delivery.ts";
import type { EdgePages } from "../core/ports/edge.ts";
import type { CallInProcess, NestedCalls } from "../core/ports/in-process.ts";
import type { LoadCalls } from "../core/ports/load-calls.ts";
import type { RateLimiter } from "../core/ports/rate-limiter.ts";
import type { OwnSpans, Tracing } from "../core/ports/trace.ts";
import type { AdminSettings, ThisNode } from "../features/admin/index.ts";
import type { AppCatalogue, AppLogSettings } from "../features/apps/index.ts";
import type { CommandSettings } from "../features/commands/index.ts";
import type { ExportSettings } from "../features/data-exports/index.ts";
import type { DeviceSettings } from "../features/devices/index.ts";
import type { GeneralDeps } from "../features/general/index.ts";
import type { ImportSettings } from "../features/imports/index.ts";
import type { FeatureKit } from "../features/kit.ts";
import type { MeshRoutesDeps } from "../features/mesh-routes/index.ts";
import type { CountedWatch } from "../features/security/index.ts";
import type { Counters } from "../features/tenants/index.ts";
import type { TunnelsDeps } from "../features/tunnels/index.ts";
import type { WebhooksDeps } from "../features/webhooks/index.ts";
import type { Bus } from "../platform/cluster/bus.ts";
import type { ChangeNotifier } from "../platform/cluster/change-notifier.ts";
import type { IdentityProvider } from "../platform/identity/identity-provider.ts";
import type { Installation } from "../platform/installation.ts";
import type { JobBook } from "../platform/jobs.ts";
import type { OutgoingMail } from "../platform/mail/mail.ts";
import type { OpenOutbound, OutboundSettings } from "../platform/outbound/outbound.ts";
import type { OwnListeners } from "../platform/outbound/own-listeners.ts";
import type { Outbox } from "../platform/outbox/outbox.ts";
import type { Log } from "../platform/telemetry/log.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";

/** The parts that the command line has, too. */
export interface InstallationDeps extends Installation {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  /** Known once the listener is open, so read it at each use. */
  readonly publicUrl: () => string;
  /** Likewise; undefined where nothing listens. */
  readonly edgeUrl?: () => string;
  /** For tests. */
  readonly settings?: {
    readonly admin?: Partial<AdminSettings>;
    /** Where this installation serves the repositories of backups, in place of the edge. */
    readonly repositoriesUrl?: () => string | null;
    readonly appLogs?: Partial<AppLogSettings>;
    readonly commands?: Partial<CommandSettings>;
    readonly dataExports?: Partial<ExportSettings>;
    readonly devices?: Partial<DeviceSettings>;
    readonly imports?: Partial<ImportSettings>;
    readonly many?: Partial<ManySettings>;
    readonly outbound?: Partial<OutboundSettings>;
    readonly meshRoutes?: MeshRoutesDeps["settings"];
    readonly tunnels?: TunnelsDeps["settings"];
    readonly webhooks?: WebhooksDeps["settings"];
  };
}

/** The parts that only a node that serves calls has. */
export interface ServingDeps {
  readonly node: ThisNode;
  readonly metrics: Metrics;
  /** This node's clock minus the database's. */
  readonly clockOffsetMs: () => number;
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
  readonly ownListeners: OwnListeners;
  readonly carriers: Carriers;
  /** The edge's pages for errors. */
  readonly pages: EdgePages;
  /** Where other nodes reach the internal listener of this one. */
  readonly nodeUrl: () => string;
  /** The URL at which agents and visitors reach the edge; known once it is open. */
  readonly edgeUrl: () => string;
  /** The transports' calls, which open later. */
  readonly callInProcess: CallInProcess;
  /** The calls that a request carries, which open later. */
  readonly nestedCalls: () => NestedCalls;
  readonly book: JobBook;
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
}

/** What each group of features is made of. Every feature gets only what it needs. */
export interface Wiring extends InstallationDeps {
  /** Read it where a feature is made or used: outside of a node that serves, a read throws. */
  readonly serving: ServingDeps;
  readonly kit: FeatureKit;
  readonly outbox: Outbox;
  readonly manyEngine: ManyEngine;
  readonly mails: OutgoingMail;
  readonly outbound: OpenOutbound;
  readonly watch: CountedWatch;
  /** Null without a provider, or if this gateway is not registered there. */
  readonly provider: IdentityProvider | null;
  /** The features fill these four when they are connected. */
  readonly counters: Counters;
  readonly outcomes: Map<string, RegisteredOutcome>;
  readonly stuck: FindStuck[];
  readonly attention: AttentionSource[];
  readonly toLimit: ToLimit;
  readonly socketUrl: () => string;
  /** False while hints between nodes get lost. */
  readonly hintsArrive: () => boolean;
  /** Logs an error of background work. */
  readonly failed: (what: string) => (error: unknown) => void;
}
