// The doors of a node, built over its rooms: REST, tRPC and documents, the agent socket, and the operator's own. Nothing is opened here.
import { LIMITS } from "../protocol/index.ts";
import type { Config } from "./config.ts";
import type { Overrides } from "./core/scope.ts";
import type { Tracing } from "./core/trace.ts";
import type { GeneralRoom } from "./features/general/index.ts";
import { createAgentAuth } from "./gateway/auth/agent.ts";
import { createAuthenticate, createRedeem, createScope, type IdentityDeps } from "./gateway/auth/identity.ts";
import type { Entry } from "./gateway/catalogue.ts";
import { createHub, type Hub } from "./gateway/channel/hub.ts";
import { type ChannelSettings, channelSettings, STRAIN } from "./gateway/channel/settings.ts";
import { createDocs } from "./gateway/docs.ts";
import { createHttpTransport } from "./gateway/http-transport.ts";
import type { InternalRoutes } from "./gateway/internal.ts";
import { createLimits, guardFailures, type Limits } from "./gateway/limits.ts";
import { createOpenApi } from "./gateway/openapi/document.ts";
import { createPipeline, type Pipeline } from "./gateway/pipeline.ts";
import { createReplayGuard } from "./gateway/replay.ts";
import type { HttpTransport } from "./gateway/request-context.ts";
import { createRequestInfo, type Prefix, parseNetworks } from "./gateway/request-info.ts";
import { createRest } from "./gateway/rest.ts";
import { createTrpc } from "./gateway/trpc.ts";
import type { Mesh } from "./mesh.ts";
import { createOperations, type OperationsDeps } from "./operations.ts";
import { databaseError } from "./platform/db-errors.ts";
import { createIdempotency, type Idempotency } from "./platform/idempotency.ts";
import type { Job } from "./platform/jobs.ts";
import { LOCAL_JWKS_PATH } from "./platform/jwt.ts";
import type { Log } from "./platform/log.ts";
import type { Metrics } from "./platform/metrics.ts";
import type { SecretBox } from "./platform/secrets.ts";
import { createSignatures } from "./platform/signatures.ts";
import { commit, version } from "./version.ts";

const CALL_TIMEOUT_MS = 30_000;
const FAILED_AUTH_PER_MINUTE = 20;

export interface DoorsDeps extends Omit<OperationsDeps, "isOverloaded"> {
  readonly secretBox: SecretBox;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly mesh: Mesh;
  readonly nodeId: string;
  readonly internalToken: string;
  readonly tracing: Tracing | null;
  readonly channel?: Partial<ChannelSettings> | undefined;
  /** Changes once, when the node is told to leave. */
  readonly state: { draining: boolean };
  /** An operator sends this node's agents elsewhere. */
  readonly leave: () => void;
}

export interface Doors {
  readonly entries: readonly Entry[];
  readonly front: HttpTransport;
  readonly internal: InternalRoutes;
  readonly hub: Hub;
  readonly jobs: readonly Job[];
  /** Is not ready any more, and takes no agents in. */
  drain(): void;
}

/** RATE_LIMIT_* by the names of the buckets that they stand for. */
const houseLimits = (config: Config): Overrides => {
  const given: Record<string, number | null | undefined> = {
    standard: config.RATE_LIMIT_STANDARD,
    tenant: config.RATE_LIMIT_TENANT,
    agent: config.RATE_LIMIT_AGENT,
    inventory: config.RATE_LIMIT_AGENT,
    heartbeat: config.RATE_LIMIT_HEARTBEAT,
    anonymous: config.RATE_LIMIT_ANONYMOUS,
  };
  for (const { name } of Object.values(LIMITS).flat()) if (name.startsWith("pairing.")) given[name] = config.RATE_LIMIT_PAIRING;
  return Object.fromEntries(Object.entries(given).filter((entry): entry is [string, number | null] => entry[1] !== undefined));
};

const identityOf = ({ config, rooms, tokens }: DoorsDeps, { streamTickets }: GeneralRoom): IdentityDeps => ({
  verifyToken: tokens.verify,
  apiKeys: rooms.apiKeys.directory,
  proveAgent: createAgentAuth({ agents: rooms.devices.directory, clock: rooms.clock }),
  tickets: streamTickets,
  tenants: rooms.tenants.directory,
  memberships: rooms.tenants.memberships,
  admins: new Set(config.ADMIN_USERS),
});

interface Shared {
  readonly limits: Limits;
  readonly idempotency: Idempotency;
  readonly signatures: ReturnType<typeof createSignatures>;
  readonly identity: IdentityDeps;
  readonly entries: readonly Entry[];
  readonly infoOf: ReturnType<typeof createRequestInfo>;
}

const pipelineOf = ({ config, db, metrics, rooms }: DoorsDeps, { limits, idempotency, identity, signatures }: Shared): Pipeline => {
  return createPipeline({
    clock: rooms.clock,
    limits,
    idempotency,
    transact: db.sqlTx,
    record: metrics.call,
    databaseError,
    scopeOf: createScope(identity),
    useSignature: createReplayGuard({ ...signatures, clock: rooms.clock }),
    strictOutput: config.NODE_ENV !== "production",
    callTimeoutMs: CALL_TIMEOUT_MS,
  });
};

