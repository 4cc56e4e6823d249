// The queue on real SQL agrees with a plain in-memory model through thousands of interleavings, and the test notices a queue that breaks its promises.
// MODEL_RUNS=20000 searches longer, SEED=… repeats a search; test/release/long-model.test.ts goes on where this stops.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EFFORT, SEED } from "../../kit/gateway/seed.ts";
import { STEPS } from "./model/programs.ts";
import { openReplay, type Replay, type Sabotage } from "./model/replay.ts";
import { expectAgreement, MS_PER_RUN, search } from "./model/search.ts";

const RUNS = Number(process.env["MODEL_RUNS"] ?? 80 * EFFORT);

const PATIENCE_WITH_CONTROLS = 1_000;

describe("queue and model", () => {
  let replay: Replay;
  beforeAll(async () => {
    replay = await openReplay();
  });
  afterAll(() => replay.close());

  test(`the queue agrees with the model through ${RUNS} interleavings of ${STEPS} steps (seed ${SEED})`, { timeout: 60_000 + RUNS * MS_PER_RUN }, async () => {
    await expectAgreement(replay, RUNS, SEED);
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

test.concurrent.each(CONTROLS)("the model notices a queue that %s", { timeout: PATIENCE_WITH_CONTROLS * MS_PER_RUN }, async (_, sabotage) => {
  const replay = await openReplay(sabotage);
  const finding = await search(replay, PATIENCE_WITH_CONTROLS, SEED);
  await replay.close();
  expect(finding).not.toBeNull();
});
