// The transports of a node: REST, tRPC and documents over HTTP, the agent socket, and the operator's routes. Builds them over the features' lookups
// and opens nothing.
import { LIMITS } from "../../protocol/index.ts";
import type { Config } from "../config.ts";
import { describeConfig } from "../config-table.ts";
import type { Clock } from "../core/clock.ts";
import type { AppError } from "../core/errors.ts";
import type { AgentRegistry } from "../core/ports/agent-registry.ts";
import type { AgentSessions, SessionOwners, SocketPresence } from "../core/ports/agent-sessions.ts";
import type { AuditTrail } from "../core/ports/audit.ts";
import type { CommandDelivery } from "../core/ports/delivery.ts";
import type { IdempotencyStore } from "../core/ports/idempotency.ts";
import type { NestedCalls } from "../core/ports/in-process.ts";
import type { LoadCalls } from "../core/ports/load-calls.ts";
import type { ApiKeyLookup, ImpersonationLookup, Memberships, SessionLookup, StreamTickets, TenantLookup } from "../core/ports/lookups.ts";
import type { PubSub } from "../core/ports/pub-sub.ts";
import type { RateLimiter } from "../core/ports/rate-limiter.ts";
import type { Blocks, SecurityWatch } from "../core/ports/security.ts";
import type { Tracing } from "../core/ports/trace.ts";
import type { HoldVersion } from "../core/rows/row-versions.ts";
import type { Overrides } from "../core/scope.ts";
import { createAgentAuth, createAgentRecheck } from "./auth/agent.ts";
import { createAuthenticate, createReauthenticate, createRecheck, createRedeem, createScope, type IdentityDeps } from "./auth/identity.ts";
import { createImpersonationAuth } from "./auth/impersonation.ts";
import { createSessionAuth } from "./auth/session.ts";
import type { CallLogDeps } from "./call/call-log.ts";
import type { CallRecord } from "./call/call-record.ts";
import { createLoadCalls } from "./call/load-calls.ts";
import { createNestedCalls } from "./call/nested-calls.ts";
import type { Entry } from "./call/operation-table.ts";
import { createPipeline, type PipelineDeps } from "./call/pipeline.ts";
import { guardFailures, type Limits } from "./call/rate-limits.ts";
import type { Transact } from "./call/run-handler.ts";
import { createReplayGuard, type ReplayDeps } from "./call/signature-replay.ts";
import { type AgentChannel, type AgentChannelDeps, createAgentChannel } from "./channel/agent-channel.ts";
import { type CarrierAdmission, createCarrierAdmission } from "./channel/carrier-admission.ts";
import { type ChannelSettings, channelSettings, OVERLOAD_LIMITS } from "./channel/settings.ts";
import { createAgentInstall } from "./http/agent-install.ts";
import { createDocs } from "./http/docs.ts";
import { createHttpTransport, type HttpTransportDeps } from "./http/http-transport.ts";
import type { HttpTransport } from "./http/request-context.ts";
import { createRequestInfo, type Prefix, parseNetworks } from "./http/request-info.ts";
import { createStatic, type StaticFiles } from "./http/static.ts";
import type { InternalRoutes } from "./internal.ts";
import { createOpenApi } from "./openapi/document.ts";
import { createRest } from "./rest/rest.ts";
import { createTrpc } from "./trpc/trpc.ts";

const CALL_TIMEOUT_MS = 30_000;
const FAILED_AUTH_PER_MINUTE = 20;

export interface TransportsDeps {
  readonly config: Config;
  readonly entries: readonly Entry[];
  readonly limits: Limits;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly log: CallLogDeps["log"] & AgentChannelDeps["log"];
  readonly tracing: Tracing | null;
  readonly build: { readonly version: string; readonly commit: string };
  /** Known once the listener is open, so read it at each use. */
  readonly publicUrl: () => string;
  readonly cluster: {
    readonly bus: PubSub;
    readonly owners: SessionOwners;
    readonly limiter: RateLimiter;
    readonly notifier: AgentChannelDeps["notifier"];
    /** The size of the whole installation. */
    size(): { readonly connections: number; readonly liveNodes: number };
  };
  /** The features' lookups for authentication and for the agent socket. */
  readonly lookups: {
    readonly agents: AgentRegistry & AgentChannelDeps["agents"];
    readonly apiKeys: ApiKeyLookup;
    readonly tenants: TenantLookup;
    readonly memberships: Memberships;
    readonly isVisible: PipelineDeps["isVisible"];
    readonly sessions: SessionLookup;
    readonly tickets: StreamTickets;
    readonly impersonations: ImpersonationLookup;
    readonly defaultTenantOf: (userId: string) => Promise<string | null>;
  };
  readonly verifyToken: IdentityDeps["verifyToken"];
  readonly issuerDocuments: HttpTransportDeps["issuerDocuments"];
  readonly sessions: AgentSessions;
  readonly presence: SocketPresence;
  readonly delivery: CommandDelivery;
  readonly transact: Transact;
  readonly audit: AuditTrail;
  readonly holdVersion: HoldVersion;
  readonly blocks: Blocks;
  readonly watch: SecurityWatch;
  readonly idempotency: IdempotencyStore;
  readonly signatures: Omit<ReplayDeps, "clock"> & { readonly memory: AgentChannelDeps["signatures"] };
  readonly databaseError: (error: unknown) => AppError | null;
  readonly duplicateError: PipelineDeps["duplicateError"];
  readonly metrics: InternalRoutes["metrics"] & { call(record: CallRecord): void; readonly channelMeters: NonNullable<AgentChannelDeps["meters"]> };
  /** The background jobs of this node. */
  readonly book: { jobs(): readonly { readonly name: string }[]; wake(name: string): void };
  readonly internalToken: string;
  /** What the build makes of the agent, for machines that become devices. */
  readonly agentFolder: string;
  /** Undefined with the console off, null while it is not built. */
  readonly consoleFiles: StaticFiles | null | undefined;
  readonly channel?: Partial<ChannelSettings> | undefined;
  /** Changes once, when the node begins to drain. */
  readonly state: { readonly draining: boolean };
  /** An operator drains this node. */
  readonly shutdown: () => void;
}

