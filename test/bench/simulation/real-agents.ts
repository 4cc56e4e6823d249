// A process with a part of the agents of real.ts, which tells what to do: connect, lose all sockets, stop.
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { createRandom, nameOfEnd, type PairedDevice, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { type AgentGroup, createAgentGroup } from "../../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import type { AgentGroupOptions } from "../../../agent-sim/fleet/fleet-member.ts";

export interface Part {
  readonly url: string;
  readonly members: readonly PairedDevice[];
  readonly seed: number;
  readonly rampPerSecond: number;
}
/** All sockets, each at a random moment within that time. */
export interface Cut {
  readonly withinMs: number;
}
export type Told = Part | Cut | "stop";
/** Several times a second. */
export interface Said {
  readonly connected: number;
  /** How sessions and attempts to connect have ended since the cut, each with its number. */
  readonly ends: Readonly<Record<string, number>>;
}

const SAY_MS = 50;

const sockets = new Set<Socket>();
subscribe("net.client.socket", (message) => {
  const { socket } = message as { readonly socket: Socket }; // as: its documented message
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
});

let group: AgentGroup | undefined;
let ends: Record<string, number> = {};
const start = ({ url, members, seed, rampPerSecond }: Part): void => {
  const tracker = createCommandTracker(time.elapsedMs);
  const noise = { onAlarm: () => undefined, pollOnlyPct: 0, heartbeatSec: null };
  const tune: AgentGroupOptions["tune"] = (_, options) => ({
    ...options,
    on: {
      ...options.on,
      away: (end, reconnectInMs) => {
        options.on?.away?.(end, reconnectInMs);
        const name = nameOfEnd(end);
        ends[name] = (ends[name] ?? 0) + 1;
      },
    },
  });
  const started = createAgentGroup({ url, members, tracker, time, random: createRandom(seed), seed, rampPerSecond, tune, ...noise });
  started.start();
  group = started;
  setInterval(() => process.send?.({ connected: started.connected, ends } satisfies Said), SAY_MS);
};

const cut = ({ withinMs }: Cut): void => {
  ends = {};
  // A reset leaves no port behind that waits to be free again.
  for (const socket of sockets)
    if (withinMs === 0) socket.resetAndDestroy();
    else setTimeout(() => socket.resetAndDestroy(), Math.random() * withinMs);
};

process.on("message", (told: Told) => {
  if (told === "stop") void group?.stop().then(() => process.exit());
  else if ("withinMs" in told) cut(told);
  else start(told);
});
process.once("disconnect", () => process.exit());
