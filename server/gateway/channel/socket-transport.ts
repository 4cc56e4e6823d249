// The agent socket transport: connects the socket library to the channel, from the upgrade to the close. Refused upgrades get a REST error body.

import { CLOSE, SIGNATURE_VERSIONS, SIGNATURE_VERSIONS_HEADER } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import type { RateBucket } from "../../core/ports/rate-limiter.ts";
import { type Blocks, entityBlocked, type SecurityWatch } from "../../core/ports/security.ts";
import type { OpenScope } from "../../core/scope.ts";
import { newBucket, takeToken } from "../../core/structures/token-bucket.ts";
import type { Limits } from "../call/rate-limits.ts";
import { watchUpgrade } from "../call/security-signals.ts";
import { subprotocolOf, UPGRADE_HEADERS } from "../http/handshake.ts";
import type { HttpRequest, HttpResponse } from "../http/http-message.ts";
import type { RequestInfo } from "../http/request-info.ts";
import { errorBody } from "../rest/envelope.ts";
import type { SocketHandler, UpgradeVerdict } from "../uws/socket.ts";
import type { Admitted, SocketAdmission } from "./admission.ts";
import type { NodeCondition, NodeOccupancy } from "./capacity.ts";
import { type AgentSession, endSession, newSession } from "./session.ts";
import { isSessionBlocked } from "./session-closer.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";
import { countUp } from "./stats.ts";

export interface SocketTransportDeps {
  readonly admission: SocketAdmission;
  readonly registry: Pick<SessionRegistry, "open" | "busy" | "remove">;
  readonly welcome: (session: AgentSession) => void;
  /** Notes a device whose socket broke. */
  readonly expectReconnect: (deviceId: string) => void;
  readonly received: SocketHandler<AgentSession>["received"];
  /** Counts a ping or pong against the session's rate limit. */
  readonly control: (session: AgentSession) => void;
  /** The socket's buffer has drained. */
  readonly resume: (session: AgentSession) => void;
  readonly condition: Readonly<NodeCondition>;
  readonly limits: Pick<Limits, "byCaller">;
  readonly facts: (request: HttpRequest, prefix: RequestInfo["prefix"]) => RequestInfo;
  readonly blocks: Pick<Blocks, "any" | "refusesAddress" | "refuses">;
  readonly watch: SecurityWatch;
  readonly databaseError: (error: unknown) => AppError | null;
  readonly clock: Clock;
  readonly log: { info(fields: object, message: string): void };
  readonly settings: ChannelSettings;
  readonly stats: ChannelStats;
  readonly onError: (error: unknown) => void;
}

const INTERNAL_RETRY_SECONDS = 2;
/** The library's code for a connection that ended without a close frame. */
const BROKEN = 1006;

interface Upgrade {
  /** The id of the session to be. */
  readonly id: string;
  readonly facts: RequestInfo;
  readonly headers: HttpRequest["headers"];
}

const rateLimitHeaders = ({ code, details, retryAfter = 0 }: AppError, now: Date): Readonly<Record<string, string>> => {
  const { limit } = details ?? {};
  if (code !== "RATE_LIMIT_EXCEEDED" || typeof limit !== "number") return {};
  return {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": "0",
    "X-RateLimit-Reset": String(Math.ceil(now.getTime() / 1_000) + retryAfter),
  };
};

/** The answer to a refused upgrade, in the form that agents know. */
export const renderRefusal = (error: AppError, facts: RequestInfo, now: Date): HttpResponse => ({
  status: error.status,
  body: JSON.stringify(errorBody(error, facts, now.toISOString())),
  headers: {
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Request-Id": facts.requestId,
    [SIGNATURE_VERSIONS_HEADER]: SIGNATURE_VERSIONS,
    ...(error.retryAfter === undefined ? {} : { "Retry-After": String(error.retryAfter) }),
    ...(error.status === 426 ? UPGRADE_HEADERS : {}),
    ...rateLimitHeaders(error, now),
  },
});

