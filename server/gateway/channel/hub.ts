// All sockets of this node: puts the channel's parts together and gives them one clock.

import type { z } from "zod";
import { CAPABILITIES, type Close, SUBPROTOCOL, type Welcome } from "../../../protocol/index.ts";
import type { AgentRegistry } from "../../core/agent-registry.ts";
import { type Clock, inWholeMs } from "../../core/clock.ts";
import type { CommandDelivery } from "../../core/delivery.ts";
import type { AppError } from "../../core/errors.ts";
import type { TenantLookup } from "../../core/lookups.ts";
import type { SessionOwnerDirectory } from "../../core/session-owner-directory.ts";
import type { DuplicateProbe, Sessions, SocketPresence } from "../../core/sessions.ts";
import type { SignatureMemory } from "../../core/signature-memory.ts";
import type { Limits } from "../limits.ts";
import type { HttpRequest } from "../request-context.ts";
import type { RequestInfo } from "../request-info.ts";
import type { SocketHandler } from "../uws/socket.ts";
import { createActs } from "./acts.ts";
import { createBeats } from "./beats.ts";
import { createCancels } from "./cancels.ts";
import { type AgentCourier, ALL_NODES, type ChannelBus, nodeChannel } from "./courier.ts";
import { createDismissal, isHeld } from "./dismissal.ts";
import { createDoor } from "./door.ts";
import { createFarewell } from "./farewell.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { createHello } from "./hello.ts";
import { createInbound } from "./inbound.ts";
import { judgeStrain, type LoopMeter, startLoopMeter, WELL } from "./overload.ts";
import { createPump, type Pump } from "./pump.ts";
import { createRemote } from "./remote.ts";
import { createRhythm, heartbeatPlan } from "./rhythm.ts";
import { createRivals } from "./rivals.ts";
import { createRoster } from "./roster.ts";
import { canPush, dueClose, endSession, type Session, send } from "./session.ts";
import { type ChannelSettings, reconnectWindowMs } from "./settings.ts";
import { createStamp } from "./stamp.ts";
import { type ChannelMeters, type ChannelStats, newStats, noMeters } from "./stats.ts";
import { createSuspension } from "./suspension.ts";
import type { NodeState } from "./upgrade.ts";

export interface HubDeps {
  readonly nodeId: string;
  readonly agents: Pick<AgentRegistry, "find" | "take" | "promote">;
  readonly tenants: TenantLookup;
  /** Shared with the REST door. */
  readonly signatures: SignatureMemory;
  readonly sessions: Sessions;
  readonly presence: SocketPresence;
  readonly delivery: CommandDelivery;
  readonly bus: ChannelBus;
  readonly owners: SessionOwnerDirectory;
  readonly courier: Pick<AgentCourier, "evictAt" | "attach">;
  readonly limits: Limits;
  readonly facts: (request: HttpRequest, prefix: RequestInfo["prefix"]) => RequestInfo;
  /** How the database's own trouble is answered; null for a defect. */
  readonly databaseError: (error: unknown, retryAfter?: number) => AppError | null;
  readonly clock: Clock;
  readonly log: Record<"info" | "warn", (fields: object, message: string) => void>;
  readonly settings: ChannelSettings;
  /** Feels how late the event loop is; for tests another. */
  readonly startMeter?: () => LoopMeter;
  readonly meters?: ChannelMeters;
  /** Sockets and nodes of the whole installation, for the window in which agents come back. */
  readonly cluster?: () => { readonly connections: number; readonly liveNodes: number };
}

export interface Hub {
  readonly door: SocketHandler<Session>;
  readonly stats: Readonly<ChannelStats>;
  /** For processes that poll: whether another one holds a session. */
  readonly probe: DuplicateProbe;
  /** Begins to listen to the bus and to the clock. */
  start(): Promise<void>;
  /** What the hub does by itself every second. */
  tick(): void;
  /** Writes presence now. */
  flush(): Promise<void>;
  /** Hints may have been lost: asks the database whose sessions still are the newest, and tells the directory of them again. */
  resync(): Promise<void>;
  /** New sockets are refused from now on. */
  drain(): void;
  /** Sends every agent elsewhere, within the drain window, once however often it is asked. The listener must still be open. */
  letGo(): Promise<void>;
  /** Lets go whoever is left, and listens no more. */
  close(): Promise<void>;
}

