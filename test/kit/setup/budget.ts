// What tests may cost: a bound for each feature and each other file, and what exceeded it when the bound came.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Seconds of processor time. */
export const BUDGET = 8;
/** A file of which nothing is known. */
export const USUAL = 2;

/** Seconds by feature or file. A figure only shrinks; without its line, the bound holds. */
export const DEARER: ReadonlyMap<string, number> = new Map(
  Object.entries(JSON.parse(readFileSync(join(import.meta.dirname, "dear-tests.json"), "utf8")) as Readonly<Record<string, number>>),
);

/** The files of a feature share its bound; every other file has its own. */
export const subjectOf = (file: string): string => /^test\/features\/[^/]+(?=\/)/.exec(file)?.[0] ?? file;

export interface FileCost {
  readonly name: string;
  readonly seconds: number;
}
export interface Overrun {
  readonly subject: string;
  readonly seconds: number;
  readonly allowed: number;
}

/** What costs more than it may, the most first. A release's tests have the bound of their command alone. */
export const overrunsOf = (costs: readonly FileCost[]): readonly Overrun[] => {
  const sums = new Map<string, number>();
  for (const { name, seconds } of costs) if (!name.startsWith("test/release/")) sums.set(subjectOf(name), (sums.get(subjectOf(name)) ?? 0) + seconds);
  return [...sums]
    .map(([subject, seconds]) => ({ subject, seconds, allowed: Math.max(BUDGET, DEARER.get(subject) ?? 0) }))
    .filter(({ seconds, allowed }) => seconds > allowed)
    .sort((a, b) => b.seconds - a.seconds);
};

/** Guesses what a file costs, before a run. `files` are all test files: those of a dear feature share its figure. */
export const createCostOf = (files: readonly string[]): ((file: string) => number) => {
  const sharers = new Map<string, number>();
  for (const file of files) sharers.set(subjectOf(file), (sharers.get(subjectOf(file)) ?? 0) + 1);
  return (file) => {
    const figure = DEARER.get(subjectOf(file));
    return figure === undefined ? USUAL : figure / (sharers.get(subjectOf(file)) ?? 1);
  };
};
