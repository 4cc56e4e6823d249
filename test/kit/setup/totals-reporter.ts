// Prints what a test run costs, with its dearest files and those above their budget, and its totals alone on the last line.
// TEST_BUDGET makes a file above its budget a failure; without it, a busy machine fails no run.
import type { Reporter, TestModule } from "vitest/node";
import { type FileCost, overrunsOf } from "./budget.ts";
import { processorSeconds } from "./processor-time.ts";

const DEAREST = 20;

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

export default class TotalsReporter implements Reporter {
  readonly #startedAt = performance.now();

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      let own = 0;
      for (const test of module.children.allTests()) {
        own += 1;
        const { state } = test.result();
        if (state === "passed") counts.passed += 1;
        else if (state === "failed") counts.failed += 1;
        else counts.skipped += 1;
      }
      // A file that cannot be loaded has no tests to count but has failed.
      if (module.state() === "failed" && (own === 0 || module.errors().length > 0)) counts.failed += 1;
    }
    const costs = modules.map((module) => ({ name: module.relativeModuleId, seconds: module.meta().processorSeconds ?? 0 }));
    const above = overruns(costs);
    const warning = above.length === 0 ? "" : `\nAbove their budget (CONTRIBUTING.md, Tests):\n${above.join("")}`;
    if (process.env["TEST_BUDGET"] !== undefined && above.length > 0) {
      counts.failed += above.length;
      process.exitCode = 1;
    }
    process.on("exit", () => {
      // By now the workers and the database have ended, so their time is in the sum.
      const wall = (performance.now() - this.#startedAt) / 1_000;
      const cost = `${wall.toFixed(0)} s, ${processorSeconds().toFixed(0)} s of processor time`;
      process.stdout.write(`${dearest(costs)}${warning}\n${cost}\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
    });
  }
}
