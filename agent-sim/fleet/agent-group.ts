// Many agents in one process, started, counted and stopped together.
import { createHttp, readBootId } from "../agent/index.ts";
import type { FleetApps } from "./fleet-apps.ts";
import { type AgentGroupOptions, createFleetMember, type FleetMember } from "./fleet-member.ts";
import { updateFatesOf } from "./fleet-updates.ts";

const REST_SOCKETS = 32;
/** Beside the time in which the agents connect. */
const INVENTORY_WINDOW_MS = 2_000;

export interface AgentGroup {
  start(): void;
  stop(): Promise<void>;
  /** Kills the process of this device's agent and starts another, which has what the first one had stored. */
  kill(deviceId: string): void;
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

export const createAgentGroup = (options: AgentGroupOptions): AgentGroup => {
  const http = createHttp(options.url, REST_SOCKETS);
  const counts = { heartbeats: 0, reconnects: 0 };
  const bootId = readBootId();
  const fates = updateFatesOf(options.members.length, options.updates ?? {}, options.seed);
  const agents = options.members.map((member, index) => createFleetMember(member, index, { options, http, bootId, counts, fate: fates[index] ?? "works" }));
  const present = (): readonly FleetMember[] => agents.filter(({ isLost }) => !isLost());
  return {
    start: () => {
      for (const { start, inventory } of agents) {
        start();
        inventory?.start(INVENTORY_WINDOW_MS + (options.members.length / options.rampPerSecond) * 1_000);
      }
    },
    stop: async () => {
      for (const { inventory } of agents) inventory?.stop();
      await Promise.all(agents.map(({ stop }) => stop()));
      http.close();
    },
    get size() {
      return present().length;
    },
    kill: (deviceId) => agents.find((each) => each.deviceId === deviceId)?.kill(),
    get apps() {
      return new Map(agents.map(({ deviceId, apps }) => [deviceId, apps]));
    },
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
