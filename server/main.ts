// The gateway process: configuration, app, listen, wait for a signal, close. With --workers N, N of them on one port.
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type App, createApp } from "./app.ts";
import { checkCertificate } from "./certificate.ts";
import { type Config, hasLocalOperator, internalPortOf, LOCAL_USER, publicUrlOf, readConfig } from "./config.ts";
import { systemClock } from "./core/clock.ts";
import { ConfigError } from "./core/errors.ts";
import type { EdgeSource } from "./edge/listen.ts";
import { checkFree } from "./gateway/http/free-port.ts";
import { ListenError } from "./gateway/http/listen-error.ts";
import { bulkheadsOf } from "./platform/database/bulkheads.ts";
import { createLog, type ProcessLog } from "./platform/telemetry/log.ts";
import { acceptFor, type EdgeKind, isEdgeKind, READY, REPLACED, startWorkers, type Workers } from "./workers.ts";

const MAX_WORKERS = 64;
/** The embedded database accepts 200 connections; its superuser and the command line use the rest. */
const EMBEDDED_CONNECTIONS = 180;
/** A worker's seat at the embedded database, its migration guard and its probe. */
const CONNECTIONS_BESIDE_POOL = 3;

/** While workers are replaced, one more of them runs. */
const BEING_REPLACED = 1;
const MAX_PORT = 65_535;
const MAX_GENERATIONS = 1_000_000;
const FAILED = 1;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Prints an error that the operator can fix as a sentence, and any other with its stack. */
const describe = (error: unknown): string => {
  if (error instanceof ConfigError || error instanceof ListenError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
};

const fail = (error: unknown): never => {
  process.stderr.write(`${describe(error)}\n`);
  process.exit(1);
};

/** An uncaught error leaves the process in an unknown state, so it shuts down gracefully, or at once after a second error. */
const endAfterDefect = (log: ProcessLog, stop: (why: string) => void): void => {
  // Unhandled rejections come here, too.
  process.on("uncaughtException", (error, origin) => {
    log.fatal({ error, origin }, "stopping after an uncaught error");
    if (process.exitCode === FAILED) process.exit();
    process.exitCode = FAILED;
    stop(origin);
  });
};

const greet = (url: string): void => {
  say(`Mooring is ready at ${url}  (docs ${url}/v1/docs)`);
  say(`Get credentials with: npm run --silent cli -- bootstrap --json`);
};

/** For the newcomer, who reads this in a terminal. In production a log would keep the link, so operators make theirs themselves. */
const offerSignIn = async (config: Config, { firstSignInLink }: App, { tenantId }: SignInOffer = {}): Promise<void> => {
  if (!hasLocalOperator(config)) return;
  const { url } = await firstSignInLink(LOCAL_USER, tenantId);
  say(`Sign in within ten minutes, once: ${url}  (another: npm run --silent cli -- sign-in)`);
};

/** What a parent sends once all is ready: the supervisor to one of its workers, or the demo. */
interface SignInOffer {
  readonly tenantId?: string;
}
const offerIn = (message: unknown): SignInOffer | undefined =>
  typeof message === "object" && message !== null ? (message as { readonly offerSignIn?: SignInOffer }).offerSignIn : undefined;

const readNumber = (name: string, text: string | undefined, max: number): number | undefined => {
  if (text === undefined) return undefined;
  if (!/^\d+$/.test(text) || Number(text) > max) throw new ConfigError(`--${name}: must be a number up to ${max}`);
  return Number(text);
};

/** The connections that the supervisor hands over; those that come before the edge is open wait for it. */
const edgeOfSupervisor = (): EdgeSource => {
  const waiting: (readonly [EdgeKind, Socket])[] = [];
  let accept: Parameters<EdgeSource>[0] | null = (kind, socket) => void waiting.push([kind, socket]);
  process.on("message", (message, handle) => {
    if (!isEdgeKind(message) || !(handle instanceof Socket)) return;
    if (accept === null) handle.destroy();
    else accept(message, handle);
  });
  return (given) => {
    accept = given;
    for (const each of waiting.splice(0)) given(...each);
    return () => {
      accept = null;
    };
  };
};

/** This worker's number, and how often all workers were replaced before. */
interface Place {
  readonly worker: number;
  readonly generation: number;
  /** The port that the supervisor holds, if it was free to choose one. */
  readonly edgePort?: number | undefined;
}

const serve = async (
  config: Config,
  log: ProcessLog,
  { place, signInLater }: { readonly place?: Place | undefined; readonly signInLater: boolean },
): Promise<void> => {
  const { worker, generation = 0 } = place ?? {};
  const app = await createApp(config, {
    clock: systemClock,
    log,
    sharedPort: worker !== undefined,
    inherits: generation > 0,
    edgeSource: worker === undefined ? undefined : edgeOfSupervisor(),
  });
  let stopping = false;
  const stop = (why: string): void => {
    if (stopping) return;
    stopping = true;
    log.info({ why }, "the gateway is stopping");
    app.close({ replaced: why === REPLACED }).then(() => process.exit(), fail);
  };
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    signals += 1;
    if (signals > 1) process.exit(1);
    stop(signal);
  };
  process.on("SIGTERM", onSignal);
  // The parent (the supervisor of workers, the demo) has ended.
  process.on("disconnect", () => stop("disconnect"));
  if (worker === undefined) {
    process.on("SIGINT", onSignal);
    // A closed terminal ends the gateway; a service manager sends SIGHUP to load a new certificate.
    process.on("SIGHUP", () => (config.TLS_CERT_FILE === undefined || process.stdin.isTTY ? stop("SIGHUP") : void app.renewCertificate()));
  } else {
    // A terminal signals the whole process group; a worker waits for its parent's message.
    process.on("SIGINT", () => undefined);
    process.on("SIGHUP", () => undefined);
  }
  process.on("message", (message) => {
    if (message === REPLACED) stop(REPLACED);
    const offer = offerIn(message);
    if (offer !== undefined) offerSignIn(config, app, offer).catch((error: unknown) => log.error({ error }, "could not make a sign-in link"));
  });
  endAfterDefect(log, stop);
  await app.listen();
  if (worker === undefined) {
    greet(app.publicUrl());
    // A gateway that is told to stop meanwhile closes its database under the offer, which nobody needs any more.
    if (!signInLater)
      await offerSignIn(config, app).catch((error: unknown) => {
        if (!stopping) throw error;
      });
  } else process.send?.(READY);
};

