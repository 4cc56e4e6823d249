// Prints the totals of a test run alone on its last line.
import type { Reporter, TestModule } from "vitest/node";

export default class TotalsReporter implements Reporter {
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
    process.on("exit", () => process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`));
  }
}
