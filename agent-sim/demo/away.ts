// The machines that are switched off soon after they have reported once.
import { createRandom, type PairedDevice, type Time, until } from "../agent/index.ts";
import { createAgentGroup } from "../fleet/agent-group.ts";
import { createCommandTracker } from "../fleet/command-tracker.ts";
import type { SimulatedMachine } from "../fleet/machines.ts";

/** The first heartbeat comes within 5 s of the first connect. */
const WITHIN_MS = 20_000;
const LOOK_MS = 100;

export interface AwayOptions {
  readonly url: string;
  readonly members: readonly PairedDevice[];
  readonly machines: readonly SimulatedMachine[];
  readonly seed: number;
  readonly time: Time;
  readonly signal: AbortSignal;
}

export const comeAndGo = async ({ url, members, machines, seed, time, signal }: AwayOptions): Promise<void> => {
  if (members.length === 0) return;
  const group = createAgentGroup({
    url,
    members,
    machines,
    seed,
    time,
    tracker: createCommandTracker(time.elapsedMs),
    random: createRandom(seed),
    heartbeatSec: null,
    pollOnlyPct: 0,
    rampPerSecond: members.length,
    onAlarm: () => undefined,
  });
  group.start();
  try {
    await until(time, () => group.heartbeats >= group.size, { everyMs: LOOK_MS, withinMs: WITHIN_MS, signal });
  } finally {
    await group.stop();
  }
};
