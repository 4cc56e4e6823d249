// An uncaught error leaves a process in an unknown state: the gateway logs it as fatal and shuts down in order.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { built, createSandbox, type Env, type GatewayProcess, processesOf, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { onSharedServer } from "../flows/shared-server.ts";
import { eventually } from "../kit/checks/eventually.ts";

const START_MS = 60_000;
const DEFECTS = {
  rejection: "void Promise.reject(new Error('planted defect'))",
  exception: "setImmediate(() => { throw new Error('planted defect'); })",
} as const;

/** Plants a defect that happens once, when the file appears. */
const planting = (dir: string, defect: string, only: string): Env => ({
  NODE_OPTIONS: `--import ${JSON.stringify(
    `data:text/javascript,${encodeURIComponent(
      `import { watchFile } from "node:fs"; import { join } from "node:path"; if (${only}) watchFile(${JSON.stringify(join(dir, "now"))}, { interval: 20, persistent: false }, ({ mtimeMs }) => { if (mtimeMs > 0 && !globalThis.planted) { globalThis.planted = true; ${defect}; } });`,
    )}`,
  )}`,
});

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly error?: { readonly message: string };
}
const FATAL = 60;
const fatals = ({ output }: GatewayProcess): readonly Line[] =>
  output.stdout
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Line)
    .filter(({ level }) => level === FATAL);

const within = async (env: (dir: string, shared: Env) => Env, run: (sandbox: Sandbox, plant: () => Promise<void>) => Promise<void>): Promise<void> => {
  const base = await createSandbox({ LOG_LEVEL: "info", SHUTDOWN_SECONDS: "5" });
  const shared = await onSharedServer();
  try {
    await run({ ...base, env: { ...base.env, ...env(base.dir, shared) } }, () => writeFile(join(base.dir, "now"), "now"));
  } finally {
    await base.remove();
  }
};

describe("uncaught errors", () => {
  test.each(Object.entries(DEFECTS))(
    "an uncaught %s is logged as fatal, and the process closes its parts and ends with code 1",
    (_, defect) =>
      within(
        (dir) => planting(dir, defect, "true"),
        async ({ env, dir }, plant) => {
          const gateway = await startGatewayProcess({ ...env, LOG_LEVEL: "debug" });
          await plant();
          expect(await gateway.ended).toEqual({ code: 1, signal: null });
          expect(fatals(gateway).map(({ error }) => error?.message)).toEqual(["planted defect"]);
          // The last part was closed, so the database did not outlive the process.
          expect(gateway.output.stdout).toContain('"part":"postgres","msg":"closed"');
          await eventually(async () => expect(await processesOf(dir)).toEqual([]));
        },
      ),
    START_MS,
  );

  test(
    "a second uncaught error ends the process at once",
    () =>
      within(
        (dir) => planting(dir, `${DEFECTS.rejection}; ${DEFECTS.exception}`, "true"),
        async ({ env }, plant) => {
          const gateway = await startGatewayProcess({ ...env, LOG_LEVEL: "debug" });
          await plant();
          expect(await gateway.ended).toEqual({ code: 1, signal: null });
          expect(fatals(gateway)).toHaveLength(2);
          expect(gateway.output.stdout).not.toContain('"part":"postgres","msg":"closed"');
        },
      ),
    START_MS,
  );

  test(
    "an uncaught error in a worker ends that worker, and the supervisor starts another in its place",
    () =>
      within(
        (dir, shared) => ({ ...shared, ...planting(dir, DEFECTS.rejection, 'process.argv.join(" ").includes("--worker 1 ")') }),
        async ({ env, dir }, plant) => {
          const gateway = await startGatewayProcess(env, [process.execPath, built("server/main.js"), "--workers", "2"]);
          const worker = async (index: number): Promise<number | undefined> =>
            (await processesOf(dir)).find(({ command }) => command.includes(`--worker ${index} `))?.pid;
          const [other, victim] = await Promise.all([worker(0), worker(1)]);
          await plant();
          await eventually(async () => {
            const heir = await worker(1);
            expect(heir === undefined || heir === victim).toBe(false);
          }, START_MS);
          expect(fatals(gateway)).toHaveLength(1);
          expect(await worker(0)).toBe(other);
        },
      ),
    2 * START_MS,
  );
});
