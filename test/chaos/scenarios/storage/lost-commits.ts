// Creations under idempotency keys while answers to COMMIT get lost and the database goes silent; then every request is repeated.
import { z } from "zod";
import { callWithRetry, createRandom, type Http, type HttpAnswer, pause, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../../agent-sim/fleet/latency.ts";
import { losingCommits } from "../../check/commits.ts";
import { headersOf, inLanes, isSuccess, orNoAnswer, patience, withClients } from "../../rig/calls.ts";
import { withRig } from "../../rig/rig.ts";
import { KEY_IS_KEPT_BESIDE } from "../../rig/sabotage.ts";
import { ask } from "../../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";

const LANES = 24;
const LOST_SHARE = 0.3;
/** Longer than a gateway waits for its database. */
const SILENCE_MS = 9_500;
const WITHIN_MS = 60_000;
const Made = z.object({ data: z.unknown() });

type Credentials = Parameters<typeof headersOf>[0];
/** Two kinds of creations whose rows show the key they were made under. */
const creation = (key: string, index: number, credentials: Credentials) => ({
  method: "POST" as const,
  path: index % 2 === 0 ? "/v1/devices/provision" : "/v1/pairing/enrollment-tokens",
  headers: { ...headersOf(credentials), "idempotency-key": key },
  body: JSON.stringify(index % 2 === 0 ? { count: 1, tags: [key] } : { name: key }),
});
const MADE = "select tags[1] as key from devices where tags[1] like 'key-%' union all select name from enrollment_tokens where name like 'key-%'";

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const random = createRandom(seed);
  const state = { losing: false, lost: 0, failed: 0, replayed: 0, differing: 0, refused: 0, unanswered: 0 };
  const lose = (): boolean => {
    const loses = state.losing && random() < LOST_SHARE;
    if (loses) state.lost += 1;
    return loses;
  };
  return withRig({ nodes: 2, seed, databaseFilter: losingCommits(lose), sabotage: control ? KEY_IS_KEPT_BESIDE : undefined }, (rig) =>
    withClients(rig.nodes, async (clients) => {
      const indices = Array.from({ length: scale.agents > 50 ? 480 : 96 }, (_, index) => index);
      const keyOf = (index: number): string => `key-${index}`;
      const call = (index: number, turn: number): Promise<HttpAnswer> =>
        (clients[(index + turn) % clients.length] as Http).call(creation(keyOf(index), index, rig.credentials));
      const first = new Map<number, string>();
      const latency = createLatency();
      const silence = async (): Promise<void> => {
        rig.databaseProxy.set({ hold: ["up", "down"], newcomers: "ignore" });
        await pause(time, SILENCE_MS);
        rig.databaseProxy.calm();
      };
      let silent: Promise<void> | null = null;
      state.losing = true;
      await inLanes(indices, LANES, async (index) => {
        if (index >= indices.length / 2) silent ??= silence();
        const answer = await orNoAnswer(call(index, 0));
        if (answer !== null && isSuccess(answer)) first.set(index, JSON.stringify(Made.parse(answer.body).data));
        else state.failed += 1;
      });
      await silent;
      state.losing = false;
      // In the control a key is stored once its caller has an answer, so repeating answered requests would do no harm.
      const again = control ? indices.filter((index) => !first.has(index)) : indices;
      await inLanes(again, LANES, async (index) => {
        const startMs = time.elapsedMs();
        let turn = 0;
        const answer = await orNoAnswer(callWithRetry(() => call(index, ++turn), patience(WITHIN_MS)));
        latency.add(time.elapsedMs() - startMs);
        if (answer === null) state.unanswered += 1;
        else if (!isSuccess(answer)) state.refused += 1;
        else {
          if (answer.headers["idempotent-replayed"] === "true") state.replayed += 1;
          const told = first.get(index);
          if (told !== undefined && told !== JSON.stringify(Made.parse(answer.body).data)) state.differing += 1;
        }
      });
      const made = new Map<string, number>();
      for (const { key } of await ask<{ key: string }>(rig.postgres, MADE)) made.set(key, (made.get(key) ?? 0) + 1);
      return {
        n: indices.length,
        faults: state.lost + 1,
        violations: {
          "made-twice": [...made.values()].filter((count) => count > 1).length,
          "never-made": indices.filter((index) => !made.has(keyOf(index))).length,
          "answers-differ": state.differing,
          unanswered: state.unanswered,
          refused: state.refused,
        },
        latencyMs: latency.percentiles(),
        notes: [
          `n counts creations, each under its own key and repeated on the other node; ms are from the repeat to its final answer`,
          `${state.lost} answers to COMMIT were lost, PostgreSQL was silent for ${SILENCE_MS} ms; ${state.failed} creations failed at first, ${state.replayed} repeats were replays`,
        ],
      };
    }),
  );
};

const lostCommits: Scenario = {
  name: "lost-commits",
  promise: "R11",
  claim: "creations under keys whose COMMIT goes unanswered, or during which PostgreSQL is silent for 9.5 s, have one effect each once all are repeated",
  control: { how: "the key is stored after the effect, in a separate transaction", red: "made-twice" },
  run,
};

export const lostCommitScenarios: readonly Scenario[] = [lostCommits];
