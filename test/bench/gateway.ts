// The gateway as in production: the built program, settings from the environment, its log in a file. It does not know that the bench measures it.
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
import { plainEnv } from "../kit/net/children.ts";
import { endWithParent } from "./child-processes.ts";
import { pin, SERVER_CPU } from "./machine.ts";
import type { BenchStage } from "./stage.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const READY_MS = 60_000;
const CHUNK = 1_000;
/** Far above any load of the bench, so that limits are counted as usual and refuse nobody. */
const NEVER_REACHED = "10000000";

const LIMITS = ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "FAILED_AUTH", "CONNECT"].map((name) => [
  `RATE_LIMIT_${name}`,
  NEVER_REACHED,
]);

/** The results list these settings. The log is as quiet as that of the references, which write none. */
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

export interface BenchGateway {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  /** Its output so far. */
  said(): string;
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly redis?: boolean;
  /** The processor to pin it to; null for any. */
  readonly cpu?: number | null;
  /** Its inspector can be opened on a free port; everything else is as in production. */
  readonly inspected?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

const settingsOf = (stage: BenchStage, { redis = true, env = {} }: GatewayOptions): NodeJS.ProcessEnv => ({
  ...plainEnv(),
  ...SETTINGS,
  DATA_DIR: join(stage.folder, "data"),
  DATABASE_URL: stage.databaseUrl,
  MASTER_KEY: stage.masterKey,
  ...(redis ? { REDIS_URL: stage.redis.url } : {}),
  PORT: "0",
  INTERNAL_PORT: "0",
  EDGE_PORT: "0",
  ...env,
});

/** The heap flag of `npm start`. */
const HEAP = "--initial-old-space-size=256";

/** Starts a gateway that ends with the stage at the latest. */
export const startBenchGateway = async (stage: BenchStage, options: GatewayOptions = {}): Promise<BenchGateway> => {
  const file = join(stage.folder, `gateway-${randomUUID().slice(0, 8)}.log`);
  const log = openSync(file, "a");
  const flags = options.inspected ? ["--inspect-port=0"] : stage.profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${stage.profile}`];
  const child = endWithParent(
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
  const url = await waitUntil(() => /ready at (\S+)/.exec(said())?.[1], { withinMs: READY_MS, gone: () => child.exitCode !== null, said });
  if (options.cpu !== null) pin(pid, options.cpu ?? SERVER_CPU);
  return { pid, port: Number(new URL(url).port), url, said, stop };
};

/** Polls until `look` returns a value. */
export const waitUntil = async <T>(
  look: () => T | undefined | Promise<T | undefined>,
  { withinMs, gone = () => false, said = () => "" }: { readonly withinMs: number; readonly gone?: () => boolean; readonly said?: () => string },
): Promise<T> => {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (gone() || performance.now() > end) throw new Error(`timed out or the process ended: ${said().slice(-1_000)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

const Bootstrapped = z.object({ tenantId: z.string(), apiKey: z.string(), token: z.string() });
export type BenchTenant = z.output<typeof Bootstrapped>;

/** Creates a tenant by the usual command line. Its rate limits stay in place. */
export const createTenant = async (stage: BenchStage, { unlimited = false }: { readonly unlimited?: boolean } = {}): Promise<BenchTenant> => {
  const slug = `fleet-${randomUUID().slice(0, 8)}`;
  const words = [join(ROOT, "dist/server/cli.js"), "bootstrap", "--json", "--tenant", "Fleet", "--slug", slug, ...(unlimited ? ["--unlimited"] : [])];
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: settingsOf(stage, {}) });
  return Bootstrapped.parse(JSON.parse(stdout));
};

/** Provisions devices through the API, a thousand per call. */
export const provision = async ({ url }: Pick<BenchGateway, "url">, tenant: BenchTenant, count: number): Promise<readonly PairedDevice[]> => {
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

export const writeIdentities = (stage: BenchStage, members: readonly PairedDevice[]): string => {
  const file = join(stage.folder, `identities-${randomUUID().slice(0, 8)}`);
  writeFileSync(file, members.map(({ agentId, tenantId, secret }) => `${agentId} ${tenantId} ${secret}\n`).join(""), { mode: 0o600 });
  return file;
};
