// What others are told about agents: who is online, who is not, how soon, and how often it is said.
import { z } from "zod";
import { type PairedDevice, pause, systemTime as time } from "../../agent-sim/agent/index.ts";
import type { Percentiles } from "../../agent-sim/fleet/latency.ts";
import { createLatency } from "../../agent-sim/fleet/latency.ts";
import { throughDoor } from "./agents.ts";
import { createRig, type Rig, type RigOptions } from "./rig.ts";
import { LATE_CLOSE_WINS } from "./sabotage.ts";
import type { Context, Outcome, Scenario } from "./scenario.ts";
import type { Stage } from "./trial.ts";

const HEARTBEAT_SECONDS = 2;
const GRACE_SECONDS = 3;
/** Three heartbeats and ten seconds, the sweep, and the time of this poll. */
export const OFFLINE_WITHIN_MS = (HEARTBEAT_SECONDS * 3 + 10) * 1_000 + 6_000;
const LOOK_MS = 400;
const PAGE = 100;
export const PRESENCE_ENV = { HEARTBEAT_SECONDS: String(HEARTBEAT_SECONDS), CLOSE_GRACE_SECONDS: String(GRACE_SECONDS) };

const Listed = z.object({ data: z.array(z.object({ deviceId: z.string(), status: z.string() })) });

/** Device and status, by the public API; null when it does not answer. */
const look = async ({ http, credentials }: Rig): Promise<ReadonlyMap<string, string> | null> => {
  const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId };
  const found = new Map<string, string>();
  for (let page = 1; page < 100; page += 1) {
    const answer = await http.call({ method: "GET", path: `/v1/devices?page=${page}&pageSize=${PAGE}`, headers }).catch(() => null);
    if (answer?.status !== 200) return null;
    const { data } = Listed.parse(answer.body);
    for (const { deviceId, status } of data) found.set(deviceId, status);
    if (data.length < PAGE) return found;
  }
  return found;
};

export interface Watch {
  /** How often each device was seen to turn offline. */
  readonly turns: Map<string, number>;
  readonly firstOfflineAtMs: Map<string, number>;
  stop(): Promise<void>;
}
/** Looks again and again; a turn that lasts shorter than a look is not seen. */
export const watchPresence = (rig: Rig): Watch => {
  const turns = new Map<string, number>();
  const firstOfflineAtMs = new Map<string, number>();
  let before: ReadonlyMap<string, string> = new Map();
  let over = false;
  const run = async (): Promise<void> => {
    while (!over) {
      const now = await look(rig);
      for (const [deviceId, status] of now ?? []) {
        if (status !== "offline" || before.get(deviceId) !== "online") continue;
        turns.set(deviceId, (turns.get(deviceId) ?? 0) + 1);
        if (!firstOfflineAtMs.has(deviceId)) firstOfflineAtMs.set(deviceId, time.elapsedMs());
      }
      before = now ?? before;
      await pause(time, LOOK_MS);
    }
  };
  const running = run();
  return {
    turns,
    firstOfflineAtMs,
    stop: () => {
      over = true;
      return running;
    },
  };
};

interface Seen {
  readonly detection: Percentiles;
  readonly falseOffline: number;
  readonly undetected: number;
  readonly repeated: number;
}
const judgePresence = ({ turns, firstOfflineAtMs }: Watch, gone: ReadonlySet<string>, sinceMs: number): Seen => {
  const detection = createLatency();
  for (const [deviceId, atMs] of firstOfflineAtMs) if (gone.has(deviceId)) detection.add(atMs - sinceMs);
  return {
    detection: detection.percentiles(),
    falseOffline: [...turns.keys()].filter((deviceId) => !gone.has(deviceId)).length,
    undetected: [...gone].filter((deviceId) => !turns.has(deviceId)).length,
    repeated: [...turns.values()].filter((count) => count > 1).length,
  };
};

