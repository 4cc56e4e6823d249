// Commands that a session has sent and that are not written as sent yet: whatever overtakes the write, nothing that the agent has got ends as if it had
// never been sent, and nothing is stranded, sent twice or ended twice. MODEL_RUNS=5000 searches longer, SEED=… repeats a search; test/release/long-model.test.ts goes on where this stops.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EFFORT, SEED } from "../../kit/gateway/seed.ts";
import type { Sabotage } from "./unwritten-sends/node.ts";
import { type Moment, type Op, type Program, STEPS } from "./unwritten-sends/programs.ts";
import { openStage, type Stage } from "./unwritten-sends/run.ts";
import { expectPromisesKept, MS_PER_RUN } from "./unwritten-sends/search.ts";

const RUNS = Number(process.env["MODEL_RUNS"] ?? 30 * EFFORT);

describe("commands in hand", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage();
  });
  afterAll(() => stage.close());

  test(`what was sent and not written yet keeps its promises through ${RUNS} programs of ${STEPS} steps (seed ${SEED})`, {
    timeout: 60_000 + RUNS * MS_PER_RUN,
  }, async () => {
    await expectPromisesKept(stage, RUNS, SEED);
  });

  test("the stories of the controls break none", async () => {
    for (const [what, , story] of CONTROLS) expect([what, await stage.run(momentsOf(story), programsOf(story))]).toEqual([what, null]);
  });
});

const without =
  (guard: string, instead: string) =>
  (text: string): string =>
    text.replaceAll(guard, instead);
const HELLO: Op = { kind: "hello", at: 0 };
const CUT: Op = { kind: "bus", is: "refusing" };
const create = (lifeMs: number | null = null): Op => ({ kind: "create", at: 0, lane: null, safe: true, asksAck: true, lifeMs });
const cancel: Op = { kind: "cancel", at: 1, of: 0 };
/** Each control, and the shortest story that needs what it leaves out. */
const CONTROLS: readonly (readonly [what: string, sabotage: Sabotage, story: readonly Op[]])[] = [
  ["answers a canceller without writing", { settlesUnasked: true }, [HELLO, create(), cancel]],
  ["ends sessions without writing", { endsUnwritten: true }, [HELLO, create(), { kind: "end" }, cancel]],
  [
    "ends commands whatever happened to them since",
    { sql: without("and o.revision = v.revision offset 0", "and v.revision is not null offset 0") },
    [HELLO, create(), CUT, cancel, { kind: "ack", at: 0, of: 0, word: "succeeded" }],
  ],
  [
    "expires commands without a grace",
    { sql: without("and (q.status <> 'queued' or q.deadline_at <= now() - $2 * interval '1 millisecond')", "and $2::float8 is not null") },
    [HELLO, create(150), CUT],
  ],
  [
    "lets polls take what the socket has just sent",
    { sql: without("then $6 * interval '1 millisecond'", "then 0 * $6 * interval '1 millisecond'") },
    [HELLO, create(), { kind: "poll", at: 1 }],
  ],
];

// Less than the write-behind takes, in the last step.
const momentsOf = (story: readonly Op[]): readonly Moment[] => story.map((_op, at) => ({ advanceMs: at === story.length - 1 ? 160 : 0, reaps: true }));
const programsOf = (story: readonly Op[]): readonly Program[] => [{ lists: false, acts: story.map((op) => ({ op, beside: null })) }];

test.concurrent.each(CONTROLS)("a queue that %s breaks a promise", async (_, sabotage, story) => {
  const sabotaged = await openStage(sabotage);
  expect(await sabotaged.run(momentsOf(story), programsOf(story))).not.toBeNull();
  await sabotaged.close();
});
