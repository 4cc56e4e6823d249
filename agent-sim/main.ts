// `npm run sim`: runs a fleet of simulated agents, or one device, from the command line.
import { randomInt } from "node:crypto";
import { createHttp, createRunAbort, sayWhileWaiting, systemTime as time } from "./agent/index.ts";
import { bootstrap } from "./bootstrap.ts";
import { runConnector } from "./connector.ts";
import { runDevice } from "./device.ts";
import { createScreen, summaryText } from "./display.ts";
import { type FleetOptions, runFleet } from "./fleet/fleet.ts";
import { BadOptions, HELP, type Options, parseOptions } from "./options.ts";

const COULD_NOT_RUN = 2;
const INTERRUPTED = 130;

type Say = (line: string) => void;
const findGateway = async ({ url, tenant, "api-key": apiKey }: Options, say: Say): Promise<Pick<FleetOptions, "url" | "apiKey" | "tenantId">> => {
  if (url !== undefined && apiKey !== undefined) return { url, apiKey, tenantId: tenant };
  const { baseUrl, ...own } = await sayWhileWaiting({ on: "a tenant", at: "the gateway of this checkout", work: () => bootstrap() }, time, say);
  return { url: baseUrl, apiKey: own.apiKey, tenantId: own.tenantId };
};

/** Fails at once, instead of after minutes of retries, if there is no gateway. Any response will do. */
const checkReachable = async (url: string, say: Say): Promise<void> => {
  const http = createHttp(url, 1);
  try {
    await sayWhileWaiting({ on: "the gateway", at: url, work: () => http.call({ method: "GET", path: "/v1/health" }) }, time, say);
  } catch (error) {
    throw new Error(`no gateway answers at ${url} (${error instanceof Error ? error.message : String(error)}); start one with: npm start`);
  } finally {
    http.close();
  }
};

/** The first Ctrl-C ends the load, the second exits at once. */
const onInterrupt = (notice: (text: string) => void): AbortSignal => {
  const controller = createRunAbort();
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(INTERRUPTED);
    notice("stopping: waiting for open commands (press Ctrl-C again to exit at once)");
    controller.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return controller.signal;
};

const simulate = async (options: Options): Promise<number> => {
  const screen = createScreen(process.stderr, options.quiet);
  const signal = onInterrupt(screen.notice);
  const gateway = await findGateway(options, screen.notice);
  await checkReachable(gateway.url, screen.notice);
  const summary = await runFleet(
    {
      ...gateway,
      signal,
      agents: options.agents,
      durationMs: options.duration,
      warmUpMs: options["warm-up"],
      commandsPerSecond: options["commands-per-second"],
      seed: options.seed ?? randomInt(4_294_967_295),
      heartbeatSec: options.heartbeat ?? null,
      pollOnlyPct: options["poll-only"],
      rampPerSecond: options.ramp,
      drainMs: options.drain,
      deployments: options.deployments,
      failingApps: options["failing-apps"] / 100,
      updates: {
        fails: options["failing-updates"] / 100,
        slow: options["slow-updates"] / 100,
        lost: options["lost-after-update"] / 100,
        wrong: options["wrong-version"] / 100,
      },
    },
    { onProgress: screen.progress, onNotice: screen.notice },
  );
  screen.end();
  process.stdout.write(options.json ? `${JSON.stringify(summary)}\n` : summaryText(summary));
  return summary.ok ? 0 : 1;
};

const main = async (): Promise<number> => {
  try {
    const [first, ...others] = process.argv.slice(2);
    // A command that is unfinished, because the next start carries it on, would hold the process by its timer.
    if (first === "agent") process.exit(await runDevice(others));
    if (first === "connector") process.exit(await runConnector(others));
    const options = parseOptions(process.argv.slice(2));
    if (!options.help) return await simulate(options);
    process.stdout.write(HELP);
    return 0;
  } catch (error) {
    const hint = error instanceof BadOptions ? "\nTry --help." : "";
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}${hint}\n`);
    return COULD_NOT_RUN;
  }
};

process.exitCode = await main();
