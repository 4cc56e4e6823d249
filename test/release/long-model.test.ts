// The queue agrees with its model through more interleavings than test/features/commands/model.test.ts has the time for. The seeds go on where those stop.
import { afterAll, beforeAll, expect, test } from "vitest";
import { STEPS } from "../features/commands/model/programs.ts";
import { openReplay, type Replay } from "../features/commands/model/replay.ts";
import { expectAgreement } from "../features/commands/model/search.ts";
import { SEED } from "../kit/gateway/seed.ts";

const RUNS = 1_600;
/** More than a run takes on a machine that does four other things. */
const LONGEST_MS = 600_000;
const RUNS_OF_THE_SUITE = 400;

let replay: Replay;
beforeAll(async () => {
  replay = await openReplay();
});
afterAll(() => replay.close());

test(`the queue agrees with the model through ${RUNS} more interleavings of ${STEPS} steps (seed ${SEED})`, {
  timeout: LONGEST_MS,
}, async () => {
  await expect(expectAgreement(replay, RUNS, SEED + RUNS_OF_THE_SUITE)).resolves.toBeUndefined();
});