/** Workers share the public port. Each has its own internal port, and a node id that differs from its draining predecessor's. */
const workerConfig = (config: Config, { worker, generation, edgePort = config.EDGE_PORT }: Place): Config => ({
  ...config,
  EDGE_PORT: edgePort,
  INTERNAL_PORT: internalPortOf({ ...config, EDGE_PORT: edgePort }, worker),
  ...(config.NODE_ID === undefined ? {} : { NODE_ID: `${config.NODE_ID}-${worker}${generation === 0 ? "" : `-${generation}`}` }),
});

const openEdgePorts = async ({ EDGE_HOST: host, EDGE_PORT: port, EDGE_HTTP_PORT: httpPort }: Config, workers: Workers): Promise<void> => {
  await acceptFor(workers, "edge", { host, port });
  if (httpPort !== undefined) await acceptFor(workers, "edge-http", { host, port: httpPort });
};

const supervise = async (config: Config, log: ProcessLog, count: number): Promise<void> => {
  if (config.PORT === 0) throw new ConfigError("PORT: several workers share one port, so it must be named");
  if (config.EDGE_HTTP_PORT === 0) throw new ConfigError("EDGE_HTTP_PORT: several workers share one port, so it must be named");
  const fitting = Math.floor(EMBEDDED_CONNECTIONS / (count + BEING_REPLACED)) - CONNECTIONS_BESIDE_POOL;
  const sessions = Object.values(bulkheadsOf(config).sizes).reduce((sum, size) => sum + size, 0);
  if (config.DATABASE_URL === undefined && sessions > fitting)
    throw new ConfigError(
      fitting < 4
        ? `--workers: the embedded database has too few connections for ${count}`
        : `DATABASE_POOL: with ${count} workers the embedded database allows ${fitting} connections each`,
    );
  if (config.REDIS_URL === undefined)
    process.stderr.write("Without REDIS_URL workers cannot notify each other: commands wait for the sweep, and each worker counts limits by itself.\n");
  await checkCertificate(config);
  await checkFree({ host: config.HOST, port: config.PORT, prefix: "" });
  const edgePort = await checkFree({ host: config.EDGE_HOST, port: config.EDGE_PORT, prefix: "EDGE_" });
  if (config.EDGE_HTTP_PORT !== undefined) await checkFree({ host: config.EDGE_HOST, port: config.EDGE_HTTP_PORT, prefix: "EDGE_HTTP_" });
  for (let index = 0; index < count && config.INTERNAL_PORT !== 0; index += 1)
    await checkFree({ host: config.INTERNAL_HOST, port: internalPortOf({ ...config, EDGE_PORT: edgePort }, index), prefix: "INTERNAL_" });
  await checkCertificate(config, "EDGE_");
  const workers = startWorkers({ count, script: fileURLToPath(import.meta.url), log, words: ["--edge-port", String(edgePort)] });
  await openEdgePorts({ ...config, EDGE_PORT: edgePort }, workers);
  const stop = (why: string): void => {
    log.info({ why }, "the gateway is stopping");
    workers.stop().then((code) => process.exit(process.exitCode ?? code), fail);
  };
  endAfterDefect(log, stop);
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // A closed terminal ends the gateway; a service manager sends SIGHUP for a rolling restart.
  process.on("SIGHUP", (signal) => {
    if (process.stdin.isTTY) return stop(signal);
    log.info({ signal }, "replacing the workers");
    return void workers.renew().then(
      () => log.info({ workers: workers.pids() }, "replaced the workers"),
      (error: unknown) => log.error({ error }, "could not replace all workers; the others stay"),
    );
  });
  await workers.ready.catch(async (error: unknown) => {
    await workers.stop();
    throw error;
  });
  greet(publicUrlOf(config));
  workers.tell({ offerSignIn: {} });
};

const run = async (): Promise<void> => {
  // The reader of the output may go away; the agents stay.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const { values } = parseArgs({
    options: {
      workers: { type: "string" },
      worker: { type: "string" },
      generation: { type: "string" },
      "edge-port": { type: "string" },
      "sign-in-later": { type: "boolean" },
    },
  });
  const config = readConfig(process.env);
  const log = createLog(config.LOG_LEVEL, { service: "mooring" });
  const count = readNumber("workers", values.workers, MAX_WORKERS) ?? 1;
  const worker = readNumber("worker", values.worker, MAX_WORKERS);
  const generation = readNumber("generation", values.generation, MAX_GENERATIONS) ?? 0;
  const place = worker === undefined ? undefined : { worker, generation, edgePort: readNumber("edge-port", values["edge-port"], MAX_PORT) };
  if (place !== undefined) await serve(workerConfig(config, place), log, { place, signInLater: true });
  else if (count > 1) await supervise(config, log, count);
  else await serve(config, log, { signInLater: values["sign-in-later"] === true });
};

try {
  await run();
} catch (error) {
  fail(error);
}
