// Searches for a program after which commands in hand break a promise, and shortens it.
import fc from "fast-check";
import { expect } from "vitest";
import { type Moment, type Program, program, STEPS, timeline } from "./programs.ts";
import type { Stage } from "./run.ts";

export const MS_PER_RUN = 400;
const AT_ONCE = 60;

interface Found {
  readonly seed: number;
  readonly message: string;
  readonly moments: readonly Moment[];
  readonly program: Program;
}

const search = async (stage: Stage, runs: number, seed: number): Promise<Found | null> => {
  for (let done = 0; done < runs; done += AT_ONCE) {
    const [moments = []] = fc.sample(timeline, { seed: seed + done, numRuns: 1 });
    const programs = fc.sample(program, { seed: seed + done, numRuns: Math.min(AT_ONCE, runs - done) });
    const found = await stage.run(moments, programs);
    if (found === null) continue;
    const last = found.step < 0 ? STEPS : found.step + 1;
    const one = programs[found.device] ?? { lists: false, acts: [] };
    return { seed, message: found.message, moments: moments.slice(0, last), program: { ...one, acts: one.acts.slice(0, last) } };
  }
  return null;
};

const SHRINKING_MS = 10_000;
/** The shortest program that still breaks a promise. */
const shrink = async (stage: Stage, found: Found): Promise<Found> => {
  let shortest = found;
  const until = performance.now() + SHRINKING_MS;
  for (let at = 0; at < shortest.moments.length && performance.now() < until; at += 1) {
    const without = <T>(items: readonly T[]): readonly T[] => items.filter((_, index) => index !== at);
    const tried = { ...shortest, moments: without(shortest.moments), program: { ...shortest.program, acts: without(shortest.program.acts) } };
    const again = await stage.run(tried.moments, [tried.program]);
    if (again === null) continue;
    shortest = { ...tried, message: again.message };
    at = -1;
  }
  return shortest;
};

const describeFound = ({ seed, message, moments, program: { lists, acts } }: Found): string =>
  [`${message}\nSEED=${seed}, lists ${lists}:`, ...moments.map((moment, at) => JSON.stringify({ ...moment, ...acts[at] }))].join("\n");

export const expectPromisesKept = async (stage: Stage, runs: number, seed: number): Promise<void> => {
  const found = await search(stage, runs, seed);
  if (found !== null) expect.fail(describeFound(await shrink(stage, found)));
};