export interface Transports {
  readonly http: HttpTransport;
  readonly internal: InternalRoutes;
  readonly channel: AgentChannel;
  readonly load: LoadCalls;
  readonly nested: NestedCalls;
  readonly carrier: CarrierAdmission;
}

/** The settings RATE_LIMIT_*, by the buckets whose limits they replace. */
export const configuredLimits = (config: Config): Overrides => {
  const given: Record<string, number | null | undefined> = {
    standard: config.RATE_LIMIT_STANDARD,
    reads: config.RATE_LIMIT_READS,
    tenant: config.RATE_LIMIT_TENANT,
    ...Object.fromEntries(["agent", "inventory", "logs", "events", "traces"].map((name) => [name, config.RATE_LIMIT_AGENT])),
    "app.logs": config.RATE_LIMIT_STANDARD,
    heartbeat: config.RATE_LIMIT_HEARTBEAT,
    anonymous: config.RATE_LIMIT_ANONYMOUS,
    "webhook.test": config.RATE_LIMIT_WEBHOOK_TESTS,
    "invite.token.ip": config.RATE_LIMIT_INVITES,
  };
  for (const { name } of Object.values(LIMITS).flat()) if (name.startsWith("pairing.")) given[name] = config.RATE_LIMIT_PAIRING;
  return Object.fromEntries(Object.entries(given).filter((entry): entry is [string, number | null] => entry[1] !== undefined));
};

type InfoOf = ReturnType<typeof createRequestInfo>;

/** Where portals are that may make changes with a session's cookie. */
const portalOrigins = ({ CORS_ORIGINS, PORTAL_URL }: Config): readonly string[] => [
  ...CORS_ORIGINS,
  ...(PORTAL_URL === undefined ? [] : [new URL(PORTAL_URL).origin]),
];

const createIdentity = ({ config, clock, verifyToken, lookups, publicUrl }: TransportsDeps): IdentityDeps => {
  const admins = new Set(config.ADMIN_USERS);
  return {
    ...lookups,
    verifyToken,
    sessionAuth: createSessionAuth({ sessions: lookups.sessions, publicUrl, origins: portalOrigins(config) }),
    impersonationAuth: createImpersonationAuth(lookups.impersonations, admins),
    proveAgent: createAgentAuth({ agents: lookups.agents, clock }),
    recheckAgent: createAgentRecheck({ agents: lookups.agents }),
    admins,
  };
};

const pipelineDeps = (deps: TransportsDeps, identity: IdentityDeps): PipelineDeps => ({
  clock: deps.clock,
  limits: deps.limits,
  idempotency: deps.idempotency,
  transact: deps.transact,
  audit: deps.audit,
  holdVersion: deps.holdVersion,
  record: deps.metrics.call,
  blocks: deps.blocks,
  watch: deps.watch,
  databaseError: deps.databaseError,
  duplicateError: deps.duplicateError,
  scopeOf: createScope(identity),
  isVisible: deps.lookups.isVisible,
  useSignature: createReplayGuard({ ...deps.signatures, clock: deps.clock }),
  strictOutput: deps.config.NODE_ENV !== "production",
  callTimeoutMs: CALL_TIMEOUT_MS,
});

/** The OpenAPI document of a prefix, written at first use. */
const apiDescription = ({ entries, publicUrl, build }: TransportsDeps): ((prefix: Prefix) => string) => {
  const written = new Map<Prefix, string>();
  return (prefix) => {
    const text = written.get(prefix) ?? JSON.stringify(createOpenApi(entries, prefix, { version: build.version, baseUrl: publicUrl() }));
    written.set(prefix, text);
    return text;
  };
};

