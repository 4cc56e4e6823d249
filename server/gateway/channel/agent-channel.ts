// The agent channel of a node: wires its parts together, starts and stops them. The life of a socket leads through admission, socket-transport, session,
// hello with duplicate-probe and session-registry, then frame-dispatcher, frame-handlers, heartbeat, command-push and acks, and ends in session-closer,
// socket-drain, tick or expected-reconnects.

import { type Clock, inWholeMs } from "../../core/clock.ts";
import type { AppError } from "../../core/errors.ts";
import type { AgentRegistry } from "../../core/ports/agent-registry.ts";
import type { AgentSessions, DuplicateProbe, SessionOwners, SocketPresence } from "../../core/ports/agent-sessions.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import type { CommandDelivery } from "../../core/ports/delivery.ts";
import type { TenantLookup } from "../../core/ports/lookups.ts";
import type { BusMessage, PubSub } from "../../core/ports/pub-sub.ts";
import type { Blocks, SecurityWatch } from "../../core/ports/security.ts";
import type { SignatureMemory } from "../../core/ports/signature-memory.ts";
import { methodsAs, runAs, Work } from "../../core/work.ts";
import type { Limits } from "../call/rate-limits.ts";
import type { HttpRequest } from "../http/http-message.ts";
import type { RequestInfo } from "../http/request-info.ts";
import type { SocketHandler } from "../uws/socket.ts";
import { createAcks } from "./acks.ts";
import { createAdmission } from "./admission.ts";
import type { NodeCondition } from "./capacity.ts";
import { createCommandPush, createResume } from "./command-push.ts";
import { ALL_NODES, type ClusterNotifier, nodeChannel } from "./device-notifier.ts";
import { createDuplicateProbes } from "./duplicate-probe.ts";
import { createExpectedReconnects } from "./expected-reconnects.ts";
import { createFrameDispatcher } from "./frame-dispatcher.ts";
import { createFrameHandlers } from "./frame-handlers.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { createHeartbeatPacing } from "./heartbeat-pacing.ts";
import { type ClusterLoad, createHelloJudge, createWelcome } from "./hello.ts";
import { type LoopMeter, startLoopMeter } from "./overload.ts";
import { createPresenceFlush } from "./presence-flush.ts";
import type { AgentSession } from "./session.ts";
import { createSessionCloser, endBlocked } from "./session-closer.ts";
import { createSessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";
import { createSocketDrain } from "./socket-drain.ts";
import { createSocketTransport } from "./socket-transport.ts";
import { type ChannelMeters, newStats, noMeters } from "./stats.ts";
import { createTick } from "./tick.ts";

export interface AgentChannelDeps {
  readonly nodeId: string;
  readonly agents: Pick<AgentRegistry, "find" | "take" | "promote" | "remember" | "recall" | "expect">;
  readonly tenants: TenantLookup;
  /** Shared with REST. */
  readonly signatures: SignatureMemory;
  readonly sessions: AgentSessions;
  readonly presence: SocketPresence;
  readonly delivery: CommandDelivery;
  readonly bus: PubSub;
  readonly owners: SessionOwners;
  readonly notifier: Pick<ClusterNotifier, "evictAt" | "attach" | "receive">;
  readonly limits: Limits;
  readonly facts: (request: HttpRequest, prefix: RequestInfo["prefix"]) => RequestInfo;
  readonly blocks: Blocks;
  readonly watch: SecurityWatch;
  /** The answer to an error of the database itself; null for a defect. */
  readonly databaseError: (error: unknown, retryAfter?: number) => AppError | null;
  readonly clock: Clock;
  readonly log: Record<"info" | "warn", (fields: object, message: string) => void>;
  readonly settings: ChannelSettings;
  /** Tests pass their own. */
  readonly startMeter?: () => LoopMeter;
  readonly meters?: ChannelMeters;
  /** Sockets and nodes of the whole installation. */
  readonly cluster?: () => ClusterLoad;
}

export interface AgentChannel {
  readonly transport: SocketHandler<AgentSession>;
  readonly stats: Readonly<ChannelStats>;
  /** Tells a process that polls whether another process of its device has a session. */
  readonly probe: DuplicateProbe;
  /** Subscribes to the bus and starts the ticks. */
  start(): Promise<void>;
  /** One tick; runs every second by itself. */
  tick(): void;
  /** Writes presence now. */
  flush(): Promise<void>;
  /** After messages may have been lost: asks the database about every session, and renews every entry among the session owners. */
  resync(): Promise<void>;
  /** Refuses upgrades from now on. */
  refuseUpgrades(): void;
  /** Sends every agent away within the drain window; later calls wait for the first. The listener must still be open. */
  drainSockets(): Promise<void>;
  /** Drains, then stops. */
  close(): Promise<void>;
}

export const createAgentChannel = (given: AgentChannelDeps): AgentChannel => {
  const clock = inWholeMs(given.clock);
  const { nodeId, settings, log, notifier, owners, databaseError, meters = noMeters, cluster } = given;
  const stats = newStats();
  const condition: NodeCondition = { draining: false, overloaded: false };
  const onError = (error: unknown, session?: AgentSession): void =>
    log.warn({ error, deviceId: session?.deviceId, sessionId: session?.id }, "the agent channel failed at one step and continues");
  const deps = { ...given, clock, meters, stats, condition, onError };

  const admission = createAdmission(deps);
  const busy = new Set<AgentSession>();
  const commands = createCommandPush({ ...deps, busy });
  const { push } = commands;
  const acks = createAcks({ ...deps, isTemporary: (error) => databaseError(error) !== null });
  const registry = createSessionRegistry({ ...deps, busy, commands, acks });
  const closer = createSessionCloser(deps);
  const pacing = createHeartbeatPacing({ registry, clock, settings });
  const heartbeats = createHeartbeat(deps);
  const duplicates = createDuplicateProbes({ ...deps, ready: registry.ready });
  const judge = createHelloJudge({ ...deps, duplicates });
  const handlers = createFrameHandlers({ ...deps, judge, register: registry.register, heartbeats, push, acks });
  const dispatcher = createFrameDispatcher({ ...deps, handlers, heartbeats, registry });
  const welcome = createWelcome({ pacing, cluster, clock, settings });
  const transport = createSocketTransport({
    ...deps,
    admission,
    registry,
    welcome,
    expectReconnect: createExpectedReconnects(deps),
    ...dispatcher,
    resume: createResume(push, settings),
  });
  const claim = (sessions: readonly AgentSession[]): Promise<unknown> =>
    Promise.all(sessions.map((session) => owners.claim(session.deviceId, nodeId, session.epoch)));
  const flush = createPresenceFlush({ ...deps, closeSuperseded: closer.closeSuperseded, registry, claim });
  const others = (): number => Math.max(0, (cluster?.().liveNodes ?? 1) - 1);
  const sendAgentsAway = createSocketDrain({ ...deps, registry, retire: closer.retire, others });

  const running: { timer?: NodeJS.Timeout; meter?: LoopMeter; stops: readonly (() => Promise<void>)[] } = { stops: [] };
  const loopDelayMs = (): number => running.meter?.delayMs() ?? 0;
  const tick = createTick({ ...deps, registry, closer, push, pacing, flush, loopDelayMs });

  let draining: Promise<void> | null = null;
  const refuseUpgrades = (): void => {
    condition.draining = true;
  };
  const drainSockets = (): Promise<void> => {
    refuseUpgrades();
    // Presence covers everything heard until now, for the agents that take a while to come back.
    draining ??= flush().then(sendAgentsAway);
    return draining;
  };

  const agents = new Work("agents");
  const receive = (message: BusMessage): void =>
    runAs(agents, () => {
      duplicates.receive(message);
      notifier.receive(message);
    });

  return methodsAs(agents, {
    transport: methodsAs(agents, transport),
    stats,
    probe: duplicates.probe,
    tick,
    flush,
    start: async () => {
      notifier.attach(registry);
      const stops = await Promise.all([nodeChannel(nodeId), ALL_NODES].map((channel) => given.bus.subscribe(channel, receive)));
      const stopHearing = given.blocks.onBlocked(() => endBlocked(registry.open, given.blocks));
      running.stops = [...stops, async () => stopHearing()];
      running.meter = (given.startMeter ?? startLoopMeter)();
      running.timer = setInterval(tick, settings.tickMs);
    },
    resync: () => flush(true),
    refuseUpgrades,
    drainSockets,
    close: async () => {
      await drainSockets();
      clearInterval(running.timer);
      running.meter?.stop();
      await flush();
      await Promise.all(running.stops.map((stop) => stop()));
    },
  });
};
