// The gateway as it is run in production: the built program, settings from the environment, its log in a file. It does not know that it is measured.
import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { createHttp, type PairedDevice, systemTime as time } from "../../agent-sim/agent/index.ts";
import { createPortal } from "../../agent-sim/fleet/portal.ts";
import { plainEnv } from "../kit/children.ts";
import { pin, SERVER_CPU } from "./machine.ts";
import { bringUp } from "./offspring.ts";
import type { Stage } from "./stage.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const READY_MS = 60_000;
const CHUNK = 1_000;
/** Far above what is reached, so that limits are counted as always and refuse nobody. */
const NEVER_REACHED = "10000000";

const LIMITS = ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "FAILED_AUTH", "CONNECT"].map((name) => [
  `RATE_LIMIT_${name}`,
  NEVER_REACHED,
]);

/** Told in the results, so that a reader knows what was measured. The log is as quiet as the references', which write none. */
export const SETTINGS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(LIMITS),
  NODE_ENV: "production",
  ALLOW_IN_PRODUCTION: "local-issuer,any-origin",
  LOG_LEVEL: "warn",
  ACCEPT_PER_SECOND: "1000000",
  FRAMES_PER_SECOND: "500000",
  COMMAND_QUEUE_PER_DEVICE: "100000",
  COMMAND_QUEUE_PER_TENANT: NEVER_REACHED,
};

export interface Gateway {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  /** What it has written so far. */
  said(): string;
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly redis?: boolean;
  /** Null: it runs on any processor. */
  readonly cpu?: number | null;
  readonly env?: Readonly<Record<string, string>>;
}

const settingsOf = (stage: Stage, { redis = true, env = {} }: GatewayOptions): NodeJS.ProcessEnv => ({
  ...plainEnv(),
  ...SETTINGS,
  DATA_DIR: join(stage.folder, "data"),
  DATABASE_URL: stage.databaseUrl,
  MASTER_KEY: stage.masterKey,
  ...(redis ? { REDIS_URL: stage.redis.url } : {}),
  PORT: "0",
  INTERNAL_PORT: "0",
  ...env,
});

/** As in `npm start`. */
const HEAP = "--initial-old-space-size=256";

/** Ended with the stage at the latest. */
export const startGateway = async (stage: Stage, options: GatewayOptions = {}): Promise<Gateway> => {
  const file = join(stage.folder, `gateway-${randomUUID().slice(0, 8)}.log`);
  const log = openSync(file, "a");
  const flags = stage.profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${stage.profile}`];
  const child = bringUp(
    spawn(process.execPath, [HEAP, ...flags, join(ROOT, "dist/server/main.js")], { env: settingsOf(stage, options), stdio: ["ignore", log, log] }),
  );
  const pid = child.pid ?? -1;
  const ended = once(child, "exit");
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    const stubborn = setTimeout(() => child.kill("SIGKILL"), 8_000);
    await ended;
    clearTimeout(stubborn);
  };
  stage.add(stop);
  const said = (): string => readFileSync(file, "utf8");
  const url = await until(() => /ready at (\S+)/.exec(said())?.[1], { withinMs: READY_MS, gone: () => child.exitCode !== null, said });
  if (options.cpu !== null) pin(pid, options.cpu ?? SERVER_CPU);
  return { pid, port: Number(new URL(url).port), url, said, stop };
};

/** Asks again and again until there is an answer. */
export const until = async <T>(
  look: () => T | undefined | Promise<T | undefined>,
  { withinMs, gone = () => false, said = () => "" }: { readonly withinMs: number; readonly gone?: () => boolean; readonly said?: () => string },
): Promise<T> => {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (gone() || performance.now() > end) throw new Error(`waited in vain: ${said().slice(-1_000)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

const Bootstrapped = z.object({ tenantId: z.string(), apiKey: z.string(), token: z.string() });
export type Tenant = z.output<typeof Bootstrapped>;

/** A tenant of its own, by the command line that everybody uses. Its rate limits stay in place. */
export const createTenant = async (stage: Stage): Promise<Tenant> => {
  const slug = `fleet-${randomUUID().slice(0, 8)}`;
  const words = [join(ROOT, "dist/server/cli.js"), "bootstrap", "--json", "--tenant", "Fleet", "--slug", slug];
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: settingsOf(stage, {}) });
  return Bootstrapped.parse(JSON.parse(stdout));
};

/** Devices paired through the API, a thousand a call. */
export const provision = async ({ url }: Pick<Gateway, "url">, tenant: Tenant, count: number): Promise<readonly PairedDevice[]> => {
  const http = createHttp(url);
  const portal = createPortal(http, tenant);
  const members: PairedDevice[] = [];
  try {
    while (members.length < count) {
      const fingerprints = Array.from({ length: Math.min(CHUNK, count - members.length) }, () => `machine-${randomUUID()}`);
      members.push(...(await portal.provision(fingerprints, randomUUID(), { time, random: Math.random, untilMs: time.elapsedMs() + READY_MS })));
    }
    return members;
  } finally {
    http.close();
  }
};

export const writeIdentities = (stage: Stage, members: readonly PairedDevice[]): string => {
  const file = join(stage.folder, `identities-${randomUUID().slice(0, 8)}`);
  writeFileSync(file, members.map(({ agentId, tenantId, secret }) => `${agentId} ${tenantId} ${secret}\n`).join(""), { mode: 0o600 });
  return file;
};
