// The composition root: creates the parts of a node, opens them in order and closes them in reverse. It contains no logic.
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { contract } from "../protocol/index.ts";
import type { AppSettings, NodeState } from "./app-settings.ts";
import { createBootstrap } from "./bootstrap.ts";
import { type Certificate, openCertificate } from "./certificate.ts";
import type { Config } from "./config.ts";
import type { Clock } from "./core/clock.ts";
import { createLifecycle, type Lifecycle } from "./core/lifecycle/lifecycle.ts";
import { createShutdown, type ShutdownOptions } from "./core/lifecycle/shutdown.ts";
import { createRelayServer } from "./edge/carrier/relay.ts";
import type { Edge, EdgeSource } from "./edge/listen.ts";
import { edgePages } from "./edge/pages.ts";
import type { ThisNode } from "./features/admin/index.ts";
import { loadAppCatalogue } from "./features/apps/index.ts";
import { createOperationTable, type Entry } from "./gateway/call/operation-table.ts";
import { SOCKET_LIMITS } from "./gateway/channel/settings.ts";
import { callInProcess } from "./gateway/http/in-process-request.ts";
import { limitAddress } from "./gateway/http/request-info.ts";
import { listenInternal } from "./gateway/internal.ts";
import { createTransports, type Transports } from "./gateway/transports.ts";
import { listen } from "./gateway/uws/listen.ts";
import { registerAgentSocket } from "./gateway/uws/socket.ts";
import { type Base, openBase } from "./node-base.ts";
import { openEdge, openEdgeCertificate } from "./open-edge.ts";
import { createDatabaseClock } from "./platform/database/database-clock.ts";
import { databaseError } from "./platform/database/db-errors.ts";
import { readStandbys, readUnsafeSettings } from "./platform/database/durability.ts";
import { duplicateError } from "./platform/database/unique-indexes.ts";
import { createIdempotency } from "./platform/idempotency.ts";
import { localIssuerDocuments } from "./platform/identity/jwt.ts";
import { createJobRunner, type Job } from "./platform/jobs.ts";
import { createSignatures } from "./platform/signature-memory.ts";
import type { Log } from "./platform/telemetry/log.ts";
import { foldFailures } from "./platform/telemetry/log-folding.ts";
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
  /** Connections of the edge, from the supervisor of several workers; it listens itself without this. */
  readonly edgeSource?: EdgeSource | undefined;
}

interface OpenDeps extends Required<Pick<AppDeps, "sharedPort" | "inherits">>, Pick<AppDeps, "edgeSource"> {
  readonly base: Base;
  readonly life: Lifecycle;
  readonly certificate: Certificate;
  readonly edgeCertificate: Certificate;
  readonly features: Features;
  readonly transports: Transports;
  readonly jobs: readonly Job[];
}

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
const openAll = async (deps: OpenDeps): Promise<Edge> => {
  const { base, life, certificate, features, transports, jobs, sharedPort, inherits } = deps;
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
  const runner = life.use("jobs", createJobRunner(base.settings.withoutJobs === true ? [] : jobs, { signal: life.signal, book: base.book, onError }));
  const onLate = (error: Error): void => log.warn({ error }, "the internal listener still waits for its port");
  const internalAt = { host: config.INTERNAL_HOST, port: config.INTERNAL_PORT, inherits, onLate };
  const internal = life.use(
    "internal listener",
    await listenInternal({ ...internalAt, routes: { ...transports.internal, relay: createRelayServer(base.carriers) } }),
  );
  const sockets: Parameters<typeof listen>[0]["sockets"] = (uws, upgraded) => registerAgentSocket(uws, transports.channel.transport, SOCKET_LIMITS, upgraded);
  const publicAt = { host: config.HOST, port: config.PORT, sharedPort, tls: certificate.files };
  const front = life.use("listener", await listen({ ...publicAt, transport: transports.http, sockets }));
  certificate.renewing(front.renew);
  const edge = await openEdge({ ...base, life, certificate: deps.edgeCertificate, features, transports, source: deps.edgeSource });
  const ports = { port: front.port, internalPort: internal.port, edgePort: edge.port, edgeHttpPort: edge.httpPort };
  Object.assign(state, { listeners: [front, internal, edge], ...ports } satisfies Partial<NodeState>);
  await transports.channel.start();
  await features.admin.open();
  life.use("node", features.admin);
  // Opened last, so closed first: the listener still sends the frames that direct agents to other nodes.
  life.use("agent sockets", transports.channel);
  // Their first runs take every place of background work, and on a busy machine what the start itself writes would find none in time.
  runner.start();
  return edge;
};

const openNode = async (config: Config, life: Lifecycle, { clock: own, log, settings = {}, sharedPort = false, inherits = false, edgeSource }: AppDeps) => {
  const clock = createDatabaseClock(own, log, settings.clockEveryMs);
  const certificate = await openCertificate(config, { clock, log, everyMs: settings.certificateEveryMs });
  if (certificate.files !== null) life.use("certificate", certificate);
  const edgeCertificate = await openEdgeCertificate(config, life, { clock, log, settings });
  const base = await openBase({
    config,
    life,
    clock,
    log,
    settings,
    liveNodes: () => features.admin.liveNodes(),
    carrierNodes: (key) => features.tunnels.nodesOf(key),
  });
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
    clockOffsetMs: clock.offsetMs,
    probe: (device, instanceId) => channel.probe(device, instanceId),
    loadCalls: () => transports.load,
    pages: edgePages,
    callInProcess: (call) => callInProcess(transports.http, call),
    nestedCalls: () => transports.nested,
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
    database: {
      pool: base.db.poolFigures,
      outbox: features.outbox.figures,
      standbys: () => readStandbys(base.db),
      unsafeSettings: () => readUnsafeSettings(base.db),
      clockOffsetMs: clock.offsetMs,
    },
    features: features.gauges,
    counters: features.metricCounters,
  });
  // After lost hints: find due commands, and write again which sockets are here.
  cluster.bus.onResync(() => {
    for (const made of [features.commands.sweep(), channel.resync()])
      void made.catch((error: unknown) => log.error({ error }, "could not catch up after lost hints"));
  });
  let edge: Edge | undefined;
  const shutdown = createShutdown({
    drain: () => {
      state.draining = true;
      edge?.leave();
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
      edge = await openAll({ base, life, certificate, edgeCertificate, features, transports, jobs, sharedPort, inherits, edgeSource });
      log.info({ nodeId, url: publicUrl(), internalPort: state.internalPort, version }, "the gateway is listening");
      log.info(...reachOf(config));
    },
    shutdown,
    publicUrl,
    nodeId,
    internalToken: base.internalToken,
    internalPort: () => state.internalPort,
    edgePort: () => state.edgePort,
    renewCertificate: async () => void (await Promise.all([certificate.check(), edgeCertificate.check()])),
    http: transports.http,
    channel,
    entries,
    jobs,
    db: base.db,
    features,
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
