// The channel as the socket library sees it: upgrades judged, refused in the REST error shapes; sockets counted in and out.
import { SIGNATURE_VERSIONS, SIGNATURE_VERSIONS_HEADER } from "../../../protocol/index.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { RateBucket } from "../../core/rate-limiter.ts";
import type { OpenScope } from "../../core/scope.ts";
import { errorBody } from "../envelope.ts";
import { subprotocolOf, UPGRADE_HEADERS } from "../handshake.ts";
import type { HttpRequest, HttpResponse } from "../request-context.ts";
import type { RequestInfo } from "../request-info.ts";
import type { SocketHandler } from "../uws/socket.ts";
import { createArrivals } from "./arrivals.ts";
import type { HubDeps } from "./hub.ts";
import type { Roster } from "./roster.ts";
import { newSession, type Session } from "./session.ts";
import { type ChannelStats, countUp } from "./stats.ts";
import { type Admitted, createGate, type NodeState } from "./upgrade.ts";

export interface DoorDeps extends HubDeps {
  readonly stats: ChannelStats;
  readonly state: NodeState;
  readonly roster: Roster;
  readonly welcome: (session: Session) => void;
  readonly received: SocketHandler<Session>["received"];
  readonly control: (session: Session) => void;
  readonly resume: (session: Session) => void;
  readonly onError: (error: unknown) => void;
}

export const createDoor = (deps: DoorDeps): SocketHandler<Session> => {
  const { clock, settings, stats, state, roster, limits } = deps;
  const gate = createGate(deps);
  const arrivals = createArrivals(deps);

  const toAppError = (error: unknown): AppError => {
    if (isAppError(error)) return error;
    deps.onError(error);
    return deps.databaseError(error) ?? new AppError("INTERNAL_ERROR", { retryAfter: 2, cause: error });
  };

  const render = (error: AppError, facts: RequestInfo): HttpResponse => {
    const now = clock.now();
    const { limit } = error.details ?? {};
    const limited = error.code === "RATE_LIMIT_EXCEEDED" && typeof limit === "number";
    return {
      status: error.status,
      body: JSON.stringify(errorBody(error, facts, now.toISOString())),
      headers: {
        "Content-Type": "application/json; charset=utf-8",
        "Cache-Control": "no-store",
        "X-Request-Id": facts.requestId,
        [SIGNATURE_VERSIONS_HEADER]: SIGNATURE_VERSIONS,
        ...(error.retryAfter === undefined ? {} : { "Retry-After": String(error.retryAfter) }),
        ...(error.status === 426 ? UPGRADE_HEADERS : {}),
        ...(limited
          ? {
              "X-RateLimit-Limit": String(limit),
              "X-RateLimit-Remaining": "0",
              "X-RateLimit-Reset": String(Math.ceil(now.getTime() / 1_000) + (error.retryAfter ?? 0)),
            }
          : {}),
      },
    };
  };

  // The figure is that of REST, the count is the socket's own: each way has its sixty a minute, and no heartbeat is worth a question to another process.
  const heartbeatLimit = ({ agent, tenant }: Pick<Admitted, "agent" | "tenant">, { requestId, ip, traceparent }: RequestInfo): RateBucket | null => {
    const { agentId, deviceId, deploymentId, tenantId } = agent;
    const scope: OpenScope = { requestId, ip, traceparent, tenantId, tenant, principal: { kind: "agent", agentId, deviceId, deploymentId } };
    return limits.byCaller("heartbeat", scope)[0] ?? null;
  };

  const upgrade = async (request: HttpRequest): ReturnType<SocketHandler<Session>["upgrade"]> => {
    const facts = deps.facts(request, request.path.startsWith("/api/") ? "/api/v1" : "/v1");
    try {
      const sessionId = newId("ses");
      const { signatureVersion, ...admitted } = await gate.admit(request, { ip: facts.ip, sessionId, crowd: { ...state, connections: stats.connections } });
      stats.connections += 1;
      const session = newSession(
        { id: sessionId, agent: admitted.agent, signatureVersion, heartbeatLimit: heartbeatLimit(admitted, facts) },
        settings,
        clock.elapsed(),
      );
      arrivals.accepted(facts, session);
      return { accept: session, subprotocol: subprotocolOf(request) };
    } catch (error) {
      const failure = toAppError(error);
      arrivals.refused(facts, failure);
      return { refuse: render(failure, facts) };
    }
  };

  return {
    upgrade,
    abandoned: () => {
      stats.connections -= 1;
    },
    opened: (session, link) => {
      session.link = link;
      session.phaseAt = clock.elapsed();
      session.openedAt = session.phaseAt;
      roster.all.add(session);
      deps.welcome(session);
    },
    received: deps.received,
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
      roster.all.delete(session);
      stats.connections -= 1;
      countUp(stats.closes, code);
      roster.leave(session);
    },
  };
};
