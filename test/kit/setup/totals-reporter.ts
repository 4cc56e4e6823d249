// Prints what a test run costs, with its dearest files and those above their budget, what failed, and its totals alone on the last line. The cost is that of
// the whole command: `npm test` builds and checks before it runs the first test.
// TEST_BUDGET makes a file above its budget a failure; without it, a busy machine fails no run.
import { stripVTControlCharacters } from "node:util";
import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";
import { type FileCost, overrunsOf } from "./budget.ts";
import { costBefore, processorSeconds } from "./processor-time.ts";

const DEAREST = 20;
const MESSAGE_LENGTH = 1_000;

/** The dearest files first, a line each; no list for a single file. */
const dearest = (costs: readonly FileCost[]): string => {
  const lines = [...costs]
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, DEAREST)
    .map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`);
  return lines.length < 2 ? "" : `\nThe files with the most processor time:\n${lines.join("")}`;
};

const overruns = (costs: readonly FileCost[]): readonly string[] =>
  overrunsOf(costs).map(({ subject, seconds, allowed }) => `${seconds.toFixed(1).padStart(8)} s of ${allowed} s  ${subject}\n`);

const oneLine = (text: string): string => stripVTControlCharacters(text).replaceAll(/\s+/gu, " ").slice(0, MESSAGE_LENGTH);

/**
 * A line for a failure, with the beginning of its message: .ci/run repeats such lines at the end of its log. A message counts the entries of a list, so the
 * list follows it.
 */
const failureLine = (name: string, errors: readonly Partial<SerializedError>[]): string => {
  const { message = "no message", actual } = errors[0] ?? {};
  const received = typeof actual === "string" && /\(\d+\)/u.test(message) ? `; received ${oneLine(actual)}` : "";
  return `failed: ${name}: ${oneLine(message)}${received}\n`;
};

export default class TotalsReporter implements Reporter {
  readonly #before = costBefore();

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    let passed = 0;
    let skipped = 0;
    const failures = errors.map((error) => failureLine("outside of the tests", [error]));
    for (const module of modules) {
      let own = 0;
      for (const test of module.children.allTests()) {
        own += 1;
        const { state, errors: reasons } = test.result();
        if (state === "passed") passed += 1;
        else if (state === "failed") failures.push(failureLine(`${module.relativeModuleId} > ${test.fullName}`, reasons));
        else skipped += 1;
      }
      // A file that cannot be loaded has no tests to count but has failed.
      if (module.state() === "failed" && (own === 0 || module.errors().length > 0)) failures.push(failureLine(module.relativeModuleId, module.errors()));
    }
    const costs = modules.map((module) => ({ name: module.relativeModuleId, seconds: module.meta().processorSeconds ?? 0 }));
    const above = overruns(costs);
    const warning = above.length === 0 ? "" : `\nAbove their budget (CONTRIBUTING.md, Tests):\n${above.join("")}`;
    if (process.env["TEST_BUDGET"] !== undefined && above.length > 0) {
      failures.push(...above.map((overrun) => `failed: budget: ${overrun.trimStart()}`));
      process.exitCode = 1;
    }
    process.on("exit", () => {
      // By now the workers and the database have ended, so their time is in the sum.
      const before = this.#before;
      const wall = before.wall + process.uptime();
      const cost = `${wall.toFixed(0)} s, ${(before.processor + processorSeconds()).toFixed(0)} s of processor time`;
      const share = before.wall === 0 ? "" : ` (${before.wall.toFixed(0)} s and ${before.processor.toFixed(0)} s of them before the tests)`;
      process.stdout.write(
        `${dearest(costs)}${warning}\n${cost}${share}\n${failures.join("")}${passed} passed, ${failures.length} failed, ${skipped} skipped\n`,
      );
    });
  }
}
