// The presence that others see: which agents are online, how soon a change shows, and how often it is announced.
import { z } from "zod";
import { type PairedDevice, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { Percentiles } from "../../../agent-sim/fleet/latency.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { createRig, type Rig, type RigOptions } from "../rig/rig.ts";
import { LATE_CLOSE_WINS } from "../rig/sabotage.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import type { TrialStage } from "../trial.ts";
import { throughProxy } from "./agents.ts";

const HEARTBEAT_SECONDS = 2;
const GRACE_SECONDS = 3;
/** Three heartbeats and ten seconds, plus the sweep and the period of this poll. */
export const OFFLINE_WITHIN_MS = (HEARTBEAT_SECONDS * 3 + 10) * 1_000 + 6_000;
const LOOK_MS = 400;
const PAGE = 100;
export const PRESENCE_ENV = { HEARTBEAT_SECONDS: String(HEARTBEAT_SECONDS), CLOSE_GRACE_SECONDS: String(GRACE_SECONDS) };

const Listed = z.object({ data: z.array(z.object({ deviceId: z.string(), status: z.string() })) });

/** The status of each device from the public API; null if it does not answer. */
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
  /** How often each device was seen turning offline. */
  readonly turns: Map<string, number>;
  readonly firstOfflineAtMs: Map<string, number>;
  stop(): Promise<void>;
}
/** Polls the statuses; it does not see a change that is shorter than the period. */
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
  /** Troubles every second agent. */
  readonly trouble: (stage: TrialStage, proxy: Awaited<ReturnType<Rig["openProxy"]>>) => Promise<void>;
  /** Whether the troubled agents should be offline in the end. */
  readonly expectGone: boolean;
  /** How the control sabotages the gateways and their database. */
  readonly spoilt: Pick<RigOptions, "env" | "sabotage">;
  /** See Scale; heartbeats are as much faster. */
  readonly haste: number;
}

const runPresence = async ({ seed, scale, control }: Context, script: Script): Promise<ScenarioOutcome> => {
  const spoilt = control ? script.spoilt : {};
  const rig = await createRig({ nodes: 1, seed, ...spoilt, env: { ...PRESENCE_ENV, ...spoilt.env } });
  try {
    const proxy = await rig.openProxy();
    const members = await rig.provision(scale.agents);
    const troubled: ReadonlySet<string> = new Set(members.filter((_: PairedDevice, index) => index % 2 === 0).map(({ deviceId }) => deviceId));
    const state: { watch: Watch | null; sinceMs: number } = { watch: null, sinceMs: 0 };
    const trial = await throughProxy(rig, proxy, {
      seed,
      scale: { ...scale, haste: script.haste, seconds: Math.max(scale.seconds, 5) },
      members,
      impatient: control,
      uses: (index) => index % 2 === 0,
      trouble: async (stage) => {
        state.watch = watchPresence(rig);
        await stage.wait(1_500);
        state.sinceMs = time.elapsedMs();
        await script.trouble(stage, proxy);
        await state.watch.stop();
      },
      relief: () => proxy.calm(),
    });
    const none: ReadonlySet<string> = new Set();
    const gone = script.expectGone ? troubled : none;
    const seen = state.watch ? judgePresence(state.watch, gone, state.sinceMs) : null;
    return {
      ...trial,
      n: members.length,
      violations: { ...trial.violations, "false-offline": seen?.falseOffline ?? 1, undetected: seen?.undetected ?? 1, "offline-repeated": seen?.repeated ?? 1 },
      latencyMs: script.expectGone && seen ? seen.detection : trial.latencyMs,
      notes: [...trial.notes, script.expectGone ? "ms are from the cut to offline in the API" : "no device may turn offline"],
    };
  } finally {
    await rig.close();
  }
};

const halfOpen: Scenario = {
  name: "half-open",
  promise: "C3",
  claim: `agents behind a dead connection turn offline once, within ${OFFLINE_WITHIN_MS / 1_000} s (heartbeat ${HEARTBEAT_SECONDS} s); agents that answer never do`,
  control: { how: "the gateway asks for a heartbeat only every 30 s, so it notices silence after 100 s", red: "undetected" },
  run: (context) =>
    runPresence(context, {
      expectGone: true,
      spoilt: { env: { HEARTBEAT_SECONDS: "30" } },
      haste: 1,
      trouble: async ({ fault, members }, proxy) => {
        fault(`${Math.ceil(members.length / 2)} agents black-holed`);
        proxy.set({ hold: ["up", "down"], newcomers: "ignore" });
        await pause(time, OFFLINE_WITHIN_MS);
      },
    }),
};

const flapping: Scenario = {
  name: "flapping",
  promise: "C4",
  claim: `agents whose connection breaks again and again but returns within ${GRACE_SECONDS} s are never announced offline`,
  control: { how: "the end of the old connection overwrites the new one", red: "false-offline" },
  run: (context) =>
    runPresence(context, {
      expectGone: false,
      spoilt: { sabotage: LATE_CLOSE_WINS },
      // They return within the grace, and mostly before the end of the old connection is written a second later.
      haste: 12,
      trouble: async ({ fault, running, wait }, proxy) => {
        // The backoff grows with each cut, so a second one in a row may exceed the grace; cut each agent only now and then.
        for (let round = 0; round < 3 && running(); round += 1) {
          fault(`${proxy.reset(0.5)} connections cut`);
          await wait(3_000);
        }
        await pause(time, (GRACE_SECONDS + 2) * 1_000);
      },
    }),
};

export const presenceScenarios: readonly Scenario[] = [halfOpen, flapping];
