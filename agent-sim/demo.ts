// `npm run demo`: starts a gateway with the embedded database and 25 devices that pair, send heartbeats and run commands, until Ctrl-C.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import {
  createHttp,
  hasSucceeded,
  noop,
  type PairedDevice,
  packageRoot,
  pairDevice,
  pause,
  refusal,
  sayWhileWaiting,
  systemTime as time,
} from "./agent/index.ts";
import { type Bootstrapped, bootstrap } from "./bootstrap.ts";
import { linesOf, type Program, startProgram } from "./children/index.ts";
import { createScreen, summaryText } from "./display.ts";
import { runFleet } from "./fleet/fleet.ts";
import type { PortalCredentials } from "./fleet/portal.ts";

const HELP = `Starts a gateway and a small fleet, and shows what they do.

  npm run demo -- [--devices 25] [--seconds N]

  --devices N   number of devices (default 25, at most 500)
  --seconds N   stop after this many seconds (default: run until Ctrl-C)

The gateway listens on PORT (default 8080) and keeps its data in DATA_DIR (default .data), like npm start.
`;

const READY_WITHIN_MS = 90_000;
const STOP_WITHIN_MS = 30_000;
const INTERRUPTED = 130;
const COMMANDS_PER_SECOND = 5;
const PAIRED_AT_ONCE = 5;

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

const TOKEN_SECONDS = 3_600;
const Created = z.object({ data: z.object({ token: z.string() }) });

/** A token that may pair machines again: an earlier run may have used the same fingerprints. */
const createRepairToken = async (url: string, { apiKey, tenantId }: PortalCredentials): Promise<string> => {
  const http = createHttp(url, 1);
  try {
    const answer = await http.call({
      method: "POST",
      path: "/v1/pairing/enrollment-tokens",
      headers: { "x-api-key": apiKey, "x-svc-tenant-id": tenantId },
      body: JSON.stringify({ name: "demo", expiresInSeconds: TOKEN_SECONDS, maxUses: null, allowRepair: true }),
    });
    if (!hasSucceeded(answer)) throw refusal("the gateway refused an enrollment token", answer);
    return Created.parse(answer.body).data.token;
  } finally {
    http.close();
  }
};

const pairAll = async ({ baseUrl, ...credentials }: Bootstrapped, count: number, signal: AbortSignal): Promise<readonly PairedDevice[]> => {
  // An earlier demo's devices have the same fingerprints; this one takes them over.
  const enrollmentToken = await createRepairToken(baseUrl, credentials);
  const names = Array.from({ length: count }, (_, index) => `demo-device-${String(index + 1).padStart(3, "0")}`);
  const members: PairedDevice[] = [];
  while (members.length < names.length && !signal.aborted) {
    const next = names.slice(members.length, members.length + PAIRED_AT_ONCE);
    members.push(...(await Promise.all(next.map((name) => pairDevice({ url: baseUrl, enrollmentToken, fingerprint: name, name })))));
  }
  return members;
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

const demo = async (devices: number, seconds: number | null): Promise<number> => {
  const run = new AbortController();
  abortWhenAsked(run);
  const gateway = await startGateway();
  try {
    const credentials = await bootstrap({ name: "Demo", slug: "demo" });
    say(`pairing ${devices} devices with tenant ${credentials.tenantId}`);
    const members = await pairAll(credentials, devices, run.signal);
    if (run.signal.aborted) return INTERRUPTED;
    const { baseUrl, apiKey, tenantId } = credentials;
    say(
      `paired all devices; read one with:\n  curl -s ${baseUrl}/v1/devices/${members[0]?.deviceId ?? ""} -H 'x-api-key: ${apiKey}' -H 'x-svc-tenant-id: ${tenantId}'\n`,
    );
    // The gateway prints a link that opens this tenant. It may have gone away; then the fleet says so.
    gateway.child.send({ offerSignIn: { tenantId } }, noop);
    const screen = createScreen(process.stderr, false);
    // Not AbortSignal.timeout: on Node 20 a signal combined from it can be garbage-collected before it fires.
    if (seconds !== null) setTimeout(() => run.abort(), seconds * 1_000);
    const summary = await runFleet(
      {
        url: baseUrl,
        apiKey,
        tenantId,
        agents: devices,
        members,
        durationMs: Number.POSITIVE_INFINITY,
        commandsPerSecond: COMMANDS_PER_SECOND,
        seed: 1,
        rampPerSecond: devices,
        signal: run.signal,
      },
      { onProgress: screen.progress, onNotice: screen.notice },
    );
    screen.end();
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
