// All agents lose their connection at once: they reconnect spread over time, and nobody else notices.

import { pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { createRig } from "../rig/rig.ts";
import type { Scenario } from "../scenario.ts";
import { runTrial } from "../trial.ts";

const BUCKET_MS = 500;
/** Covers the longest first window of a fleet of this size and the backoff of refused agents. */
const WATCH_MS = 9_000;
/** With so few agents, chance alone puts some together. */
const crowdOf = (agents: number): number => Math.max(6, Math.ceil(agents / 3));

const peakOf = (arrivals: readonly number[], sinceMs: number): number => {
  const buckets = new Map<number, number>();
  for (const atMs of arrivals) {
    const bucket = Math.floor((atMs - sinceMs) / BUCKET_MS);
    if (bucket >= 0) buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
  }
  return Math.max(0, ...buckets.values());
};

const storm: Scenario = {
  name: "reconnect-storm",
  promise: "C6",
  claim: "when all connections break at once, agents reconnect spread over the window, and the API keeps answering",
  control: { how: "the agents' jitter is off, so all reconnect at once", red: "crowded" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: 1, seed });
    const latency = createLatency();
    const state = { peak: 0, failedCalls: 0, calls: 0 };
    const headers = { "x-api-key": rig.credentials.apiKey, "x-svc-tenant-id": rig.credentials.tenantId };
    const ask = async (): Promise<void> => {
      const startMs = time.elapsedMs();
      const answer = await rig.http.call({ method: "GET", path: "/v1/devices?pageSize=10", headers }).catch(() => null);
      state.calls += 1;
      if (answer?.status !== 200) state.failedCalls += 1;
      latency.add(time.elapsedMs() - startMs);
    };
    try {
      const trial = await runTrial({
        rig,
        seed,
        scale: { ...scale, haste: 1, seconds: Math.max(scale.seconds, 5) },
        impatient: false,
        tune: (_, base) => (control ? { ...base, random: () => 0 } : base),
        trouble: async ({ fault, wait }) => {
          await wait(1_000);
          const sinceMs = time.elapsedMs();
          fault(`${rig.agentProxy.reset()} connections cut at once`);
          while (time.elapsedMs() - sinceMs < WATCH_MS) {
            await ask();
            await pause(time, 100);
          }
          state.peak = peakOf(rig.agentProxy.arrivals, sinceMs);
        },
      });
      return {
        ...trial,
        violations: { ...trial.violations, crowded: state.peak > crowdOf(scale.agents) ? 1 : 0, "failed-calls": state.failedCalls },
        latencyMs: latency.percentiles(),
        notes: [
          ...trial.notes,
          `at most ${state.peak} of ${scale.agents} agents reconnected within ${BUCKET_MS} ms; ms are of ${state.calls} API calls during the storm`,
        ],
      };
    } finally {
      await rig.close();
    }
  },
};

export const stormScenarios: readonly Scenario[] = [storm];
