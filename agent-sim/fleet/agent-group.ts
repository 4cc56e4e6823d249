// Many agents in one process, started, counted and stopped together.
import {
  type Agent,
  type AgentEvents,
  type AgentOptions,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  createMemoryJournal,
  createRandom,
  type Http,
  noop,
  type PairedDevice,
  type Random,
  readBootId,
  type Time,
} from "../agent/index.ts";
import { createHostHandlers } from "../host/handlers.ts";
import { createLogHandlers } from "../host/log-handlers.ts";
import { createSimulatedHost, type SimulatedHostOptions } from "../host/simulated.ts";
import { fetchSecretsBy } from "../host/state-sync.ts";
import type { CommandTracker } from "./command-tracker.ts";

const REST_SOCKETS = 32;

export interface AgentGroupOptions {
  readonly url: string;
  readonly members: readonly PairedDevice[];
  readonly tracker: CommandTracker;
  readonly time: Time;
  readonly random: Random;
  readonly seed: number;
  readonly heartbeatSec: number | null;
  readonly pollOnlyPct: number;
  readonly rampPerSecond: number;
  readonly onAlarm: (text: string) => void;
  /** The share of attempts that fail in each stage of a simulated app; default none. */
  readonly appFailures?: SimulatedHostOptions["failures"];
  /** Changes an agent's options before it is created, to observe the agent or to inject faults. */
  readonly tune?: (member: PairedDevice, options: AgentOptions, index: number) => AgentOptions;
}

export interface AgentGroup {
  start(): void;
  stop(): Promise<void>;
  /** Agents with a ready session, and poll-only agents that REST has answered. */
  readonly connected: number;
  readonly size: number;
  /** Number of answered heartbeats. */
  readonly heartbeats: number;
  readonly reconnects: number;
}

interface GroupMember {
  readonly agent: Agent;
  readonly isConnected: () => boolean;
}

const createMember = (
  member: PairedDevice,
  index: number,
  {
    options,
    http,
    bootId,
    counts,
  }: { readonly options: AgentGroupOptions; readonly http: Http; readonly bootId: string; readonly counts: { heartbeats: number; reconnects: number } },
): GroupMember => {
  const { url, tracker, time, seed, members, rampPerSecond } = options;
  const random = createRandom(seed + index + 1);
  const polls = options.random() * 100 < options.pollOnlyPct;
  let sessions = 0;
  let answered = false;
  const on: AgentEvents = {
    ready: () => {
      sessions += 1;
      if (sessions > 1) counts.reconnects += 1;
    },
    delivered: tracker.delivered,
    executed: tracker.executed,
    settled: ({ commandId }) => tracker.settled(commandId),
    forgotten: tracker.forgotten,
    alarm: options.onAlarm,
    heartbeat: () => {
      counts.heartbeats += 1;
    },
    polled: () => {
      answered = true;
    },
  };
  const host = createSimulatedHost({
    time,
    seed: seed + index,
    failures: options.appFailures ?? {},
    secretsOf: (appId) => fetchSecretsBy(agent.call)(appId),
  });
  const plain: AgentOptions = {
    url,
    http,
    time,
    random,
    bootId,
    on,
    deviceId: member.deviceId,
    identity: member,
    fingerprint: member.fingerprint,
    heartbeatSec: options.heartbeatSec,
    journal: createMemoryJournal(time.wallMs),
    handlers: {
      ...createHandlers({ apps: createApps({ time, random }), time }),
      ...createHostHandlers({ host, onVersion: noop }),
      ...createLogHandlers({ host, time, call: (...called) => agent.call(...called) }).handlers,
    },
    mode: polls ? "poll" : "socket",
    firstWindowMs: (members.length / rampPerSecond) * 1_000,
  };
  const agent: Agent = createAgent(options.tune?.(member, plain, index) ?? plain);
  return { agent, isConnected: () => (polls ? answered : agent.state === "ready") };
};

export const createAgentGroup = (options: AgentGroupOptions): AgentGroup => {
  const http = createHttp(options.url, REST_SOCKETS);
  const counts = { heartbeats: 0, reconnects: 0 };
  const bootId = readBootId();
  const agents = options.members.map((member, index) => createMember(member, index, { options, http, bootId, counts }));
  return {
    start: () => {
      for (const { agent } of agents) agent.start();
    },
    stop: async () => {
      await Promise.all(agents.map(({ agent }) => agent.stop()));
      http.close();
    },
    size: agents.length,
    get connected() {
      return agents.reduce((sum, { isConnected }) => sum + Number(isConnected()), 0);
    },
    get heartbeats() {
      return counts.heartbeats;
    },
    get reconnects() {
      return counts.reconnects;
    },
  };
};
