// Searches for a program on which the queue and the model disagree, and for the shortest one.
import fc from "fast-check";
import { expect } from "vitest";
import { type Act, program, steps, type TimedAct, timeline } from "./programs.ts";
import type { Disagreement, Replay } from "./replay.ts";

const DEVICES_AT_ONCE = 100;
/** The bound of a test's time. */
export const MS_PER_RUN = 60;

export interface Finding {
  readonly seed: number;
  readonly message: string;
  readonly steps: readonly TimedAct[];
}

/** Runs many programs at a time and returns the first that disagrees. */
export const search = async (replay: Replay, runs: number, seed: number): Promise<Finding | null> => {
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

/** Fails with the shortest program that disagrees, if one of these runs finds any. */
export const expectAgreement = async (replay: Replay, runs: number, seed: number): Promise<void> => {
  const finding = await search(replay, runs, seed);
  if (finding !== null) expect.fail(describeFinding(await shrink(replay, finding)));
};