/** OpenAPI of a prefix, written when first asked for. */
const apiDescription = (entries: readonly Entry[], publicUrl: () => string): ((prefix: Prefix) => string) => {
  const written = new Map<Prefix, string>();
  return (prefix) => {
    const text = written.get(prefix) ?? JSON.stringify(createOpenApi(entries, prefix, { version, baseUrl: publicUrl() }));
    written.set(prefix, text);
    return text;
  };
};

const frontDoor = (deps: DoorsDeps, shared: Shared): HttpTransport => {
  const { config, log, rooms, tokens, publicUrl } = deps;
  const { entries, identity, infoOf } = shared;
  const pipeline = pipelineOf(deps, shared);
  const failures = config.RATE_LIMIT_FAILED_AUTH === undefined ? FAILED_AUTH_PER_MINUTE : config.RATE_LIMIT_FAILED_AUTH;
  const authenticate = guardFailures({ limiter: rooms.limiter, limit: failures, ipOf: (_credential, { ip }) => ip }, createAuthenticate(identity));
  const door = { entries, pipeline, clock: rooms.clock, infoOf, authenticate };
  return createHttpTransport({
    rest: createRest(door),
    trpc: createTrpc({ ...door, redeem: createRedeem(identity) }),
    docs: createDocs(),
    openApi: apiDescription(entries, publicUrl),
    infoOf,
    origins: config.CORS_ORIGINS,
    toAppError: pipeline.toAppError,
    callLog: { clock: rooms.clock, log },
    tracing: deps.tracing,
    jwks: tokens.local === undefined ? null : { path: LOCAL_JWKS_PATH, body: JSON.stringify(tokens.local.jwks) },
  });
};

const hubOf = ({ config, rooms, mesh, nodeId, log, metrics, channel }: DoorsDeps, { signatures, limits, infoOf }: Shared): Hub =>
  createHub({
    nodeId,
    agents: rooms.devices.directory,
    tenants: rooms.tenants.directory,
    signatures: signatures.memory,
    sessions: rooms.sessions,
    presence: rooms.devices.presence,
    delivery: rooms.commands.delivery,
    bus: mesh.bus,
    owners: mesh.directory,
    courier: rooms.courier,
    limits,
    facts: infoOf,
    databaseError,
    clock: rooms.clock,
    log,
    meters: metrics.channelMeters,
    cluster: () => ({ connections: rooms.admin.connections(), liveNodes: rooms.admin.liveNodes() }),
    settings: channelSettings(config.HEARTBEAT_SECONDS, {
      pollSeconds: config.POLL_SECONDS,
      heartbeatsPerSecond: config.HEARTBEATS_PER_SECOND,
      drainWindowMs: config.DRAIN_WINDOW_SECONDS * 1_000,
      strain: { ...STRAIN, loopDelayMs: config.OVERLOAD_LOOP_MS },
      acceptPerSecond: config.ACCEPT_PER_SECOND,
      acceptBurst: config.ACCEPT_PER_SECOND * 2,
      maxConnections: config.MAX_CONNECTIONS,
      inboundPerSecond: config.FRAMES_PER_SECOND,
      inboundBurst: config.FRAMES_PER_SECOND * 3,
      ...(config.RATE_LIMIT_CONNECT === undefined ? {} : { connectsPerMinute: config.RATE_LIMIT_CONNECT }),
      ...(config.RATE_LIMIT_FAILED_AUTH === undefined ? {} : { failuresPerMinute: config.RATE_LIMIT_FAILED_AUTH }),
      ...channel,
    }),
  });

export const createDoors = (deps: DoorsDeps): Doors => {
  const { config, db, secretBox, metrics, rooms, mesh, nodeId, state } = deps;
  const limits = createLimits({ limiter: rooms.limiter, house: houseLimits(config) });
  const { entries, general } = createOperations({ ...deps, isOverloaded: () => hub.stats.overloaded }, limits);
  const shared: Shared = {
    limits,
    idempotency: createIdempotency({ db, secretBox }),
    signatures: createSignatures(db, mesh.signatures),
    identity: identityOf(deps, general),
    entries,
    infoOf: createRequestInfo(parseNetworks(config.TRUSTED_PROXIES)),
  };
  const hub = hubOf(deps, shared);
  metrics.watch({
    node: nodeId,
    channel: hub.stats,
    commands: rooms.commands.commandGauges,
    mesh: { bus: mesh.bus, ...mesh.stats },
    build: { version, commit },
    database: { pool: db.poolFigures, outbox: rooms.outbox.figures },
  });
  const drain = (): void => {
    state.draining = true;
    hub.drain();
  };
  const node = (): object => {
    const { connections, ready, overloaded } = hub.stats;
    return { nodeId, version, commit, draining: state.draining, overloaded, connections, ready, uptimeSeconds: Math.round(process.uptime()) };
  };
  const front = frontDoor(deps, shared);
  const internal = { token: deps.internalToken, metrics, drain: deps.leave, node, front };
  return { entries, front, internal, hub, drain, jobs: [...general.jobs, ...shared.idempotency.jobs, ...shared.signatures.jobs] };
};
