// `npm run demo`: starts a gateway with the embedded database and 25 devices that pair, send heartbeats and run commands, until Ctrl-C.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createHttp, createRunAbort, noop, type PairedDevice, packageRoot, pause, sayWhileWaiting, systemTime as time } from "./agent/index.ts";
import { type Bootstrapped, bootstrap } from "./bootstrap.ts";
import { linesOf, type Program, startProgram } from "./children/index.ts";
import { createDemoApi } from "./demo/api.ts";
import { comeAndGo } from "./demo/away.ts";
import { type CastMember, castDemo } from "./demo/cast.ts";
import { pairCast } from "./demo/pairing.ts";
import { openReceiver } from "./demo/receiver.ts";
import { tellStory } from "./demo/story.ts";
import { createScreen, type Screen, summaryText } from "./display.ts";
import { runFleet, type Summary } from "./fleet/fleet.ts";

const HELP = `Starts a gateway and a small fleet, and shows what they do.

  npm run demo -- [--devices 25] [--seconds N]

  --devices N   number of devices (default 25, at most 500)
  --seconds N   stop after this many seconds (default: run until Ctrl-C)

The gateway listens on PORT (default 8080) and keeps its data in DATA_DIR (default .data), like npm start.
`;

const READY_WITHIN_MS = 90_000;
const STOP_WITHIN_MS = 30_000;
const INTERRUPTED = 130;
const COMMANDS_PER_SECOND = 2;
const SEED = 1;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** All devices share one address, so the pairing limits are off. Heartbeats are frequent enough to watch. */
const gatewayEnv = (): NodeJS.ProcessEnv => ({ RATE_LIMIT_PAIRING: "off", HEARTBEAT_SECONDS: "5", LOG_LEVEL: "error", ...process.env });

/** Resolves when it says that it is ready, and goes on to read what it says. */
const whenReady = (gateway: Program): Promise<void> =>
  new Promise((resolve, reject) => {
    const read = async (): Promise<void> => {
      for await (const line of linesOf(gateway.child.stdout)) {
        if (line.startsWith("Sign in")) say(line);
        if (!line.includes("ready")) continue;
        say(line);
        resolve();
      }
    };
    read().catch(reject);
    void gateway.ended.then(({ code, error }) => reject(error ?? new Error(`the gateway exited with code ${code} before it was ready`)));
  });

const startGateway = async (): Promise<Program> => {
  // In its own process group, so that Ctrl-C only reaches the demo. The gateway exits when the IPC channel closes, however the demo ends.
  const gateway = startProgram({
    command: process.execPath,
    words: [join(packageRoot(import.meta.dirname), "dist/server/main.js"), "--sign-in-later"],
    env: gatewayEnv(),
    time,
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    patienceMs: STOP_WITHIN_MS,
    outlives: true,
  });
  const late = new AbortController();
  try {
    const ready = (): Promise<void> =>
      Promise.race([
        whenReady(gateway),
        pause(time, READY_WITHIN_MS, late.signal).then(() =>
          late.signal.aborted ? new Promise<never>(noop) : Promise.reject(new Error("the gateway did not become ready")),
        ),
      ]);
    await sayWhileWaiting({ on: "the gateway", at: "this machine", work: ready }, time, say);
    return gateway;
  } catch (error) {
    await gateway.end();
    throw error;
  } finally {
    late.abort();
  }
};