interface Script {
  /** Which agents meet trouble: every second one. */
  readonly trouble: (stage: Stage, door: Awaited<ReturnType<Rig["door"]>>) => Promise<void>;
  /** Whether those in trouble should be offline in the end. */
  readonly expectGone: boolean;
  /** How the gateways and their database are spoilt under the control. */
  readonly spoilt: Pick<RigOptions, "env" | "sabotage">;
  /** See Scale; heartbeats beat as much faster. */
  readonly haste: number;
}

const runPresence = async ({ seed, scale, control }: Context, script: Script): Promise<Outcome> => {
  const spoilt = control ? script.spoilt : {};
  const rig = await createRig({ nodes: 1, seed, ...spoilt, env: { ...PRESENCE_ENV, ...spoilt.env } });
  try {
    const door = await rig.door();
    const members = await rig.provision(scale.agents);
    const troubled: ReadonlySet<string> = new Set(members.filter((_: PairedDevice, index) => index % 2 === 0).map(({ deviceId }) => deviceId));
    const state: { watch: Watch | null; sinceMs: number } = { watch: null, sinceMs: 0 };
    const trial = await throughDoor(rig, door, {
      seed,
      scale: { ...scale, haste: script.haste, seconds: Math.max(scale.seconds, 5) },
      members,
      impatient: control,
      uses: (index) => index % 2 === 0,
      trouble: async (stage) => {
        state.watch = watchPresence(rig);
        await stage.wait(1_500);
        state.sinceMs = time.elapsedMs();
        await script.trouble(stage, door);
        await state.watch.stop();
      },
      relief: () => door.calm(),
    });
    const none: ReadonlySet<string> = new Set();
    const gone = script.expectGone ? troubled : none;
    const seen = state.watch ? judgePresence(state.watch, gone, state.sinceMs) : null;
    return {
      ...trial,
      n: members.length,
      violations: { ...trial.violations, "false-offline": seen?.falseOffline ?? 1, undetected: seen?.undetected ?? 1, "offline-repeated": seen?.repeated ?? 1 },
      latencyMs: script.expectGone && seen ? seen.detection : trial.latencyMs,
      notes: [...trial.notes, script.expectGone ? "milliseconds are from the cut to offline, as the API shows it" : "no device may turn offline"],
    };
  } finally {
    await rig.close();
  }
};

const halfOpen: Scenario = {
  name: "half-open",
  promise: "C3",
  claim: `agents behind a dead line are offline within ${OFFLINE_WITHIN_MS / 1_000} s (heartbeat ${HEARTBEAT_SECONDS} s), once; those that answer never are`,
  control: { how: "the gateway asks for a heartbeat every 30 s only, so that silence is noticed after 100 s", red: "undetected" },
  run: (context) =>
    runPresence(context, {
      expectGone: true,
      spoilt: { env: { HEARTBEAT_SECONDS: "30" } },
      haste: 1,
      trouble: async ({ fault, members }, door) => {
        fault(`${Math.ceil(members.length / 2)} agents black-holed`);
        door.set({ hold: ["up", "down"], newcomers: "ignore" });
        await pause(time, OFFLINE_WITHIN_MS);
      },
    }),
};

const flapping: Scenario = {
  name: "flapping",
  promise: "C4",
  claim: `agents whose connection breaks again and again but comes back within ${GRACE_SECONDS} s are never told to be offline`,
  control: { how: "the end of the old connection is written over the new one", red: "false-offline" },
  run: (context) =>
    runPresence(context, {
      expectGone: false,
      spoilt: { sabotage: LATE_CLOSE_WINS },
      // They come back sooner than the grace, and mostly sooner than the end of the old connection is written, a second later.
      haste: 12,
      trouble: async ({ fault, running, wait }, door) => {
        // The back-off grows with each break, so a second one in a row may take longer than the grace; each agent is cut once in a while.
        for (let round = 0; round < 3 && running(); round += 1) {
          fault(`${door.reset(0.5)} connections cut`);
          await wait(3_000);
        }
        await pause(time, (GRACE_SECONDS + 2) * 1_000);
      },
    }),
};

export const presenceScenarios: readonly Scenario[] = [halfOpen, flapping];
