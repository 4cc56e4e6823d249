// How the tests run: one database server for the whole run, and a file at a time for each worker. The files of some folders share their worker's modules,
// and those of the console its gateway and browser, too. `npm test` leaves out the project "release", which `npm run test:release` runs.
import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { DearestFirst } from "./kit/setup/dearest-first.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Loading and compiling the server's modules costs more than most files' tests, so a worker does it once. Such a file leaves no trace in them. */
const SHARED = "contract,protocol,features,channel,platform,gateway,agent-sim,conventions,conformance,compose,chaos,bench,wiring,edge,flows";

/** Its files test what belongs to a release: packaging, installs, long searches, and whole lives of processes whose rules other tests guard too. */
const RELEASE = "release";
/** The folders of a release whose files look at every operation and at every place of the console. They share their worker's modules, gateway and browser. */
const WALLS = `test/${RELEASE}/{walls,console}/**/*.test.ts`;

/** The tests of the console. They start one gateway and one browser a worker, which the environment ends with the worker. */
const CONSOLE = "portal";
const BROWSER = { environment: "./test/kit/browser/environment.ts" };
/** Visitors of a file at once: they wait for the gateway more than for the processor. */
const ON_ONE_GATEWAY = { ...BROWSER, isolate: false, maxConcurrency: 2 };

/** Files of those folders that need modules of their own. */
const OWN: readonly string[] = [
  // Reads which statements the loaded modules declare.
  "test/conventions/statements.test.ts",
];

/** Many tests wait for a socket, a process or a lock: with three workers, two cores are idle for a fifth of the time. */
const WORKERS = Number(process.env["TEST_WORKERS"] ?? 4);
/** A search for tests that depend on their order needs vitest's own. */
const isShuffled = process.argv.some((word) => word.startsWith("--sequence"));
/**
 * A worker's browser has processes of its own, so two fill two cores. Each more costs the start of a gateway, a browser and all their modules. An order from
 * the command line replaces that of the projects, so then all are one group.
 */
const CONSOLE_WORKERS = isShuffled ? WORKERS : Number(process.env["TEST_WORKERS"] ?? 2);

/**
 * A worker lives for minutes and shares two cores with others: threads that collect garbage beside it take its own time, room for more young objects spares
 * it most of that, and what runs a few times is not worth an optimizing compiler, neither of JavaScript nor of Prisma's WebAssembly. Together a tenth of its
 * processor time.
 */
const V8 = ["--single-threaded-gc", "--min-semi-space-size=32", "--max-semi-space-size=64", "--interrupt-budget=300000", "--liftoff-only"];

type TestOptions = NonNullable<TestProjectInlineConfiguration["test"]>;
const project = (name: string, test: TestOptions): TestProjectInlineConfiguration => ({
  root,
  test: {
    name,
    setupFiles: ["test/kit/setup/file-cost.ts", "test/kit/gateway/seed.ts", "test/kit/gateway/emitted.ts", "test/kit/setup/one-session.ts"],
    // Each wait within a test has a shorter bound of its own, which names what did not happen.
    testTimeout: 60_000,
    hookTimeout: 30_000,
    execArgv: V8,
    ...test,
  },
});

export default defineConfig({
  root,
  test: {
    globalSetup: ["test/kit/setup/global-setup.ts", "test/kit/setup/checks.ts"],
    maxWorkers: WORKERS,
    // The projects share most modules, and one file alone would wait for the compiler of all that it loads.
    experimental: { fsModuleCache: true },
    ...(isShuffled ? {} : { sequence: { sequencer: DearestFirst } }),
    reporters: ["default", "./test/kit/setup/totals-reporter.ts"],
    projects: [
      project("own modules", { include: [`test/!(${[SHARED.replaceAll(",", "|"), CONSOLE, RELEASE].join("|")})/**/*.test.ts`, ...OWN] }),
      project("shared modules", { include: [`test/{${SHARED}}/**/*.test.ts`], exclude: [...OWN], isolate: false }),
      project("console", {
        include: [`test/${CONSOLE}/**/*.test.ts`],
        ...ON_ONE_GATEWAY,
        // After all others, as another number of workers has to be.
        sequence: { groupOrder: 1 },
        maxWorkers: CONSOLE_WORKERS,
      }),
      project(RELEASE, { include: [`test/${RELEASE}/**/*.test.ts`], exclude: [WALLS], ...BROWSER }),
      project(`${RELEASE} walls`, { include: [WALLS], ...ON_ONE_GATEWAY }),
    ],
  },
});