/** Ends the run on Ctrl-C, when the terminal closes, or when nobody reads the output. A second Ctrl-C exits at once. */
const abortWhenAsked = (run: AbortController): void => {
  const interrupt = (): void => {
    if (run.signal.aborted) process.exit(INTERRUPTED);
    say("\nstopping: waiting for open commands (press Ctrl-C again to exit at once)");
    run.abort();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  process.on("SIGHUP", () => run.abort());
  for (const output of [process.stdout, process.stderr]) output.on("error", () => run.abort());
};

const readOptions = (): { devices: number; seconds: number | null; help: boolean } => {
  const { values } = parseArgs({
    options: { devices: { type: "string", default: "25" }, seconds: { type: "string" }, help: { type: "boolean", short: "h", default: false } },
  });
  const devices = Number(values.devices);
  const seconds = values.seconds === undefined ? null : Number(values.seconds);
  if (!Number.isInteger(devices) || devices < 1 || devices > 500) throw new Error("--devices must be 1 to 500");
  if (seconds !== null && !(seconds >= 1 && seconds <= 86_400)) throw new Error("--seconds must be 1 to 86400");
  return { devices, seconds, help: values.help };
};

interface Play {
  readonly tenant: Bootstrapped;
  readonly cast: readonly CastMember[];
  /** In the order of the cast. */
  readonly devices: readonly PairedDevice[];
  readonly signal: AbortSignal;
}

/** What happens beside the load. What goes wrong here is told, and ends nothing. */
const playBeside = async ({ tenant, cast, devices, signal }: Play, notice: Screen["notice"]): Promise<void> => {
  const { baseUrl: url } = tenant;
  const http = createHttp(url, 2);
  const receiver = await openReceiver();
  const api = createDemoApi(http, tenant, { time, signal });
  const away = devices.filter((_, index) => cast[index]?.part === "away");
  const machines = cast.filter(({ part }) => part === "away").map(({ machine }) => machine);
  try {
    const parts = [
      tellStory({ api, cast, devices, receiver: receiver.url, time, signal }),
      comeAndGo({ url, members: away, machines, seed: SEED, time, signal }),
    ];
    for (const outcome of await Promise.allSettled(parts))
      if (outcome.status === "rejected" && !signal.aborted) notice(`the demo is not complete: ${String(outcome.reason)}`);
    // The webhooks' deliveries go on for as long as the demo runs.
    await new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true })));
  } finally {
    receiver.close();
    http.close();
  }
};

const play = async (given: Play): Promise<Summary> => {
  const { tenant, cast, devices, signal } = given;
  const screen = createScreen(process.stderr, false);
  const present = cast.flatMap((actor, index) => (actor.part === "present" && devices[index] ? [{ actor, device: devices[index] }] : []));
  const beside = playBeside(given, screen.notice);
  const summary = await runFleet(
    {
      url: tenant.baseUrl,
      apiKey: tenant.apiKey,
      tenantId: tenant.tenantId,
      agents: present.length,
      members: present.map(({ device }) => device),
      machines: present.map(({ actor }) => actor.machine),
      appFailuresOf: (index) => present[index]?.actor.appFailures,
      mayHaveApps: true,
      durationMs: Number.POSITIVE_INFINITY,
      commandsPerSecond: COMMANDS_PER_SECOND,
      seed: SEED,
      rampPerSecond: present.length,
      signal,
    },
    { onProgress: screen.progress, onNotice: screen.notice },
  );
  await beside;
  screen.end();
  return summary;
};

const demo = async (count: number, seconds: number | null): Promise<number> => {
  const run = createRunAbort();
  abortWhenAsked(run);
  const gateway = await startGateway();
  try {
    const tenant = await bootstrap({ name: "Demo", slug: "demo" });
    const { baseUrl, apiKey, tenantId } = tenant;
    say(`pairing ${count} devices with tenant ${tenantId}`);
    const cast = castDemo({ count, seed: SEED, time });
    const devices = await pairCast(tenant, cast, run.signal);
    if (run.signal.aborted) return INTERRUPTED;
    say(
      `paired all devices; read one with:\n  curl -s ${baseUrl}/v1/devices/${devices[0]?.deviceId ?? ""} -H 'x-api-key: ${apiKey}' -H 'x-svc-tenant-id: ${tenantId}'\n`,
    );
    // The gateway prints a link that opens this tenant. It may have gone away; then the fleet says so.
    gateway.child.send({ offerSignIn: { tenantId } }, noop);
    // Not AbortSignal.timeout: on Node 20 a signal combined from it can be garbage-collected before it fires.
    if (seconds !== null) setTimeout(() => run.abort(), seconds * 1_000);
    const summary = await play({ tenant, cast, devices, signal: run.signal });
    say(summaryText(summary));
    return summary.ok ? 0 : 1;
  } finally {
    await gateway.end();
  }
};

try {
  const { devices, seconds, help } = readOptions();
  if (help) say(HELP);
  else process.exitCode = await demo(devices, seconds);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
process.exit();