const httpOf = (deps: TransportsDeps, infoOf: InfoOf): HttpTransport => {
  const { config, log, clock, entries, cluster } = deps;
  const identity = createIdentity(deps);
  const pipeline = createPipeline(pipelineDeps(deps, identity));
  const failures = config.RATE_LIMIT_FAILED_AUTH === undefined ? FAILED_AUTH_PER_MINUTE : config.RATE_LIMIT_FAILED_AUTH;
  const authenticate = guardFailures({ limiter: cluster.limiter, limit: failures, ipOf: (_credential, { ip }) => ip }, createAuthenticate(identity));
  const operations = { entries, pipeline, clock, infoOf, authenticate, reauthenticate: createReauthenticate(identity) };
  return createHttpTransport({
    rest: createRest({ ...operations, hasSignInPage: deps.consoleFiles != null }),
    trpc: createTrpc({ ...operations, redeem: createRedeem(identity), recheck: createRecheck(identity) }),
    docs: createDocs(),
    agentInstall: createAgentInstall({ folder: deps.agentFolder, publicUrl: deps.publicUrl, updateKey: config.AGENT_UPDATE_KEY }),
    openApi: apiDescription(deps),
    console: deps.consoleFiles === undefined ? null : createStatic(deps.consoleFiles),
    infoOf,
    blocks: deps.blocks,
    origins: config.CORS_ORIGINS,
    toAppError: pipeline.toAppError,
    callLog: { clock, log },
    tracing: deps.tracing,
    issuerDocuments: deps.issuerDocuments,
  });
};

const settingsOf = ({ config, channel }: TransportsDeps): ChannelSettings =>
  channelSettings(config.HEARTBEAT_SECONDS, {
    pollSeconds: config.POLL_SECONDS,
    heartbeatsPerSecond: config.HEARTBEATS_PER_SECOND,
    drainWindowMs: config.DRAIN_WINDOW_SECONDS * 1_000,
    overload: { ...OVERLOAD_LIMITS, loopDelayMs: config.OVERLOAD_LOOP_MS },
    acceptPerSecond: config.ACCEPT_PER_SECOND,
    acceptBurst: config.ACCEPT_PER_SECOND * 2,
    maxConnections: config.MAX_CONNECTIONS,
    inboundPerSecond: config.FRAMES_PER_SECOND,
    inboundBurst: config.FRAMES_PER_SECOND * 3,
    ...(config.RATE_LIMIT_CONNECT === undefined ? {} : { connectsPerMinute: config.RATE_LIMIT_CONNECT }),
    ...(config.RATE_LIMIT_FAILED_AUTH === undefined ? {} : { failuresPerMinute: config.RATE_LIMIT_FAILED_AUTH }),
    ...channel,
  });

const agentChannelOf = (deps: TransportsDeps, facts: InfoOf): AgentChannel => {
  const { cluster, lookups, blocks, watch } = deps;
  return createAgentChannel({
    nodeId: deps.nodeId,
    agents: lookups.agents,
    tenants: lookups.tenants,
    signatures: deps.signatures.memory,
    sessions: deps.sessions,
    presence: deps.presence,
    delivery: deps.delivery,
    bus: cluster.bus,
    owners: cluster.owners,
    notifier: cluster.notifier,
    limits: deps.limits,
    facts,
    blocks,
    watch,
    databaseError: deps.databaseError,
    clock: deps.clock,
    log: deps.log,
    meters: deps.metrics.channelMeters,
    cluster: cluster.size,
    settings: settingsOf(deps),
  });
};

export const createTransports = (deps: TransportsDeps): Transports => {
  const { config, build, nodeId, state, metrics, book, internalToken, shutdown } = deps;
  const infoOf = createRequestInfo(parseNetworks(config.TRUSTED_PROXIES));
  const http = httpOf(deps, infoOf);
  const channel = agentChannelOf(deps, infoOf);
  const occupancy = () => ({ draining: state.draining, overloaded: channel.stats.overloaded, connections: 0 });
  const { agents, tenants } = deps.lookups;
  const carrier = createCarrierAdmission({ ...deps, agents, tenants, signatures: deps.signatures.memory, infoOf, occupancy, settings: settingsOf(deps) });
  const nested = createNestedCalls({ ...deps, http });
  const load = createLoadCalls({ ...deps, pipeline: pipelineDeps(deps, createIdentity(deps)), infoOf });
  const node = (): object => {
    const { connections, ready, overloaded } = channel.stats;
    return { nodeId, ...build, draining: state.draining, overloaded, connections, ready, uptimeSeconds: Math.round(process.uptime()) };
  };
  const runJob = (name: string): boolean => {
    const isKnown = book.jobs().some((job) => job.name === name);
    if (isKnown) book.wake(name);
    return isKnown;
  };
  const shownConfig = (): object => ({ settings: Object.fromEntries(describeConfig(config).map(({ name, value }) => [name, value])) });
  return {
    http,
    channel,
    load,
    nested,
    carrier,
    internal: { token: internalToken, metrics, drain: shutdown, node, config: shownConfig, runJob, front: http },
  };
};
