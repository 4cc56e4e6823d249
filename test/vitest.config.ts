// How the tests run: one database server for the whole run, two files at a time.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/kit/setup/file-cost.ts", "test/kit/gateway/seed.ts", "test/kit/gateway/emitted.ts"],
    globalSetup: ["test/kit/setup/global-setup.ts"],
    maxWorkers: 2,
    reporters: ["default", "./test/kit/setup/totals-reporter.ts"],
    // Each wait within a test has a shorter bound of its own, which names what did not happen.
    testTimeout: 60_000,
    hookTimeout: 30_000,
  },
});
