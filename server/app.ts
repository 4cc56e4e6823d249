// The composition root: creates the parts of a node, opens them in order and closes them in reverse. It contains no logic.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { contract } from "../protocol/index.ts";
import type { AppSettings, NodeState } from "./app-settings.ts";
import { createBootstrap } from "./bootstrap.ts";
import { type Certificate, openCertificate } from "./certificate.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { type Config, publicUrlOf } from "./config.ts";
import type { Clock } from "./core/clock.ts";
import { newSecret } from "./core/ids.ts";
import { createLifecycle, type Lifecycle } from "./core/lifecycle/lifecycle.ts";
import { createShutdown, type ShutdownOptions } from "./core/lifecycle/shutdown.ts";
import type { OwnSpans, Tracing } from "./core/ports/trace.ts";
import type { ThisNode } from "./features/admin/index.ts";
import { loadAppCatalogue } from "./features/apps/index.ts";
import { createOperationTable, type Entry } from "./gateway/call/operation-table.ts";
import { createLimits, type Limits } from "./gateway/call/rate-limits.ts";
import { SOCKET_LIMITS } from "./gateway/channel/settings.ts";
import { limitAddress } from "./gateway/http/request-info.ts";
import { readStatic, type StaticFiles } from "./gateway/http/static.ts";
import { listenInternal } from "./gateway/internal.ts";
import { configuredLimits, createTransports, type Transports } from "./gateway/transports.ts";
import { listen } from "./gateway/uws/listen.ts";
import { registerAgentSocket } from "./gateway/uws/socket.ts";
import { keepInDataDir } from "./platform/data-dir.ts";
import { databaseError } from "./platform/database/db-errors.ts";
import { duplicateError } from "./platform/database/unique-indexes.ts";
import { createIdempotency } from "./platform/idempotency.ts";
import { localIssuerDocuments } from "./platform/identity/jwt.ts";
import { type Installation, openInstallation } from "./platform/installation.ts";
import { createJobBook, type Job, type JobBook, startJobs } from "./platform/jobs.ts";
import { createOwnListeners, type OwnListeners } from "./platform/outbound/own-listeners.ts";
import { createSignatures } from "./platform/signature-memory.ts";
import type { Log } from "./platform/telemetry/log.ts";
import { foldFailures } from "./platform/telemetry/log-folding.ts";
import { createMetrics, type Metrics } from "./platform/telemetry/metrics.ts";
import { openTraces } from "./platform/telemetry/trace-export.ts";
import { reachOf } from "./set-up.ts";
import { commit, packageFile, version } from "./version.ts";
import { type Features, lookupsOf, openFeatures } from "./wiring/index.ts";

export type { AppSettings } from "./app-settings.ts";

export interface AppDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly settings?: AppSettings;
  /** Other processes of this service listen on the same ports. */
  readonly sharedPort?: boolean;
  /** Takes the internal port over from a process that still holds it. */
  readonly inherits?: boolean;
}

interface Base extends Installation {
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  readonly settings: AppSettings;
  readonly nodeId: string;
  readonly state: NodeState;
  readonly publicUrl: () => string;
  readonly tracing: Tracing;
  readonly ownSpans: OwnSpans;
  readonly metrics: Metrics;
  readonly cluster: Cluster;
  readonly ownListeners: OwnListeners;
  readonly limits: Limits;
  readonly book: JobBook;
  readonly internalToken: string;
  readonly consoleFiles: StaticFiles | null | undefined;
}

interface OpenDeps extends Required<Pick<AppDeps, "sharedPort" | "inherits">> {
  readonly base: Base;
  readonly life: Lifecycle;
  readonly certificate: Certificate;
  readonly features: Features;
  readonly transports: Transports;
  readonly jobs: readonly Job[];
}

type BaseDeps = Pick<Base, "config" | "clock" | "log" | "settings"> & { readonly life: Lifecycle; readonly liveNodes: () => number };

