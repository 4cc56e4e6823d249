// `npm run demo`: a gateway on the embedded default and 25 devices that pair with it, beat and execute commands, live until Ctrl-C.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { createHttp, type Member, pairDevice, refusal } from "./agent/index.ts";
import { type Bootstrapped, bootstrap, packageRoot } from "./bootstrap.ts";
import { createScreen, summaryText } from "./display.ts";
import { runFleet } from "./fleet/fleet.ts";
import type { Credentials } from "./fleet/portal.ts";

const HELP = `A gateway and a small fleet, live.

  npm run demo -- [--devices 25] [--seconds N]

  --devices N   how many devices pair and work (default 25, at most 500)
  --seconds N   end by itself after so many seconds of work (default: until Ctrl-C)

The gateway listens on PORT (default 8080) and keeps its data in DATA_DIR (default .data), as with npm start.
`;

const READY_WITHIN_MS = 90_000;
const STOP_WITHIN_MS = 30_000;
const INTERRUPTED = 130;
const COMMANDS_PER_SECOND = 5;
/** Pairing at once, but not so that the gateway's start is all one hears of. */
const PAIRED_AT_ONCE = 5;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Everything comes from one address here, so the pairing limits, which are for strangers, are lifted; beats come often enough to be seen. */
const gatewayEnv = (): NodeJS.ProcessEnv => ({ RATE_LIMIT_PAIRING: "off", HEARTBEAT_SECONDS: "5", LOG_LEVEL: "error", ...process.env });

const startGateway = async (): Promise<ChildProcess> => {
  const gateway = spawn(process.execPath, [join(packageRoot(import.meta.dirname), "dist/server/main.js")], {
    env: gatewayEnv(),
    // In a group of its own, so that Ctrl-C reaches the demo alone. The gateway ends when this channel closes, however the demo ends.
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    detached: true,
  });
  const ready = new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("the gateway did not become ready")), READY_WITHIN_MS);
    gateway.once("exit", (code) => reject(new Error(`the gateway ended with code ${code} before it was ready`)));
    gateway.stdout?.setEncoding("utf8").on("data", (text: string) => {
      if (!text.includes("ready")) return;
      clearTimeout(late);
      say(text.split("\n").find((line) => line.includes("ready")) ?? "");
      resolve();
    });
  });
  try {
    await ready;
    gateway.removeAllListeners("exit");
    return gateway;
  } catch (error) {
    gateway.kill();
    throw error;
  }
};

const stopGateway = async (gateway: ChildProcess): Promise<void> => {
  if (gateway.exitCode !== null) return;
  gateway.kill("SIGTERM");
  const stubborn = setTimeout(() => gateway.kill("SIGKILL"), STOP_WITHIN_MS);
  await once(gateway, "exit");
  clearTimeout(stubborn);
};

const TOKEN_SECONDS = 3_600;
const Created = z.object({ data: z.object({ token: z.string() }) });

/** A token for machines that an earlier run may have paired under the same fingerprints. */
const createRepairToken = async (url: string, { apiKey, tenantId }: Credentials): Promise<string> => {
  const http = createHttp(url, 1);
  try {
    const answer = await http.call({
      method: "POST",
      path: "/v1/pairing/enrollment-tokens",
      headers: { "x-api-key": apiKey, "x-svc-tenant-id": tenantId },
      body: JSON.stringify({ name: "demo", expiresInSeconds: TOKEN_SECONDS, maxUses: null, allowRepair: true }),
    });
    if (answer.status !== 201) throw refusal("no enrollment token was given", answer);
    return Created.parse(answer.body).data.token;
  } finally {
    http.close();
  }
};

const pairAll = async ({ baseUrl, ...credentials }: Bootstrapped, count: number, signal: AbortSignal): Promise<readonly Member[]> => {
  // The last demo's devices have the same names; this one takes them over.
  const enrollmentToken = await createRepairToken(baseUrl, credentials);
  const names = Array.from({ length: count }, (_, index) => `demo-device-${String(index + 1).padStart(3, "0")}`);
  const members: Member[] = [];
  while (members.length < names.length && !signal.aborted) {
    const next = names.slice(members.length, members.length + PAIRED_AT_ONCE);
    members.push(...(await Promise.all(next.map((name) => pairDevice({ url: baseUrl, enrollmentToken, fingerprint: name, name })))));
  }
  return members;
};

/** Ends the run when a person asks for it, the terminal closes or nobody reads the output any more. A second Ctrl-C leaves at once. */
const abortWhenAsked = (run: AbortController): void => {
  const interrupt = (): void => {
    if (run.signal.aborted) process.exit(INTERRUPTED);
    say("\nending: the devices finish what they have begun (Ctrl-C again leaves at once)");
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
    say(`paired; look at one:\n  curl -s ${baseUrl}/v1/devices/${members[0]?.deviceId ?? ""} -H 'x-api-key: ${apiKey}' -H 'x-svc-tenant-id: ${tenantId}'\n`);
    const screen = createScreen(process.stderr, false);
    // A timer of our own: a signal combined from AbortSignal.timeout can be collected before it fires on Node 20.
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
    await stopGateway(gateway);
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
