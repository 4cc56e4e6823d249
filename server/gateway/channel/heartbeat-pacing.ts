// Heartbeat pacing: the heartbeat interval grows with the number of agents per node, and doubles while this node is overloaded.
// A change never makes an agent look silent: the patience grows before the agent is told, and shrinks after the agent has spoken again.
import type { z } from "zod";
import type { HeartbeatPlan } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { type AgentSession, noteNews, send } from "./session.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";

/** The protocol's upper bound on the interval. */
export const MAX_HEARTBEAT_SECONDS = 300;
/** Agents are not told of a change smaller than this share of the interval. */
const SMALLEST_CHANGE = 0.2;

export interface FleetLoad {
  /** The agents of all nodes. */
  readonly connections: number;
  /** This node included. */
  readonly liveNodes: number;
  readonly overloaded: boolean;
}

export interface PacingLimits {
  /** The shortest interval. */
  readonly leastSeconds: number;
  /** The heartbeats per second that one node takes. */
  readonly perSecond: number;
}

/** Keeps all nodes within their heartbeats per second, and the interval within the settings and the protocol. */
export const plannedSeconds = (current: number, { connections, liveNodes, overloaded }: FleetLoad, { leastSeconds, perSecond }: PacingLimits): number => {
  const most = Math.max(leastSeconds, MAX_HEARTBEAT_SECONDS);
  const fitting = Math.max(leastSeconds, Math.ceil(connections / (Math.max(1, liveNodes) * perSecond))) * (overloaded ? 2 : 1);
  const planned = Math.min(most, fitting);
  return Math.abs(planned - current) < current * SMALLEST_CHANGE && planned !== leastSeconds ? current : planned;
};

/** The plan as `welcome` and `config` frames carry it. */
export const heartbeatPlan = (intervalSec: number, { heartbeatJitterPct, heartbeatGraceMs }: ChannelSettings): z.output<typeof HeartbeatPlan> => ({
  intervalSec,
  jitterPct: heartbeatJitterPct,
  graceMs: heartbeatGraceMs,
});

export interface HeartbeatPacingDeps {
  readonly registry: Pick<SessionRegistry, "open" | "busy" | "news">;
  readonly clock: Clock;
  readonly settings: ChannelSettings;
}

export interface HeartbeatPacing {
  /** Sets the interval of a new session and returns it. */
  start(session: AgentSession): number;
  /** Plans the interval, then tells a bounded number of the agents that have another one; later updates tell the rest. */
  update(load: FleetLoad): void;
  readonly seconds: number;
}

export const createHeartbeatPacing = ({ registry, clock, settings }: HeartbeatPacingDeps): HeartbeatPacing => {
  const { heartbeatSeconds: least } = settings;
  let seconds = least;
  /** All sessions have this interval and its patience; new ones start with both. */
  let settledAt = least;
  const patienceOf = (intervalSec: number): number => settings.silenceMs + 3 * (intervalSec - least) * 1_000;

  const setPace = (session: AgentSession): void => {
    session.heartbeatSeconds = seconds;
    session.toldAt = clock.elapsed();
  };
  const tell = (session: AgentSession): void => {
    setPace(session);
    session.patienceMs = Math.max(session.patienceMs, patienceOf(seconds));
    // The next flush writes the new patience before the agent uses it.
    noteNews(session, registry.news);
    send(session, { op: "config", data: { heartbeat: heartbeatPlan(seconds, settings) } }, clock);
  };

  /** Tells agents that have another interval, and shrinks the patience of those that have spoken since; true once all have interval and patience. */
  const tellSome = (): boolean => {
    let left = settings.configsPerTick;
    let settled = true;
    for (const session of registry.open) {
      if (session.phase === "ready" && session.heartbeatSeconds !== seconds && left > 0) {
        left -= 1;
        tell(session);
      } else if (session.phase === "ready" && session.lastSeenAt > session.toldAt) {
        session.patienceMs = patienceOf(session.heartbeatSeconds);
        // Its time in the wheel may be too late now.
        registry.busy.add(session);
      }
      settled &&= session.heartbeatSeconds === seconds && session.patienceMs === patienceOf(seconds);
    }
    return settled;
  };

  return {
    get seconds() {
      return seconds;
    },
    start: (session) => {
      setPace(session);
      session.patienceMs = patienceOf(seconds);
      return seconds;
    },
    update: (load) => {
      seconds = plannedSeconds(seconds, load, { leastSeconds: least, perSecond: settings.heartbeatsPerSecond });
      if (seconds !== settledAt && tellSome()) settledAt = seconds;
    },
  };
};
