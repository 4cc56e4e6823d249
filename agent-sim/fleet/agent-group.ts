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
  nameOfEnd,
  type PairedDevice,
  type Random,
  readBootId,
  type Time,
  thisMachine,
} from "../agent/index.ts";
import { createInventorySync, type InventorySync } from "../host/inventory-sync.ts";
import type { CommandTracker } from "./command-tracker.ts";
import { type AppFailures, createFleetApps, type FleetApps, type FleetAppsOptions } from "./fleet-apps.ts";
import { createUpdateHandlers, machineWith, type UpdateFate, type UpdateShares, updateFatesOf } from "./fleet-updates.ts";

const REST_SOCKETS = 32;
/** Beside the time in which the agents connect. */
const INVENTORY_WINDOW_MS = 2_000;

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
  /** What the repositories of the member at this place hold, and what its engine does; default: nothing at first, and everything. */
  readonly backupsOf?: ((index: number) => Pick<FleetAppsOptions, "memory" | "tuneBackups">) | undefined;
  /** The shares of ordered updates of the agent that do not work; default: none. */
  readonly updates?: UpdateShares | undefined;
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
  /** Without the agents that an update has lost. */
  readonly size: number;
  /** Number of answered heartbeats. */
  readonly heartbeats: number;
  readonly reconnects: number;
  /** What each agent that is not connected says of its last end and its wait. */
  readonly missing: readonly string[];
  /** Until the last agent that waits out its backoff tries again; 0 if none does. */
  readonly longestWaitMs: number;
  /** The apps of each device, by its id. */
  readonly apps: ReadonlyMap<string, FleetApps>;
}

interface GroupMember {
  readonly deviceId: string;
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  readonly isLost: () => boolean;
  readonly apps: FleetApps;
  /** Null: nobody has said what its machine is. */
  readonly inventory: InventorySync | null;
  readonly isConnected: () => boolean;
  readonly describe: () => string;
  readonly waitMs: () => number;
}

const createMember = (
  member: PairedDevice,
  index: number,
  {
    options,
    http,
    bootId,
    counts,
    fate,
  }: {
    readonly options: AgentGroupOptions;
    readonly http: Http;
    readonly bootId: string;
    readonly counts: { heartbeats: number; reconnects: number };
    readonly fate: UpdateFate;
  },
): GroupMember => {
  const { url, tracker, time, seed, members, rampPerSecond } = options;
  const random = createRandom(seed + index + 1);
  const polls = options.random() * 100 < options.pollOnlyPct;
  let sessions = 0;
  let answered = false;
  let lastEnd = "no session has ended";
  let triesAtMs = 0;
  const on: AgentEvents = {
    ready: () => {
      sessions += 1;
      if (sessions > 1) counts.reconnects += 1;
    },
    delivered: tracker.delivered,
    executed: tracker.executed,
    settled: ({ commandId }) => tracker.settled(commandId),
    forgotten: tracker.forgotten,
    away: (end, reconnectInMs) => {
      triesAtMs = time.elapsedMs() + (reconnectInMs ?? 0);
      const wait = reconnectInMs === null ? "until REST accepts the agent" : `for ${Math.round(reconnectInMs)} ms`;
      lastEnd = `${nameOfEnd(end)} at ${new Date(time.wallMs()).toISOString()}, and waits ${wait}`;
    },
    alarm: options.onAlarm,
    heartbeat: () => {
      counts.heartbeats += 1;
    },
    polled: () => {
      answered = true;
    },
  };
  const given = options.machines?.[index];
  let machine = given;
  let [stopped, lost] = [false, false];
  const apps = createFleetApps({
    time,
    seed: seed + index,
    failures: options.appFailuresOf?.(index) ?? options.appFailures ?? {},
    mayHaveApps: options.mayHaveApps ?? false,
    ...options.backupsOf?.(index),
    call: (...request) => agent.call(...request),
  });
  const inventory =
    given === undefined
      ? null
      : createInventorySync({ machine: { inventory: () => (machine ?? given).inventory() }, time, random, call: (...request) => agent.call(...request) });
  const restart = async (version: string | null): Promise<void> => {
    lost = version === null;
    await agent.stop({ reason: "upgrade" });
    if (stopped || version === null) return;
    machine = machineWith(given ?? thisMachine, version);
    agent = create(0);
    agent.start();
  };
  const updates = createUpdateHandlers({ fate, time, restart: (version) => void restart(version) });
  const journal = createMemoryJournal(time.wallMs);
  const plain = (firstWindowMs: number): AgentOptions => ({
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
    journal,
    handlers: { ...createHandlers({ apps: createApps({ time, random }), time, machine }), ...apps.handlers, ...updates },
    mode: polls ? "poll" : "socket",
    firstWindowMs,
  });
  const create = (firstWindowMs: number): Agent => {
    const own = plain(firstWindowMs);
    return createAgent(options.tune?.(member, own, index) ?? own);
  };
  let agent = create((members.length / rampPerSecond) * 1_000);
  return {
    deviceId: member.deviceId,
    start: () => agent.start(),
    stop: () => {
      stopped = true;
      return agent.stop();
    },
    isLost: () => lost,
    apps,
    inventory,
    isConnected: () => (polls ? answered : agent.state === "ready"),
    describe: () => `${member.deviceId} is ${agent.state}: ${lastEnd}`,
    waitMs: () => Math.max(0, triesAtMs - time.elapsedMs()),
  };
};

export const createAgentGroup = (options: AgentGroupOptions): AgentGroup => {
  const http = createHttp(options.url, REST_SOCKETS);
  const counts = { heartbeats: 0, reconnects: 0 };
  const bootId = readBootId();
  const fates = updateFatesOf(options.members.length, options.updates ?? {}, options.seed);
  const agents = options.members.map((member, index) => createMember(member, index, { options, http, bootId, counts, fate: fates[index] ?? "works" }));
  const present = (): readonly GroupMember[] => agents.filter(({ isLost }) => !isLost());
  return {
    start: () => {
      for (const { start, inventory } of agents) {
        start();
        inventory?.start(INVENTORY_WINDOW_MS + (options.members.length / options.rampPerSecond) * 1_000);
      }
    },
    stop: async () => {
      for (const { apps, inventory } of agents) {
        apps.stop();
        inventory?.stop();
      }
      await Promise.all(agents.map(({ stop }) => stop()));
      http.close();
    },
    get size() {
      return present().length;
    },
    apps: new Map(agents.map(({ deviceId, apps }) => [deviceId, apps])),
    get connected() {
      return present().reduce((sum, { isConnected }) => sum + Number(isConnected()), 0);
    },
    get missing() {
      return present()
        .filter(({ isConnected }) => !isConnected())
        .map(({ describe }) => describe());
    },
    get longestWaitMs() {
      return Math.max(0, ...agents.map(({ waitMs }) => waitMs()));
    },
    get heartbeats() {
      return counts.heartbeats;
    },
    get reconnects() {
      return counts.reconnects;
    },
  };
};
