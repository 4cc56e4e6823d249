// Everything one chaos run stands on: PostgreSQL, gateways, Redis if asked for, and a proxy between any pair; gone when the run ends.
import { randomBytes, randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootstrap } from "../bootstrap.ts";
import { createHttp, type Http } from "../http.ts";
import { type Credentials, createPortal, type Member, type Portal } from "../portal.ts";
import { createRandom } from "../random.ts";
import { systemTime as time } from "../time.ts";
import { createNode, type Node, plainEnv } from "./node.ts";
import { createPostgres, type Postgres } from "./postgres.ts";
import { createProxy, type FaultProxy, type Filter, type ProxyOptions } from "./proxy.ts";
import { createRedis, type Redis } from "./redis.ts";

const PROVISION_MS = 120_000;
const API_SOCKETS = 64;

export interface RigOptions {
  readonly nodes: number;
  readonly seed: number;
  readonly redis?: boolean;
  /** Sees what passes between the gateways and Redis. */
  readonly redisFilter?: () => Filter;
  readonly postgresSettings?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Rig {
  readonly postgres: Postgres;
  readonly redis: Redis | null;
  readonly nodes: readonly Node[];
  /** What agents connect to. */
  readonly agentDoor: FaultProxy;
  /** What scripts call. */
  readonly apiDoor: FaultProxy;
  /** Between the gateways and PostgreSQL. */
  readonly databaseDoor: FaultProxy;
  /** Between the gateways and Redis. */
  readonly redisDoor: FaultProxy | null;
  /** One more door to the gateways, for those who meet other weather. */
  door(options?: Partial<Pick<ProxyOptions, "filter" | "targets">>): Promise<FaultProxy>;
  readonly credentials: Credentials;
  readonly http: Http;
  readonly portal: Portal;
  provision(count: number): Promise<readonly Member[]>;
  close(): Promise<void>;
}

export const urlOf = ({ port }: { readonly port: number }): string => `http://127.0.0.1:${port}`;

const LIMITS_OFF = Object.fromEntries(
  ["STANDARD", "TENANT", "AGENT", "HEARTBEAT", "ANONYMOUS", "PAIRING", "FAILED_AUTH", "CONNECT"].map((name) => [`RATE_LIMIT_${name}`, "off"]),
);
const BASE_ENV = { ...LIMITS_OFF, HOST: "127.0.0.1", LOG_LEVEL: "error", ACCEPT_PER_SECOND: "4000", COMMAND_QUEUE_PER_DEVICE: "2000", SHUTDOWN_SECONDS: "20" };

/** Things to undo, last first; each is tried whatever becomes of the others. */
const createUndo = () => {
  const steps: (() => Promise<unknown> | unknown)[] = [];
  return {
    add: (step: () => Promise<unknown> | unknown) => void steps.push(step),
    run: async (): Promise<void> => {
      const failures: unknown[] = [];
      for (let step = steps.pop(); step; step = steps.pop()) await Promise.resolve(step()).catch((error: unknown) => failures.push(error));
      if (failures.length > 0) throw new AggregateError(failures, "not everything of the rig could be ended");
    },
  };
};
type Undo = ReturnType<typeof createUndo>;

const build = async ({ nodes: count, seed, redis: wantsRedis = false, redisFilter, postgresSettings = {}, env = {} }: RigOptions, undo: Undo): Promise<Rig> => {
  const folder = await mkdtemp(join(tmpdir(), "mooring-chaos-"));
  // On Ctrl-C the children are ended by then (children.ts hears of the exit first).
  const sweep = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  process.once("exit", sweep);
  undo.add(async () => {
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    process.removeListener("exit", sweep);
  });
  await chmod(folder, 0o755);
  const random = createRandom(seed + 7_919);
  const proxy = async (options: Omit<ProxyOptions, "random">): Promise<FaultProxy> => {
    const made = await createProxy({ ...options, random });
    undo.add(made.close);
    return made;
  };
  const postgres = await createPostgres(folder, postgresSettings);
  undo.add(postgres.stop);
  await postgres.start();
  const redis = wantsRedis ? await createRedis(folder) : null;
  if (redis) undo.add(redis.stop);
  await redis?.start();
  const databaseDoor = await proxy({ targets: () => [postgres.port] });
  const redisDoor = redis ? await proxy({ targets: () => [redis.port], ...(redisFilter ? { filter: redisFilter } : {}) }) : null;
  const settings = {
    ...BASE_ENV,
    ...env,
    DATA_DIR: join(folder, "data"),
    MASTER_KEY: randomBytes(32).toString("base64"),
    DATABASE_URL: postgres.url(databaseDoor.port),
    ...(redisDoor ? { REDIS_URL: `redis://127.0.0.1:${redisDoor.port}` } : {}),
  };
  const nodes: Node[] = [];
  for (let n = 0; n < count; n += 1) {
    const node = await createNode(`node-${n + 1}`, settings);
    undo.add(node.stop);
    nodes.push(node);
    await node.start();
  }
  const ports = (): readonly number[] => nodes.map(({ port }) => port);
  const [agentDoor, apiDoor] = [await proxy({ targets: ports }), await proxy({ targets: ports })];
  const slug = `chaos-${randomUUID().slice(0, 8)}`;
  const { apiKey, tenantId } = await bootstrap({ name: "Chaos", slug }, { ...plainEnv(), ...settings });
  const http = createHttp(urlOf(apiDoor), API_SOCKETS);
  undo.add(http.close);
  const portal = createPortal(http, { apiKey, tenantId });
  const provision = async (size: number): Promise<readonly Member[]> => {
    const fingerprints = Array.from({ length: size }, (_, n) => `chaos-${randomUUID().slice(0, 8)}-${n}`);
    return portal.provision(fingerprints, randomUUID(), { time, random, untilMs: time.elapsedMs() + PROVISION_MS });
  };
  return {
    postgres,
    redis,
    nodes,
    agentDoor,
    apiDoor,
    databaseDoor,
    redisDoor,
    door: (options = {}) => proxy({ targets: ports, ...options }),
    credentials: { apiKey, tenantId },
    http,
    portal,
    provision,
    close: undo.run,
  };
};

/** Whatever was started is ended again when the start fails half-way. */
export const createRig = async (options: RigOptions): Promise<Rig> => {
  const undo = createUndo();
  try {
    return await build(options, undo);
  } catch (error) {
    await undo.run();
    throw error;
  }
};
