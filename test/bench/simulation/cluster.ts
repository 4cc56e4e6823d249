// A fleet that comes back: agents and nodes decide by the product's own rules (when to reconnect, whether a node takes one more, when it is overloaded, over which
// window), and time passes by measured costs. What it leaves out: the network, the limit of connects per device, and handoffs that fail.
import { afterEnd, createRandom, type Random, type ReconnectContext, type ReconnectTimes, type SessionEnd } from "../../../agent-sim/agent/index.ts";
import { type Capacity, createCapacity, type NodeCondition } from "../../../server/gateway/channel/capacity.ts";
import { plannedSeconds } from "../../../server/gateway/channel/heartbeat-pacing.ts";
import { judgeOverload, NOT_OVERLOADED, type OverloadState } from "../../../server/gateway/channel/overload.ts";
import { type ChannelSettings, reconnectWindowMs } from "../../../server/gateway/channel/settings.ts";
import { createCalendar } from "./calendar.ts";

export interface Costs {
  /** Processor time of a gateway for one connect in a storm. */
  readonly connectMs: number;
  /** Processor time of a gateway for one heartbeat. */
  readonly heartbeatMs: number;
  /** What one PostgreSQL takes. */
  readonly hellosPerSecond: number;
}

export interface Cluster {
  readonly agents: number;
  readonly nodes: number;
  readonly settings: ChannelSettings;
  readonly costs: Costs;
  readonly seed: number;
}

/** What happens at the beginning, when every agent that is `lost` loses its socket at once. */
export interface Event {
  /** The share of the agents, from 0 to 1. */
  readonly lost: number;
  /** The nodes that are left for them. */
  readonly nodesLeft: number;
  /**
   * The agents connected while the fleet grew, or after an earlier storm, so each has the window of the fleet as it was then. Otherwise their sessions began one by
   * one in a fleet of this size.
   */
  readonly grown?: boolean;
  /** Until then no node answers, and those that come back have just started. */
  readonly nodesAwayMs?: number;
  /** Until then PostgreSQL does nothing. */
  readonly databaseAwayMs?: number;
}

export interface Course {
  readonly lost: number;
  /** Seconds from the beginning until so many of the lost agents were ready. */
  readonly halfSeconds: number;
  readonly mostSeconds: number;
  readonly allSeconds: number;
  /** Agents that were not ready within an hour. */
  readonly left: number;
  /** Attempts per agent. */
  readonly attempts: number;
  /** Attempts that a node refused for want of room. */
  readonly refused: number;
  /** Sessions that waited so long for PostgreSQL that they ended before they were ready. */
  readonly tooLate: number;
  /** The most attempts in a second at one node, on average over the nodes. */
  readonly peakPerNode: number;
  /** The longest time that PostgreSQL was behind. */
  readonly databaseBehindSeconds: number;
}

interface NodeState {
  readonly capacity: Capacity;
  /** Its one thread is busy until then. */
  busyUntilMs: number;
  overload: OverloadState;
  readonly occupancy: NodeCondition & { connections: number };
}

/**
 * Of a larger fleet, one agent in so many takes part, with as small a share of the nodes and of the database. A node does not notice: its agents, and what they
 * leave it of the database, are the same.
 */