export const createHub = (given: HubDeps): Hub => {
  const clock = inWholeMs(given.clock);
  const deps = { ...given, clock };
  const { nodeId, settings, log, delivery, presence, courier, owners, databaseError, meters = noMeters } = deps;
  const stats = newStats();
  const state: NodeState = { draining: false, overloaded: false };
  const onError = (error: unknown, session?: Session): void => log.warn({ error, deviceId: session?.deviceId, sessionId: session?.id }, "agent channel");
  const roster = createRoster({ nodeId, courier, owners, stats, onError });
  const pump = createPump({ delivery, clock, stats, onError });
  const rivals = createRivals({ ...deps, ready: roster.ready, onError });
  const judge = createHello({ ...deps, rivals, onError });
  const heartbeats = createHeartbeat({ clock, stamp: createStamp(clock), settings, stats, meters });
  const cancels = createCancels({ clock, delivery, onError });
  const isTemporary = (error: unknown): boolean => databaseError(error) !== null;
  const acts = createActs({ clock, settings, meters, judge, delivery, presence, pump, cancels, heartbeats, enter: roster.enter, isTemporary, onError });
  const inbound = createInbound({ clock, settings, stats, acts, heartbeats, databaseError, onError });
  const claim = (sessions: readonly Session[]): Promise<unknown> =>
    Promise.all(sessions.map((session) => owners.claim(session.deviceId, nodeId, session.epoch)));
  const { check, retire } = createDismissal({ presence, stats, onError });
  const flush = createBeats({ presence, check, clock, settings, meters, roster, claim, onError });
  const rhythm = createRhythm({ roster, clock, settings });
  const welcome = (session: Session): void =>
    void send(
      session,
      { op: "welcome", data: welcomeOf(session, settings, { clock, cluster: deps.cluster?.(), heartbeatSeconds: rhythm.begin(session) }) },
      clock,
    );
  const door = createDoor({ ...deps, stats, state, roster, welcome, ...inbound, resume: createResume(pump, settings), onError });

  const others = (): number => Math.max(0, (deps.cluster?.().liveNodes ?? 1) - 1);
  const farewell = createFarewell({ roster, retire, settings, clock, others });
  const closeSuspended = createSuspension({ tenants: deps.tenants, all: roster.all, onError });
  const running: { timer?: NodeJS.Timeout; meter?: LoopMeter; stops: readonly (() => Promise<void>)[] } = { stops: [] };
  let flushedAt = clock.elapsed();
  let tenantsSeenAt = flushedAt;
  let verdict = WELL;
  const feel = (nowMs: number, claimWaitMs: number): void => {
    verdict = judgeStrain(verdict, { loopDelayMs: running.meter?.delayMs() ?? 0, claimWaitMs }, nowMs, settings.strain);
    const { overloaded } = verdict;
    if (overloaded !== state.overloaded) log.warn({ overloaded, claimWaitMs }, "the load of this node");
    state.overloaded = overloaded;
    rhythm.look({ ...(deps.cluster?.() ?? { connections: stats.connections, liveNodes: 1 }), overloaded });
    Object.assign(stats, { overloaded, heartbeatSeconds: rhythm.seconds });
  };
  const tick = (): void => {
    const nowMs = clock.elapsed();
    let bufferedBytes = 0;
    let claimWaitMs = 0;
    const due = new Map<Close, Session[]>();
    for (const session of roster.all) {
      bufferedBytes += watch(session, { nowMs, settings, pump, due });
      claimWaitMs = Math.max(claimWaitMs, nowMs - (session.claimingSince ?? nowMs));
    }
    for (const [close, sessions] of due) void retire(sessions, close);
    stats.bufferedBytes = bufferedBytes;
    feel(nowMs, claimWaitMs);
    if (nowMs - tenantsSeenAt >= settings.tenantsEveryMs) {
      tenantsSeenAt = nowMs;
      void closeSuspended();
    }
    if (nowMs - flushedAt < settings.flushEveryMs) return;
    flushedAt = nowMs;
    void flush();
  };

  let leaving: Promise<void> | null = null;
  const letGo = (): Promise<void> => {
    state.draining = true;
    // What was heard until now counts as life for those who come back a little later.
    leaving ??= flush().then(farewell);
    return leaving;
  };

  return {
    door,
    stats,
    probe: rivals.probe,
    tick,
    flush,
    start: async () => {
      const onMessage = createRemote({ ready: roster.ready, rivals, pump, cancels });
      courier.attach({ holds: (deviceId) => roster.ready.has(deviceId), receive: onMessage });
      running.stops = await Promise.all([nodeChannel(nodeId), ALL_NODES].map((channel) => deps.bus.subscribe(channel, onMessage)));
      running.meter = (deps.startMeter ?? startLoopMeter)();
      running.timer = setInterval(tick, settings.tickMs);
    },
    resync: () => flush(true),
    drain: () => {
      state.draining = true;
    },
    letGo,
    close: async () => {
      await letGo();
      clearInterval(running.timer);
      running.meter?.stop();
      await flush();
      await Promise.all(running.stops.map((stop) => stop()));
    },
  };
};