const openBase = async (deps: BaseDeps): Promise<Base> => {
  const { config, life, clock, log, settings } = deps;
  const nodeId = config.NODE_ID ?? `node_${randomUUID().slice(0, 8)}`;
  const state: NodeState = { draining: false, listeners: [], port: config.PORT, internalPort: config.INTERNAL_PORT };
  const installation = await openInstallation(config, life, { clock, log });
  const metrics = createMetrics();
  const cluster = openCluster({ ...deps, nodeId, onNudge: metrics.channelMeters.nudged, settings: settings.cluster });
  const limits = createLimits({ limiter: cluster.limiter, configured: configuredLimits(config) });
  const internalToken = config.INTERNAL_TOKEN ?? (await keepInDataDir(config.DATA_DIR, "internal.token", newSecret));
  const publicUrl = (): string => publicUrlOf(config, state.port);
  const listening = () => [{ host: config.HOST, port: state.port }, { host: config.INTERNAL_HOST, port: state.internalPort }, ...installation.endpoints];
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
    nodeId,
    state,
    publicUrl,
    metrics,
    cluster,
    ownListeners,
    limits,
    book: createJobBook(clock),
    internalToken,
  };
};

const transportsOf = (base: Base, features: Features, entries: readonly Entry[], shutdown: () => void) => {
  const [{ db, secretBox, tokens, cluster }, { admin, devices }] = [base, features];
  const [idempotency, signatures] = [createIdempotency({ db, secretBox }), createSignatures(db, cluster.signatures)];
  const transports = createTransports({
    ...base,
    entries,
    build: { version, commit },
    cluster: { ...cluster, size: () => ({ connections: admin.connections(), liveNodes: admin.liveNodes() }) },
    lookups: lookupsOf(features),
    verifyToken: tokens.verify,
    issuerDocuments: tokens.local === undefined ? new Map() : localIssuerDocuments(tokens.local, base.publicUrl),
    sessions: features.agentSessions,
    presence: devices.presence,
    delivery: features.commands.delivery,
    transact: db.tx,
    audit: features.audit.trail,
    idempotency,
    signatures,
    blocks: features.security.blocks,
    watch: features.watch,
    databaseError,
    duplicateError,
    channel: base.settings.channel,
    shutdown,
  });
  return { transports, jobs: [...features.jobs, ...idempotency.jobs, ...signatures.jobs] };
};

/** Opens the node from the inside out: background work, then the listeners, then the agent channel. */
const openAll = async ({ base, life, certificate, features, transports, jobs, sharedPort, inherits }: OpenDeps): Promise<void> => {
  const { config, log, state, cluster } = base;
  life.use("outgoing calls", features.outbound);
  life.use("outbox", features.outbox);
  life.use("own spans", { close: features.traces.flush });
  await cluster.changes.open();
  life.use("change notifier", cluster.changes);
  await features.commands.remote.open();
  life.use("questions between nodes", features.commands.remote);
  life.use("sent commands", { close: features.commands.writeSent });
  life.use("security", await features.security.open());
  life.use("agent registry", { close: await features.devices.registry.listen() });
  const onError = (job: string, error: unknown): void => log.error({ job, error }, "job failed");
  life.use("jobs", startJobs(base.settings.withoutJobs === true ? [] : jobs, { signal: life.signal, book: base.book, onError }));
  const onLate = (error: Error): void => log.warn({ error }, "the internal listener still waits for its port");
  const internalAt = { host: config.INTERNAL_HOST, port: config.INTERNAL_PORT, inherits, onLate };
  const internal = life.use("internal listener", await listenInternal({ ...internalAt, routes: transports.internal }));
  const sockets: Parameters<typeof listen>[0]["sockets"] = (uws, upgraded) => registerAgentSocket(uws, transports.channel.transport, SOCKET_LIMITS, upgraded);
  const publicAt = { host: config.HOST, port: config.PORT, sharedPort, tls: certificate.files };
  const front = life.use("listener", await listen({ ...publicAt, transport: transports.http, sockets }));
  certificate.renewing(front.renew);
  Object.assign(state, { listeners: [front, internal], port: front.port, internalPort: internal.port } satisfies Partial<NodeState>);
  await transports.channel.start();
  await features.admin.open();
  life.use("node", features.admin);
  // Opened last, so closed first: the listener still sends the frames that direct agents to other nodes.
  life.use("agent sockets", transports.channel);
};

