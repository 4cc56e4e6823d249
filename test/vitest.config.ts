// How the tests run: one database server for the whole run, two files at a time. The files of some folders share their worker's modules, and those of
// the console its gateway and browser, too. `npm test` leaves out the project "release", which `npm run test:release` runs.
import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Loading and compiling the server's modules costs more than most files' tests, so a worker does it once. Such a file leaves no trace in them. */
const SHARED = "contract,protocol,features,channel,platform,gateway";

/** Its files test what belongs to a release: packaging, installs, long searches, and whole lives of processes whose rules other tests guard too. */
const RELEASE = "release";

/** The tests of the console. They start one gateway and one browser a worker, which the environment ends with the worker. */
const CONSOLE = "portal";

/** Files of those folders that need modules of their own. */
const OWN: readonly string[] = [
  // Replaces a module of the gateway, which must not be loaded yet.
  "test/contract/matrix.test.ts",
];

type TestOptions = NonNullable<TestProjectInlineConfiguration["test"]>;
const project = (name: string, test: TestOptions): TestProjectInlineConfiguration => ({
  root,
  test: {
    name,
    setupFiles: ["test/kit/setup/file-cost.ts", "test/kit/gateway/seed.ts", "test/kit/gateway/emitted.ts"],
    // Each wait within a test has a shorter bound of its own, which names what did not happen.
    testTimeout: 60_000,
    hookTimeout: 30_000,
    ...test,
  },
});

export default defineConfig({
  root,
  test: {
    globalSetup: ["test/kit/setup/global-setup.ts"],
    maxWorkers: 2,
    reporters: ["default", "./test/kit/setup/totals-reporter.ts"],
    projects: [
      project("own modules", { include: [`test/!(${[SHARED.replaceAll(",", "|"), CONSOLE, RELEASE].join("|")})/**/*.test.ts`, ...OWN] }),
      project("shared modules", { include: [`test/{${SHARED}}/**/*.test.ts`], exclude: [...OWN], isolate: false }),
      project("console", { include: [`test/${CONSOLE}/**/*.test.ts`], environment: "./test/kit/browser/environment.ts", isolate: false }),
      project(RELEASE, { include: [`test/${RELEASE}/**/*.test.ts`] }),
    ],
  },
});
