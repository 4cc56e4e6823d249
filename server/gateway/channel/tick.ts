// The tick: once a second closes sessions that are due, retries failed claims, judges the load of the node and starts the presence flush.
// It looks at the sessions that are busy or due; all others wait in the wheel.
import type { Close } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import type { NodeCondition } from "./capacity.ts";
import type { PushCommands } from "./command-push.ts";
import type { HeartbeatPacing } from "./heartbeat-pacing.ts";
import type { ClusterLoad } from "./hello.ts";
import { judgeOverload, NOT_OVERLOADED } from "./overload.ts";
import { type AgentSession, canPush, dueClose, endSession, holdsPresence, isQuiet, quietUntil } from "./session.ts";
import type { SessionCloser } from "./session-closer.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";

export interface TickDeps {
  readonly registry: Pick<SessionRegistry, "open" | "busy" | "wheel">;
  readonly closer: Pick<SessionCloser, "retire" | "closeSuspended">;
  readonly push: PushCommands;
  readonly pacing: Pick<HeartbeatPacing, "update" | "seconds">;
  readonly flush: () => Promise<void>;
  readonly loopDelayMs: () => number;
  readonly cluster?: (() => ClusterLoad) | undefined;
  /** The tick writes `overloaded`. */
  readonly condition: NodeCondition;
  readonly stats: ChannelStats;
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly log: { warn(fields: object, message: string): void };
}

export const createTick = ({ registry, closer, push, pacing, flush, loopDelayMs, cluster, condition, stats, clock, settings, log }: TickDeps) => {
  let flushedAt = clock.elapsed();
  let tenantsReadAt = flushedAt;
  let overload = NOT_OVERLOADED;

  /** Handles one session. Adds it to `due` if a newer session may have replaced it; returns its buffered bytes. */
  const watch = (session: AgentSession, nowMs: number, due: Map<Close, AgentSession[]>): number => {
    const buffered = session.link?.bufferedBytes() ?? 0;
    session.slowSince = buffered > settings.slowBytes ? (session.slowSince ?? nowMs) : null;
    const close = dueClose(session, settings, nowMs);
    if (close !== null && holdsPresence(session)) due.set(close, [...(due.get(close) ?? []), session]);
    else if (close !== null) endSession(session, close);
    // Retries a claim that failed.
    else if (session.wanted && !session.pushing && canPush(session)) void push(session);
    else if (isQuiet(session)) {
      registry.busy.delete(session);
      registry.wheel.add(session, quietUntil(session));
    }
    return buffered;
  };

  const updateLoad = (nowMs: number, claimWaitMs: number): void => {
    overload = judgeOverload(overload, { loopDelayMs: loopDelayMs(), claimWaitMs }, nowMs, settings.overload);
    const { overloaded } = overload;
    if (overloaded !== condition.overloaded)
      log.warn({ overloaded, claimWaitMs }, overloaded ? "node is overloaded and refuses new agents" : "node has recovered and accepts agents again");
    condition.overloaded = overloaded;
    pacing.update({ ...(cluster?.() ?? { connections: stats.connections, liveNodes: 1 }), overloaded });
    Object.assign(stats, { overloaded, heartbeatSeconds: pacing.seconds });
  };

  return (): void => {
    const nowMs = clock.elapsed();
    let bufferedBytes = 0;
    let claimWaitMs = 0;
    const due = new Map<Close, AgentSession[]>();
    for (const session of registry.wheel.take(nowMs)) registry.busy.add(session);
    for (const session of registry.busy) {
      bufferedBytes += watch(session, nowMs, due);
      claimWaitMs = Math.max(claimWaitMs, nowMs - (session.claimingSince ?? nowMs));
    }
    for (const [close, sessions] of due) void closer.retire(sessions, close);
    stats.bufferedBytes = bufferedBytes;
    updateLoad(nowMs, claimWaitMs);
    if (nowMs - tenantsReadAt >= settings.tenantsEveryMs) {
      tenantsReadAt = nowMs;
      void closer.closeSuspended(registry.open);
    }
    if (nowMs - flushedAt < settings.flushEveryMs) return;
    flushedAt = nowMs;
    void flush();
  };
};
