// The queue agrees with its model, and commands in hand keep their promises, through more interleavings than test/features/commands has the time for. The seeds go
// on where those stop.
import { afterAll, beforeAll, expect, test } from "vitest";
import { STEPS } from "../features/commands/model/programs.ts";
import { openReplay, type Replay } from "../features/commands/model/replay.ts";
import { expectAgreement } from "../features/commands/model/search.ts";
import { STEPS as STEPS_OF_UNWRITTEN_SENDS } from "../features/commands/unwritten-sends/programs.ts";
import { openStage, type Stage } from "../features/commands/unwritten-sends/run.ts";
import { expectPromisesKept } from "../features/commands/unwritten-sends/search.ts";
import { SEED } from "../kit/gateway/seed.ts";

const RUNS = 1_920;
/** More than a run takes on a machine that does four other things. */
const LONGEST_MS = 600_000;
const RUNS_OF_THE_SUITE = 80;
const RUNS_OF_UNWRITTEN_SENDS = 270;
const UNWRITTEN_SENDS_OF_THE_SUITE = 30;

let replay: Replay;
let stage: Stage;
beforeAll(async () => {
  replay = await openReplay();
  stage = await openStage();
});
afterAll(() => Promise.all([replay.close(), stage.close()]));

test(`the queue agrees with the model through ${RUNS} more interleavings of ${STEPS} steps (seed ${SEED})`, {
  timeout: LONGEST_MS,
}, async () => {
  await expect(expectAgreement(replay, RUNS, SEED + RUNS_OF_THE_SUITE)).resolves.toBeUndefined();
});

test(`what was sent and not written yet keeps its promises through ${RUNS_OF_UNWRITTEN_SENDS} more programs of ${STEPS_OF_UNWRITTEN_SENDS} steps (seed ${SEED})`, {
  timeout: LONGEST_MS,
}, async () => {
  await expect(expectPromisesKept(stage, RUNS_OF_UNWRITTEN_SENDS, SEED + UNWRITTEN_SENDS_OF_THE_SUITE)).resolves.toBeUndefined();
});
