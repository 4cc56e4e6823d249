// The queue on real SQL agrees with a plain in-memory model through thousands of interleavings, and the test notices a queue that breaks its promises.
// MODEL_RUNS=20000 searches longer, SEED=… repeats a search.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EFFORT, SEED } from "../../kit/gateway/seed.ts";
import { type Act, program, STEPS, steps, type TimedAct, timeline } from "./model/programs.ts";
import { type Disagreement, openReplay, type Replay, type Sabotage } from "./model/replay.ts";

const RUNS = Number(process.env["MODEL_RUNS"] ?? 2_000 * EFFORT);
const DEVICES_AT_ONCE = 100;
const MS_PER_RUN = 60;

const PATIENCE_WITH_CONTROLS = 1_000;

interface Finding {
  readonly seed: number;
  readonly message: string;
  readonly steps: readonly TimedAct[];
}

/** Runs many programs at a time and returns the first that disagrees. */
const search = async (replay: Replay, runs: number, seed: number): Promise<Finding | null> => {
  for (let done = 0; done < runs; done += DEVICES_AT_ONCE) {
    const [moments = []] = fc.sample(timeline, { seed: seed + done, numRuns: 1 });
    const programs = fc.sample(program, { seed: seed + done, numRuns: Math.min(DEVICES_AT_ONCE, runs - done) }).map(([first, rest]) => [first, ...rest]);
    const found = await replay.run(moments, programs);
    if (found === null) continue;
    const alone = moments.map((moment, at): TimedAct => ({ ...moment, ...(programs[found.device]?.[at] ?? NOTHING) })).slice(0, found.step + 1);
    return { seed, message: found.message, steps: alone };
  }
  return null;
};
const NOTHING: Act = { op: { kind: "crash" }, beside: null };

// A race does not show at every try, so a program with one must pass several times.
const TRIES = 5;
const playAlone = async (replay: Replay, alone: readonly TimedAct[]): Promise<Disagreement | null> => {
  const tries = alone.some(({ beside, reapers }) => beside !== null || reapers > 1) ? TRIES : 1;
  for (let count = 0; count < tries; count += 1) {
    const found = await replay.run(alone, [alone]);
    if (found !== null) return found;
  }
  return null;
};

/** The shortest program that still disagrees. */
const shrink = async (replay: Replay, finding: Finding): Promise<Finding> => {
  let last = finding.message;
  const property = fc.asyncProperty(steps, async (tried) => {
    const wrong = await playAlone(replay, tried);
    if (wrong !== null) last = wrong.message;
    return wrong === null;
  });
  const result = await fc.check(property, { examples: [[[...finding.steps]]], numRuns: 1, interruptAfterTimeLimit: 10_000 });
  return { ...finding, message: last, steps: result.counterexample?.[0] ?? finding.steps };
};

const describeFinding = ({ seed, message, steps: shortest }: Finding): string =>
  `${message}\nSEED=${seed}, shortest:\n${shortest.map((step) => JSON.stringify(step)).join("\n")}`;

describe("queue and model", () => {
  let replay: Replay;
  beforeAll(async () => {
    replay = await openReplay();
  });
  afterAll(() => replay.close());

  test(`the queue agrees with the model through ${RUNS} interleavings of ${STEPS} steps (seed ${SEED})`, { timeout: 60_000 + RUNS * MS_PER_RUN }, async () => {
    const finding = await search(replay, RUNS, SEED);
    if (finding !== null) expect.fail(describeFinding(await shrink(replay, finding)));
  });
});

// The real statements, each control without one of their guards.
const without =
  (guard: string, instead = ""): Sabotage =>
  (sql) =>
    sql.replaceAll(guard, instead);
const CONTROLS: readonly [what: string, sabotage: Sabotage][] = [
  [
    "forgets lanes",
    without(
      "and not exists (select 1 from command_queue b where b.tenant_id = q.tenant_id and b.device_id = q.device_id and b.lane = q.lane and b.seq < q.seq)",
    ),
  ],
  ["serves superseded sessions", without("where p.epoch = w.epoch")],
  ["changes rows without a lock", without("for update offset 0", "offset 0")],
  ["acts on deadlines too late", without("q.deadline_at <= now()", "q.deadline_at <= now() - interval '1 minute'")],
];

test.each(CONTROLS)("the model notices a queue that %s", { timeout: PATIENCE_WITH_CONTROLS * MS_PER_RUN }, async (_, sabotage) => {
  const replay = await openReplay(sabotage);
  const finding = await search(replay, PATIENCE_WITH_CONTROLS, SEED);
  await replay.close();
  expect(finding).not.toBeNull();
});
