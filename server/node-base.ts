// What a node stands on before its features exist: the installation, the cluster, its limits, its carriers, and what it says of itself.
import { randomUUID } from "node:crypto";
import type { AppSettings, NodeState } from "./app-settings.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { type Config, edgeUrlOf, publicUrlOf } from "./config.ts";
import { newSecret } from "./core/ids.ts";
import type { Lifecycle } from "./core/lifecycle/lifecycle.ts";
import type { OwnSpans, Tracing } from "./core/ports/trace.ts";
import { createCarriers, type OwnCarriers } from "./edge/carrier/carriers.ts";
import { type RelayTarget, relayTo } from "./edge/carrier/relay.ts";
import { createLimits, type Limits } from "./gateway/call/rate-limits.ts";
import { readStatic, type StaticFiles } from "./gateway/http/static.ts";
import { configuredLimits } from "./gateway/transports.ts";
import { edgePortsOf, listeningOf } from "./open-edge.ts";
import { keepInDataDir } from "./platform/data-dir.ts";
import type { DatabaseClock } from "./platform/database/database-clock.ts";
import { warnOfUnsafeSettings } from "./platform/database/durability.ts";
import { type Installation, openInstallation } from "./platform/installation.ts";
import { createJobBook, type JobBook } from "./platform/jobs.ts";
import { createOwnListeners, type OwnListeners } from "./platform/outbound/own-listeners.ts";
import type { Log } from "./platform/telemetry/log.ts";
import { createMetrics, type Metrics } from "./platform/telemetry/metrics.ts";
import { openTraces } from "./platform/telemetry/trace-export.ts";
import { packageFile, version } from "./version.ts";

const isUnspecified = (host: string): boolean => host === "0.0.0.0" || host === "::";

export interface Base extends Installation {
  readonly clock: DatabaseClock;
  readonly config: Config;
  readonly log: Log;
  readonly settings: AppSettings;
  readonly nodeId: string;
  readonly state: NodeState;
  readonly publicUrl: () => string;
  /** Known once the edge is open, so read it at each use. */
  readonly edgeUrl: () => string;
  readonly carriers: OwnCarriers;
  /** Where other nodes reach the internal listener of this one. */
  readonly nodeUrl: () => string;
  readonly tracing: Tracing;
  readonly ownSpans: OwnSpans;
  readonly metrics: Metrics;
  readonly cluster: Cluster;
  readonly ownListeners: OwnListeners;
  readonly limits: Limits;
  readonly book: JobBook;
  readonly internalToken: string;
  readonly agentFolder: string;
  readonly consoleFiles: StaticFiles | null | undefined;
}

type BaseDeps = Pick<Base, "config" | "clock" | "log" | "settings"> & {
  readonly life: Lifecycle;
  readonly liveNodes: () => number;
  readonly carrierNodes: (key: string) => Promise<readonly RelayTarget[]>;
};

export const openBase = async (deps: BaseDeps): Promise<Base> => {
  const { config, life, clock, log, settings } = deps;
  const nodeId = config.NODE_ID ?? `node_${randomUUID().slice(0, 8)}`;
  const state: NodeState = { draining: false, listeners: [], port: config.PORT, internalPort: config.INTERNAL_PORT, ...edgePortsOf(config) };
  const installation = await openInstallation(config, life, { clock, log });
  life.use("the database's clock", await clock.follow(installation.db));
  await warnOfUnsafeSettings(installation.db, log);
  const metrics = createMetrics();
  const cluster = openCluster({ ...deps, nodeId, onNudge: metrics.channelMeters.nudged, settings: settings.cluster });
  const limits = createLimits({ limiter: cluster.limiter, configured: configuredLimits(config) });
  const internalToken = config.INTERNAL_TOKEN ?? (await keepInDataDir(config.DATA_DIR, "internal.token", newSecret));
  const publicUrl = (): string => publicUrlOf(config, state.port);
  const listening = () => [...listeningOf(config, state), ...installation.endpoints];
  const ownListeners = createOwnListeners({ endpoints: listening });
  const collector = { endpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT, isOwn: ownListeners.isOwn };
  const traces = await openTraces({ ...collector, service: { version, nodeId }, life, log });
  const consoleFiles = config.CONSOLE === "on" ? await readStatic(settings.consoleFolder ?? packageFile("dist/portal")) : undefined;
  if (consoleFiles === null) log.warn({}, "the console is not built; the gateway serves without it");
  return {
    ...deps,
    ...installation,
    ...traces,
    consoleFiles,
    agentFolder: settings.agentFolder ?? packageFile("dist/agent"),
    nodeId,
    state,
    publicUrl,
    edgeUrl: () => edgeUrlOf(config, { publicUrl: publicUrl(), edgePort: state.edgePort }),
    carriers: createCarriers({
      settings: settings.carriers,
      elsewhere: async (key, authority, options) => {
        const [target] = await deps.carrierNodes(key);
        return target === undefined ? null : relayTo({ target, token: internalToken, key, authority, options });
      },
    }),
    nodeUrl: () => config.NODE_URL ?? `http://${isUnspecified(config.INTERNAL_HOST) ? "127.0.0.1" : config.INTERNAL_HOST}:${state.internalPort}`,
    metrics,
    cluster,
    ownListeners,
    limits,
    book: createJobBook(clock),
    internalToken,
  };
};