export const createSocketTransport = (deps: SocketTransportDeps): SocketHandler<AgentSession> => {
  const { admission, registry, condition, limits, clock, settings, stats, blocks } = deps;
  const upgrades = createUpgradeLog(deps);

  const toAppError = (error: unknown): AppError => {
    if (isAppError(error)) return error;
    deps.onError(error);
    return deps.databaseError(error) ?? new AppError("INTERNAL_ERROR", { retryAfter: INTERNAL_RETRY_SECONDS, cause: error });
  };

  // The socket counts against the limit of REST, but on its own: a shared count would ask Redis for every heartbeat.
  const heartbeatLimit = ({ agent, tenant }: Pick<Admitted, "agent" | "tenant">, { requestId, ip, traceparent }: RequestInfo): RateBucket | null => {
    const { agentId, deviceId, deploymentId, tenantId } = agent;
    const scope: OpenScope = { requestId, ip, traceparent, tenantId, tenant, principal: { kind: "agent", agentId, deviceId, deploymentId } };
    return limits.byCaller("heartbeat", scope)[0] ?? null;
  };

  const noteRefusal = ({ facts, headers }: Pick<Upgrade, "facts" | "headers">, failure: AppError): void => {
    upgrades.refused(facts, failure);
    watchUpgrade(failure, { ip: facts.ip, headers }, deps.watch);
  };

  const begin = ({ agent, tenant, signatureVersion, replayed }: Admitted, upgrade: Upgrade): AgentSession => {
    const { id, facts } = upgrade;
    if (blocks.any && blocks.refuses({ tenantId: agent.tenantId, ip: facts.ip, principal: { kind: "agent", deviceId: agent.deviceId } })) throw entityBlocked();
    stats.connections += 1;
    const heartbeats = heartbeatLimit({ agent, tenant }, facts);
    const session = newSession({ id, agent, ip: facts.ip, signatureVersion, replayed, heartbeatLimit: heartbeats }, settings, clock.elapsed());
    void replayed?.then((failure) => {
      if (failure === null) return;
      noteRefusal(upgrade, failure);
      endSession(session, CLOSE.tryLater);
    });
    return session;
  };

  const accept = (session: AgentSession, request: HttpRequest, facts: RequestInfo): UpgradeVerdict<AgentSession> => {
    upgrades.accepted(facts, session);
    return { accept: session, subprotocol: subprotocolOf(request) };
  };

  const refuse = (upgrade: Upgrade, error: unknown): UpgradeVerdict<AgentSession> => {
    const failure = toAppError(error);
    noteRefusal(upgrade, failure);
    return { refuse: renderRefusal(failure, upgrade.facts, clock.now()) };
  };

  const judge = async (request: HttpRequest, upgrade: Upgrade, node: NodeOccupancy): Promise<UpgradeVerdict<AgentSession>> => {
    const { id, facts } = upgrade;
    try {
      return accept(begin(await admission.admit(request, { ip: facts.ip, sessionId: id, node }), upgrade), request, facts);
    } catch (error) {
      return refuse(upgrade, error);
    }
  };

  return {
    upgrade: (request) => {
      const facts = deps.facts(request, request.path.startsWith("/api/") ? "/api/v1" : "/v1");
      const upgrade = { id: newId("ses"), facts, headers: request.headers };
      const node = { ...condition, connections: stats.connections };
      try {
        if (blocks.any && blocks.refusesAddress(facts.ip)) throw entityBlocked();
        const admitted = admission.admitRemembered(request, { ip: facts.ip, sessionId: upgrade.id, node });
        return admitted === null ? judge(request, upgrade, node) : accept(begin(admitted, upgrade), request, facts);
      } catch (error) {
        return refuse(upgrade, error);
      }
    },
    abandoned: () => {
      stats.connections -= 1;
    },
    opened: (session, link) => {
      session.link = link;
      session.phaseAt = clock.elapsed();
      session.openedAt = session.phaseAt;
      registry.open.add(session);
      // It may have been blocked since it was let in.
      if (blocks.any && isSessionBlocked(session, blocks)) endSession(session, CLOSE.authFailed);
      else deps.welcome(session);
    },
    received: deps.received,
    wrote: (session) => void registry.busy.add(session),
    drained: deps.resume,
    dropped: () => {
      stats.droppedFrames += 1;
    },
    pinged: deps.control,
    ponged: (session) => {
      session.probe?.settle(true);
      deps.control(session);
    },
    closed: (session, code) => {
      stats.connections -= 1;
      countUp(stats.closes, code);
      if (code === BROKEN && session.phase === "ready") deps.expectReconnect(session.deviceId);
      registry.remove(session);
    },
  };
};

/** Refused agents come back, thousands at a time; the metrics count them all, the log shows these. */
const REFUSALS_LOGGED = { perSecond: 10, burst: 50 } as const;

/** The exhausted limit of a refusal that does not depend on the agent; null for other refusals. */
const exhaustedBy = ({ code, details }: Pick<AppError, "code" | "details">): string | null => {
  if (code === "NODE_DRAINING") return "draining";
  if (code === "SERVICE_UNAVAILABLE") return String(details?.["reason"] ?? "unavailable");
  return code === "RATE_LIMIT_EXCEEDED" ? String(details?.["bucket"] ?? "limit") : null;
};

/** Counts every upgrade, and logs each accepted one but only a bounded number of refused ones. */
const createUpgradeLog = ({ clock, stats, log }: Pick<SocketTransportDeps, "clock" | "stats" | "log">) => {
  const lines = newBucket(REFUSALS_LOGGED, clock.elapsed());
  let unlogged = 0;
  return {
    accepted: ({ requestId }: RequestInfo, { id, deviceId, tenantId }: Pick<AgentSession, "id" | "deviceId" | "tenantId">): void => {
      countUp(stats.connects, "accepted");
      log.info({ requestId, sessionId: id, deviceId, tenantId }, "accepted an agent socket");
    },
    refused: ({ requestId }: RequestInfo, { code, status, details }: AppError): void => {
      const reason = typeof details?.["reason"] === "string" ? details["reason"] : code;
      countUp(stats.connects, reason);
      const exhausted = exhaustedBy({ code, details });
      if (exhausted !== null) countUp(stats.turnedAway, exhausted);
      if (!takeToken(lines, REFUSALS_LOGGED, clock.elapsed())) {
        unlogged += 1;
        return;
      }
      log.info({ requestId, status, code, reason, ...(unlogged === 0 ? {} : { unlogged }) }, "refused an agent socket");
      unlogged = 0;
    },
  };
};