const openNode = async (config: Config, life: Lifecycle, { clock, log, settings = {}, sharedPort = false, inherits = false }: AppDeps) => {
  const certificate = await openCertificate(config, { clock, log, everyMs: settings.certificateEveryMs });
  if (certificate.files !== null) life.use("certificate", certificate);
  const base = await openBase({ config, life, clock, log, settings, liveNodes: () => features.admin.liveNodes() });
  const { nodeId, state, publicUrl, cluster } = base;
  const { keyId: sealingKey } = base.secretBox;
  const node: ThisNode = {
    report: () => {
      const { connections, ready, overloaded } = channel.stats;
      return {
        nodeId,
        address: publicUrl(),
        host: hostname(),
        pid: process.pid,
        version,
        draining: state.draining,
        overloaded,
        connections,
        ready,
        sealingKey,
      };
    },
    drain: () => void shutdown(),
  };
  const features = openFeatures(base, {
    ...base,
    node,
    probe: (device, instanceId) => channel.probe(device, instanceId),
    loadCalls: () => transports.load,
    addressKey: limitAddress,
    rateLimits: base.limits,
    changelog: await readFile(packageFile("CHANGELOG.md"), "utf8"),
    catalogue: settings.catalogue ?? loadAppCatalogue(packageFile("server/catalogue")),
  });
  const entries = createOperationTable(contract, features.all);
  const { transports, jobs } = transportsOf(base, features, entries, () => void shutdown());
  const { channel } = transports;
  base.metrics.watch({
    node: nodeId,
    channel: channel.stats,
    commands: features.commands.commandGauges,
    cluster: { bus: cluster.bus, ...cluster.stats },
    build: { version, commit },
    database: { pool: base.db.poolFigures, outbox: features.outbox.figures },
    features: features.gauges,
  });
  // After lost hints: find due commands, and write again which sockets are here.
  cluster.bus.onResync(() => {
    for (const made of [features.commands.sweep(), channel.resync()])
      void made.catch((error: unknown) => log.error({ error }, "could not catch up after lost hints"));
  });
  const shutdown = createShutdown({
    drain: () => {
      state.draining = true;
      channel.refuseUpgrades();
    },
    drainSockets: channel.drainSockets,
    endWaits: features.commands.endWaits,
    cluster: features.admin,
    listeners: () => state.listeners,
    noticeMs: config.LEAVE_NOTICE_SECONDS * 1_000,
    lingerMs: settings.lingerMs,
    log,
  });
  return {
    open: async (): Promise<void> => {
      await openAll({ base, life, certificate, features, transports, jobs, sharedPort, inherits });
      log.info({ nodeId, url: publicUrl(), internalPort: state.internalPort, version }, "the gateway is listening");
      log.info(...reachOf(config));
    },
    shutdown,
    publicUrl,
    nodeId,
    internalToken: base.internalToken,
    internalPort: () => state.internalPort,
    renewCertificate: certificate.check,
    http: transports.http,
    channel,
    entries,
    jobs,
    ...createBootstrap({ db: base.db, baseUrl: publicUrl, tokens: base.tokens, ...features }),
  };
};

export const createApp = async (config: Config, { log: everyLine, ...deps }: AppDeps) => {
  const log = foldFailures(everyLine);
  const life = createLifecycle({
    partTimeoutMs: config.SHUTDOWN_SECONDS * 1_000,
    onStep: (part, outcome, error) => (outcome === "closed" ? log.debug({ part }, "closed") : log.error({ part, outcome, error }, "did not close")),
  });
  const closeAndThrow = (error: unknown): Promise<never> => life.close().then(() => Promise.reject(error));
  const { open, shutdown, ...node } = await openNode(config, life, { log, ...deps }).catch(closeAndThrow);
  return {
    ...node,
    listen: () => open().catch(closeAndThrow),
    /** Drains, then closes what is open. */
    close: async (options?: ShutdownOptions) => {
      await shutdown(options);
      await life.close();
    },
    /** The order in which parts were opened; they close in reverse. */
    parts: () => life.names,
  };
};
export type App = Awaited<ReturnType<typeof createApp>>;