const MOST_AGENTS = 250_000;
const STEP_MS = 2;
const HORIZON_MS = 3_600_000;
const MOST = 0.99;
const LOST: SessionEnd = { kind: "closed", code: 1006, reason: "", wasReady: true };
/** What an agent meets while a load balancer has no node. */
const NOBODY: SessionEnd = { kind: "closed", code: 1006, reason: "", wasReady: false, isForeign: true };
const UNREADY: SessionEnd = { kind: "closed", code: 4001, reason: "hello_timeout", wasReady: false };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export const simulate = (cluster: Cluster, event: Event): Course => {
  const { agents, nodes: all, settings, costs, seed } = cluster;
  const { nodesAwayMs = 0, databaseAwayMs = 0 } = event;
  const oneIn = Math.max(1, agents / MOST_AGENTS);
  const lost = Math.round((agents * event.lost) / oneIn);
  const nodesLeft = Math.max(1, Math.round(event.nodesLeft / oneIn));
  /** Each node holds so many from the beginning. */
  const kept = Math.floor((agents * (1 - event.lost)) / event.nodesLeft);
  const random = createRandom(seed);
  const load = { connections: agents, liveNodes: all };
  const beatSeconds = plannedSeconds(
    settings.heartbeatSeconds,
    { ...load, overloaded: false },
    { leastSeconds: settings.heartbeatSeconds, perSecond: settings.heartbeatsPerSecond },
  );
  const nodes = Array.from(
    { length: nodesLeft },
    (): NodeState => ({
      // Nodes that did not stop are warm.
      capacity: createCapacity(settings, nodesAwayMs > 0 ? nodesAwayMs : -HORIZON_MS, random),
      busyUntilMs: nodesAwayMs,
      overload: NOT_OVERLOADED,
      occupancy: { draining: false, overloaded: false, connections: kept },
    }),
  );
  const calendar = createCalendar(lost, { stepMs: STEP_MS, horizonMs: HORIZON_MS });
  const times: Mutable<ReconnectTimes> = { ...settings.reconnect, firstWindowMs: reconnectWindowMs(load, settings) };
  const context = contextOf(times, settings, random);
  const tries = new Uint8Array(lost);
  /** After so long agent and gateway both give up a session that is not ready. */
  const openingMs = 3 * settings.helloTimeoutMs;
  const helloMs = (1_000 / costs.hellosPerSecond) * oneIn;
  const seen = { attempts: 0, refused: 0, tooLate: 0, peak: 0, inSecond: 0, second: 0, behindMs: 0 };
  const readyAt = new Float64Array(lost).fill(Number.POSITIVE_INFINITY);
  let databaseFreeMs = databaseAwayMs;
  let judgedMs = 0;

  const again = (agent: number, end: SessionEnd, nowMs: number): void => {
    context.attempt = tries[agent] ?? 0;
    calendar.add(agent, nowMs + (afterEnd(end, context).reconnectInMs ?? Number.POSITIVE_INFINITY));
    tries[agent] = Math.min(255, context.attempt + 1);
  };
  const judge = (nowMs: number): void => {
    for (const node of nodes) {
      const reading = { loopDelayMs: Math.max(0, node.busyUntilMs - nowMs), claimWaitMs: Math.max(0, databaseFreeMs - nowMs) };
      node.overload = judgeOverload(node.overload, reading, nowMs, settings.overload);
      node.occupancy.overloaded = node.overload.overloaded;
    }
  };
  const count = (nowMs: number): void => {
    seen.attempts += 1;
    const second = Math.floor(nowMs / 1_000);
    if (second !== seen.second) Object.assign(seen, { second, inSecond: 0 });
    seen.inSecond += 1;
    seen.peak = Math.max(seen.peak, seen.inSecond);
  };
  const attempt = (agent: number, nowMs: number): void => {
    for (; judgedMs <= nowMs; judgedMs += settings.tickMs) judge(judgedMs);
    count(nowMs);
    const node = nowMs < nodesAwayMs ? undefined : nodes[Math.floor(random() * nodes.length)];
    if (node === undefined) {
      again(agent, NOBODY, nowMs);
      return;
    }
    const refusal = node.capacity.take(node.occupancy, nowMs);
    if (refusal !== null) {
      seen.refused += 1;
      const { reason, retryAfter } = refusal;
      again(agent, { kind: "refused", status: 503, code: "SERVICE_UNAVAILABLE", reason, retryAfterMs: retryAfter * 1_000, serverTimeMs: null }, nowMs);
      return;
    }
    // Its heartbeats take their part of the thread.
    const free = 1 - (node.occupancy.connections / beatSeconds) * (costs.heartbeatMs / 1_000);
    node.busyUntilMs = Math.max(nowMs, node.busyUntilMs) + costs.connectMs / Math.max(0.05, free);
    databaseFreeMs = Math.max(node.busyUntilMs, databaseFreeMs) + helloMs;
    seen.behindMs = Math.max(seen.behindMs, databaseFreeMs - node.busyUntilMs);
    if (databaseFreeMs - nowMs > openingMs) {
      seen.tooLate += 1;
      again(agent, UNREADY, nowMs + openingMs);
      return;
    }
    node.occupancy.connections += 1;
    readyAt[agent] = databaseFreeMs;
  };

  for (let agent = 0; agent < lost; agent += 1) {
    if (event.grown === true) times.firstWindowMs = reconnectWindowMs({ ...load, connections: Math.ceil(agents * random()) }, settings);
    again(agent, LOST, 0);
  }
  calendar.drain(HORIZON_MS, attempt);
  readyAt.sort();
  const secondsOf = (share: number): number => (readyAt[Math.max(0, Math.ceil(lost * share) - 1)] ?? 0) / 1_000;
  return {
    lost: Math.round(agents * event.lost),
    halfSeconds: secondsOf(0.5),
    mostSeconds: secondsOf(MOST),
    allSeconds: secondsOf(1),
    left: Math.round(readyAt.filter((at) => at === Number.POSITIVE_INFINITY).length * oneIn),
    attempts: seen.attempts / lost,
    refused: Math.round(seen.refused * oneIn),
    tooLate: Math.round(seen.tooLate * oneIn),
    peakPerNode: seen.peak / nodesLeft,
    databaseBehindSeconds: seen.behindMs / 1_000,
  };
};

/** Of an agent whose clock is right and whose secret is the newest. */
const contextOf = (times: ReconnectTimes, settings: ChannelSettings, random: Random): Mutable<ReconnectContext> => ({
  attempt: 0,
  times,
  pollMs: settings.pollSeconds * 1_000,
  drainWaitMs: null,
  corrected: false,
  correctedBefore: false,
  hasAnother: false,
  random,
});
