// The checks of `npm test`, beside its tests: they take the moments in which the tests wait. A check that fails ends the run.
import { spawn } from "node:child_process";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

const CHECKS = ["check:compile", "check:lint", "check:imports"];
const AT_ONCE = join(import.meta.dirname, "at-once.mjs");

/** Resolves when the checks have ended and said what they found. */
const check = (names: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [AT_ONCE, ...names], { stdio: ["ignore", "inherit", "inherit"] });
    child.once("error", () => resolve(false));
    child.once("exit", (code) => resolve(code === 0));
  });

/** `npm run test:budget` and single files go without: only a whole run stands for the checks, too. */
export const setup = ({ vitest }: TestProject): (() => Promise<void>) | undefined => {
  if (process.env["TEST_WHOLE_RUN"] === undefined) return undefined;
  const passed = check(CHECKS);
  void passed.then(async (isWell) => {
    if (!isWell) await vitest.cancelCurrentRun("test-failure");
  });
  return async () => {
    if (await passed) return;
    process.exitCode = 1;
    // At the end of the log, where .ci/run looks for what failed.
    process.stdout.write("failed: the checks: see above, or npm run check\n");
  };
};
