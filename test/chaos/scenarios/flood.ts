// One device is flooded with commands: its queue is full at the stated limit, and other devices notice nothing.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { errorOf, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import type { History } from "../check/history.ts";
import { headersOf, inLanes, isSuccess, orNoAnswer } from "../rig/calls.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import { withSql } from "../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import { runTrial, type TrialStage } from "../trial.ts";

const LIMIT = 50;
const UNLIMITED = 2_000;
const FLOODERS = 12;

const post = (rig: Rig, deviceId: string) =>
  orNoAnswer(
    rig.http.call({
      method: "POST",
      path: `/v1/devices/${deviceId}/commands`,
      headers: { ...headersOf(rig.credentials), "idempotency-key": randomUUID() },
      body: JSON.stringify({ type: "ping" }),
    }),
  );

/** The latency of the other devices' requests that began within these times of the monotonic clock. */
const callsWithin = ({ lines }: History, fromMs: number, toMs: number) => {
  const latency = createLatency();
  const begun = new Map<string, number>();
  for (const line of lines) {
    if (line.op !== "queue") continue;
    if (line.phase === "invoke") begun.set(line.id, line.tMs);
    const startMs = begun.get(line.id);
    if (line.phase === "ok" && startMs !== undefined && startMs >= fromMs && startMs < toMs) latency.add(line.tMs - startMs);
  }
  return latency.percentiles();
};

const runFlood = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed, env: { COMMAND_QUEUE_PER_DEVICE: String(control ? UNLIMITED : LIMIT) } }, async (rig) => {
    // This device never connects, so nothing leaves its queue.
    const [flooded] = await rig.provision(1);
    const deviceId = flooded?.deviceId ?? "";
    const state = { accepted: 0, full: 0, strange: 0, sinceMs: 0 };
    const flood = async ({ running, wait, fault }: TrialStage): Promise<void> => {
      await wait((scale.seconds * 1_000) / 2);
      state.sinceMs = time.elapsedMs();
      fault("one device is flooded");
      await inLanes(Array.from({ length: FLOODERS }), FLOODERS, async () => {
        while (running()) {
          const answer = await post(rig, deviceId);
          if (answer === null) continue;
          if (isSuccess(answer)) state.accepted += 1;
          else if (answer.status === 429 && errorOf(answer).code === "COMMAND_QUEUE_FULL") state.full += 1;
          else state.strange += 1;
        }
      });
    };
    // A low rate, so that the other devices' queues never come near the limit.
    const trial = await runTrial({ rig, seed, scale, impatient: control, trouble: flood });
    const [row] = await withSql(rig.postgres, (sql) =>
      sql.query<{ held: string }>("select count(*) as held from commands_now where device_id = $1 and deadline_at is not null", [deviceId]),
    );
    const held = z.coerce.number().parse(row?.held ?? 0);
    const before = callsWithin(trial.history, 0, state.sinceMs);
    const during = callsWithin(trial.history, state.sinceMs, Number.POSITIVE_INFINITY);
    const ratio = before.p99 === null || during.p99 === null ? "unknown" : (during.p99 / before.p99).toFixed(1);
    const { refused, ...others } = trial.violations;
    return {
      ...trial,
      violations: {
        ...others,
        "neighbour-refused": refused ?? 0,
        "over-limit": Math.max(0, held - LIMIT, state.accepted - LIMIT),
        "not-refused": state.full === 0 ? 1 : 0,
        "refused-otherwise": state.strange,
      },
      latencyMs: during,
      notes: [
        ...trial.notes,
        `n counts the other devices' commands; ms are of their queue calls during the flood: p99 is ${ratio} times that before it (${before.p99} ms)`,
        `the flooded device accepted ${state.accepted} of ${state.accepted + state.full + state.strange} and holds ${held}; the limit is ${LIMIT}`,
      ],
    };
  });

export const floodScenarios: readonly Scenario[] = [
  {
    name: "flooded-device",
    promise: "R14",
    claim: `the queue of a flooded device accepts ${LIMIT} commands and then answers 429; commands of other devices are accepted and end as usual`,
    control: { how: `the gateway runs with a limit of ${UNLIMITED}`, red: "over-limit" },
    run: runFlood,
  },
];
