// Many agents in one process: started one after another, counted together, stopped together.

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
  type Member,
  type Random,
  readBootId,
  type Time,
} from "../agent/index.ts";
import type { Ledger } from "./ledger.ts";

const REST_SOCKETS = 32;

export interface CrewOptions {
  readonly url: string;
  readonly members: readonly Member[];
  readonly ledger: Ledger;
  readonly time: Time;
  readonly random: Random;
  readonly seed: number;
  readonly heartbeatSec: number | null;
  readonly pollOnlyPct: number;
  readonly rampPerSecond: number;
  readonly onAlarm: (text: string) => void;
  /** The last word on each agent before it is made: for those who watch it or give it trouble. */
  readonly tune?: (member: Member, options: AgentOptions, index: number) => AgentOptions;
}

export interface Crew {
  start(): void;
  stop(): Promise<void>;
  /** Agents that hold a ready session or, without a socket by choice, have been answered by REST. */
  readonly connected: number;
  readonly size: number;
  /** Answered heartbeats. */
  readonly heartbeats: number;
  readonly reconnects: number;
}

interface Station {
  readonly agent: Agent;
  readonly isConnected: () => boolean;
}

const man = (
  member: Member,
  index: number,
  {
    options,
    http,
    bootId,
    counts,
  }: { readonly options: CrewOptions; readonly http: Http; readonly bootId: string; readonly counts: { heartbeats: number; reconnects: number } },
): Station => {
  const { url, ledger, time, seed, members, rampPerSecond } = options;
  const random = createRandom(seed + index + 1);
  const polls = options.random() * 100 < options.pollOnlyPct;
  let sessions = 0;
  let answered = false;
  const on: AgentEvents = {
    ready: () => {
      sessions += 1;
      if (sessions > 1) counts.reconnects += 1;
    },
    delivered: ledger.delivered,
    executed: ledger.executed,
    settled: ({ commandId }) => ledger.settled(commandId),
    forgotten: ledger.forgotten,
    alarm: options.onAlarm,
    heartbeat: () => {
      counts.heartbeats += 1;
    },
    polled: () => {
      answered = true;
    },
  };
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
    handlers: createHandlers({ apps: createApps({ time, random }), time }),
    mode: polls ? "poll" : "socket",
    firstWindowMs: (members.length / rampPerSecond) * 1_000,
  };
  const agent = createAgent(options.tune?.(member, plain, index) ?? plain);
  return { agent, isConnected: () => (polls ? answered : agent.state === "ready") };
};

export const createCrew = (options: CrewOptions): Crew => {
  const http = createHttp(options.url, REST_SOCKETS);
  const counts = { heartbeats: 0, reconnects: 0 };
  const bootId = readBootId();
  const stations = options.members.map((member, index) => man(member, index, { options, http, bootId, counts }));
  return {
    start: () => {
      for (const { agent } of stations) agent.start();
    },
    stop: async () => {
      await Promise.all(stations.map(({ agent }) => agent.stop()));
      http.close();
    },
    size: stations.length,
    get connected() {
      return stations.reduce((sum, { isConnected }) => sum + Number(isConnected()), 0);
    },
    get heartbeats() {
      return counts.heartbeats;
    },
    get reconnects() {
      return counts.reconnects;
    },
  };
};
