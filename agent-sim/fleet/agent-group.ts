// Many agents in one process, started, counted and stopped together.
import {
  type Agent,
  type AgentEvents,
  type AgentMachine,
  type AgentOptions,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  createMemoryJournal,
  createRandom,
  type Http,
  type PairedDevice,
  type Random,
  readBootId,
  type Time,
} from "../agent/index.ts";
import type { CommandTracker } from "./command-tracker.ts";
import { type AppFailures, createFleetApps, type FleetApps } from "./fleet-apps.ts";

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
  /** Default: none. */
  readonly appFailures?: AppFailures | undefined;
  /** How the apps of the member at this place fail, instead of `appFailures`. */
  readonly appFailuresOf?: ((index: number) => AppFailures | undefined) | undefined;
  /** What each member says of its machine, at the same place; default: the machine of this process. */
  readonly machines?: readonly AgentMachine[] | undefined;
  /** The apps may have been deployed by an earlier process: agents ask for them from their start. */
  readonly mayHaveApps?: boolean | undefined;
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
  /** The apps of each device, by its id. */
  readonly apps: ReadonlyMap<string, FleetApps>;
}

interface GroupMember {
  readonly deviceId: string;
  readonly agent: Agent;
  readonly apps: FleetApps;
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
  const machine = options.machines?.[index];
  const apps = createFleetApps({
    time,
    seed: seed + index,
    failures: options.appFailuresOf?.(index) ?? options.appFailures ?? {},
    mayHaveApps: options.mayHaveApps ?? false,
    call: (...request) => agent.call(...request),
  });
  const plain: AgentOptions = {
    url,
    http,
    time,
    random,
    bootId,
    on,
    machine,
    deviceId: member.deviceId,
    identity: member,
    fingerprint: member.fingerprint,
    heartbeatSec: options.heartbeatSec,
    journal: createMemoryJournal(time.wallMs),
    handlers: { ...createHandlers({ apps: createApps({ time, random }), time, machine }), ...apps.handlers },
    mode: polls ? "poll" : "socket",
    firstWindowMs: (members.length / rampPerSecond) * 1_000,
  };
  const agent: Agent = createAgent(options.tune?.(member, plain, index) ?? plain);
  return { deviceId: member.deviceId, agent, apps, isConnected: () => (polls ? answered : agent.state === "ready") };
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
      for (const { apps } of agents) apps.stop();
      await Promise.all(agents.map(({ agent }) => agent.stop()));
      http.close();
    },
    size: agents.length,
    apps: new Map(agents.map(({ deviceId, apps }) => [deviceId, apps])),
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
