// One agent of a fleet: what outlasts its process, and the processes that follow each other when it is updated or killed.
import {
  type Agent,
  type AgentEvents,
  type AgentMachine,
  type AgentOptions,
  createAgent,
  createApps,
  createHandlers,
  createMemoryJournal,
  createRandom,
  type Http,
  nameOfEnd,
  type PairedDevice,
  type Random,
  type Time,
  thisMachine,
} from "../agent/index.ts";
import { openBackupMemory } from "../host/backups/simulated-engine.ts";
import { createInventorySync, type InventorySync } from "../host/inventory-sync.ts";
import type { CommandTracker } from "./command-tracker.ts";
import { type AppFailures, createFleetApps, type FleetApps, type FleetAppsOptions } from "./fleet-apps.ts";
import { createUpdateHandlers, machineWith, type UpdateFate, type UpdateShares } from "./fleet-updates.ts";
import { createLifetime, type Lifetime } from "./lifetime.ts";

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

export interface FleetMember {
  readonly deviceId: string;
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** As `kill -9`, and a new start. */
  readonly kill: () => void;
  readonly isLost: () => boolean;
  /** The apps of the process that runs now. */
  readonly apps: FleetApps;
  /** Null: nobody has said what its machine is. */
  readonly inventory: InventorySync | null;
  readonly isConnected: () => boolean;
  readonly describe: () => string;
  readonly waitMs: () => number;
}

export interface FleetMemberDeps {
  readonly options: AgentGroupOptions;
  readonly http: Http;
  readonly bootId: string;
  readonly counts: { heartbeats: number; reconnects: number };
  readonly fate: UpdateFate;
}

/** What an agent has in its memory only. */
interface Process {
  readonly apps: FleetApps;
  readonly life: Lifetime;
}

export const createFleetMember = (member: PairedDevice, index: number, { options, http, bootId, counts, fate }: FleetMemberDeps): FleetMember => {
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
    executed: (commandId) => {
      if (!resumed.delete(commandId)) tracker.executed(commandId);
    },
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
  /** What the next process carries on, which does not count as a second run. */
  const resumed = new Set<string>();
  const { memory = openBackupMemory(null), tuneBackups } = options.backupsOf?.(index) ?? {};
  const journal = createMemoryJournal(time.wallMs);
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
  const begin = (mayHaveApps: boolean): Process => {
    const life = createLifetime();
    const apps = createFleetApps({
      time,
      seed: seed + index,
      failures: options.appFailuresOf?.(index) ?? options.appFailures ?? {},
      mayHaveApps,
      memory: life.memory(memory),
      ...(tuneBackups === undefined ? {} : { tuneBackups }),
      call: (...request) => agent.call(...request),
    });
    return { apps, life };
  };
  let now = begin(options.mayHaveApps ?? false);
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
    journal: now.life.journal(journal),
    handlers: now.life.handlers({ ...createHandlers({ apps: createApps({ time, random }), time, machine }), ...now.apps.handlers, ...updates }),
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
      now.apps.stop();
      return agent.stop();
    },
    kill: () => {
      now.life.end();
      now.apps.stop();
      agent.kill();
      answered = false;
      for (const { commandId, result, again } of journal.unsettled()) if (result === null && again !== null) resumed.add(commandId);
      now = begin(true);
      agent = create(0);
      agent.start();
    },
    isLost: () => lost,
    get apps() {
      return now.apps;
    },
    inventory,
    isConnected: () => (polls ? answered : agent.state === "ready"),
    describe: () => `${member.deviceId} is ${agent.state}: ${lastEnd}`,
    waitMs: () => Math.max(0, triesAtMs - time.elapsedMs()),
  };
};
