// A run with one file that never ends, for interruptions.test.ts.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const root = fileURLToPath(new URL("../../..", import.meta.url));

export default defineConfig({
  root,
  test: {
    globalSetup: ["test/kit/setup/global-setup.ts"],
    include: ["test/release/interrupted/endless.ts"],
    testTimeout: 600_000,
  },
});
