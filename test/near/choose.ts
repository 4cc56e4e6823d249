// Chooses the test files that are near to changed files, by feature, by folder and by name, as many as fit into a minute.
import { basename, dirname } from "node:path";
import { createCostOf } from "../kit/setup/budget.ts";

export interface Choice {
  readonly run: readonly string[];
  /** Near too, but there was no time for them. */
  readonly left: readonly string[];
}

/** The processor time of a run, whose two workers share it. */
const SECONDS = 60;
/** Searches of the whole text, which any change may concern. */
const ALWAYS = ["exported-names", "retired-words", "sources", "statements"].map((name) => `test/conventions/${name}.test.ts`);

/** The feature that a file belongs to. */
const FEATURE =
  /^(?:server\/features|portal\/src\/screens|test\/features)\/([a-z-]+)\/|^(?:protocol\/groups(?:\/[a-z-]+(?=\/))?|prisma\/schema|protocol\/records)\/([a-z-]+)[./]/;
/** Where the tests of a source folder are, the closest first. */
const FOLDERS: readonly (readonly [source: RegExp, tests: (found: RegExpExecArray) => readonly string[]])[] = [
  [/^server\/gateway\/channel\//, () => ["test/channel/"]],
  [/^server\/(gateway|platform)\/([a-z-]+)\//, ([, part, folder]) => [`test/${part}/${folder}/`]],
  [/^agent-sim\/([a-z-]+)\//, ([, folder]) => [`test/agent-sim/${folder}/`]],
  [/^protocol\/(?:kit|channel|schemas|client)[./]/, () => ["test/protocol/"]],
  [/^server\/config[^/]*\.ts$/, () => ["test/conventions/config.test.ts"]],
  [/^docs\/|^[A-Z]+\.md$/, () => ["test/conventions/documents.test.ts"]],
  [/^(?:package\.json|\.ci\/)/, () => ["test/conventions/scripts.test.ts", "test/conventions/ci-run.test.ts"]],
];
/** Started by their own commands. */
const ELSEWHERE = /^test\/(?:release|flows|portal)\//;

const stem = (file: string): string => basename(file).replace(/(\.test)?\.[a-z]+$/, "");

/** How near a test is to a changed file: 0 is itself; null is not near. */
const distance = (changed: string, test: string): number | null => {
  if (test === changed) return 0;
  if (ELSEWHERE.test(test)) return null;
  const [, byFolder, byName] = FEATURE.exec(changed) ?? [];
  const feature = byFolder ?? byName;
  const sameName = stem(test) === stem(changed) && stem(test) !== "index";
  if (feature !== undefined && test.startsWith(`test/features/${feature}/`)) return sameName || stem(test) === feature ? 1 : 2;
  if (sameName) return 1;
  // What stands in test/ itself concerns all tests, so none is near.
  if (changed.startsWith("test/") && dirname(changed) !== "test" && test.startsWith(`${dirname(changed)}/`)) return 2;
  for (const [source, tests] of FOLDERS) {
    const found = source.exec(changed);
    if (found !== null) return tests(found).some((start) => test.startsWith(start)) ? 3 : null;
  }
  return null;
};

export const choose = (changed: readonly string[], tests: readonly string[]): Choice => {
  if (changed.length === 0) return { run: [], left: [] };
  const costOf = createCostOf(tests);
  const near = tests
    .flatMap((test) => {
      const distances = changed.map((file) => distance(file, test)).filter((found) => found !== null);
      return distances.length === 0 ? [] : [{ test, at: Math.min(...distances) }];
    })
    .sort((a, b) => a.at - b.at || costOf(a.test) - costOf(b.test) || a.test.localeCompare(b.test));
  const run = ALWAYS.filter((test) => tests.includes(test));
  const left: string[] = [];
  let seconds = run.reduce((sum, test) => sum + costOf(test), 0);
  for (const { test, at } of near) {
    if (run.includes(test)) continue;
    // A test that somebody has just changed runs, whatever it costs.
    if (at > 0 && seconds + costOf(test) > SECONDS) left.push(test);
    else {
      run.push(test);
      seconds += costOf(test);
    }
  }
  return { run, left };
};