interface Watch {
  readonly nowMs: number;
  readonly settings: ChannelSettings;
  readonly pump: Pump;
  /** Sessions that may have been taken over, by the close that is due otherwise. */
  readonly due: Map<Close, Session[]>;
}

/** One look of the clock at one session; says how many bytes wait for it. */
const watch = (session: Session, { nowMs, settings, pump, due }: Watch): number => {
  const buffered = session.link?.bufferedBytes() ?? 0;
  const isSlow = buffered > settings.slowBytes;
  session.slowSince = isSlow ? (session.slowSince ?? nowMs) : null;
  const close = dueClose(session, settings, nowMs);
  if (close !== null && isHeld(session)) due.set(close, [...(due.get(close) ?? []), session]);
  else if (close !== null) endSession(session, close);
  // A claim that failed is tried again.
  else if (session.wanted && !session.pumping && canPush(session)) void pump(session);
  return buffered;
};

const createResume =
  (pump: Pump, settings: ChannelSettings) =>
  (session: Session): void => {
    if (!session.paused || session.link === null || session.link.bufferedBytes() >= settings.resumeBytes) return;
    session.paused = false;
    void pump(session);
  };

const welcomeOf = (
  session: Session,
  settings: ChannelSettings,
  { clock, cluster, heartbeatSeconds }: { clock: Clock; cluster: ReturnType<NonNullable<HubDeps["cluster"]>> | undefined; heartbeatSeconds: number },
): z.output<typeof Welcome> => ({
  protocol: SUBPROTOCOL,
  sessionId: session.id,
  nonce: session.challenge?.nonce ?? "",
  serverTime: clock.now().toISOString(),
  capabilities: [...CAPABILITIES],
  heartbeat: heartbeatPlan(heartbeatSeconds, settings),
  ack: settings.ack,
  limits: {
    maxFrameBytes: settings.maxFrameBytes,
    maxOutputBytes: settings.maxOutputBytes,
    maxInFlight: settings.maxInFlight,
    inboundPerSec: settings.inboundPerSecond,
  },
  reconnect: { ...settings.reconnect, firstWindowMs: cluster === undefined ? settings.reconnect.firstWindowMs : reconnectWindowMs(cluster, settings) },
  poll: { intervalSec: settings.pollSeconds, safetySec: settings.safetyPollSeconds },
  sessionMaxAgeSec: Math.round(session.maxAgeMs / 1_000),
});
