// The servers of one chaos run: PostgreSQL, gateways, Redis on request, and a proxy between each pair. They end with the run.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createHttp, createRandom, type Http, type PairedDevice, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { type Bootstrapped, bootstrap } from "../../../agent-sim/bootstrap.ts";
import { createPortal, type Portal, type TenantCredentials } from "../../../agent-sim/fleet/portal.ts";
import { plainEnv } from "../../kit/net/children.ts";
import { makeFolder } from "../../kit/setup/workspace.ts";
import { type RedisClusterServers, startRedisCluster } from "../../kit/stores/redis-cluster.ts";
import { createNode, type Node, OWN_ROOT } from "./node.ts";
import { COMMON_ENV, origin } from "./origin.ts";
import { createPostgres, type Postgres, type PostgresSettings } from "./postgres.ts";
import { type ByteFilter, createProxy, type FaultProxy, type ProxyOptions } from "./proxy.ts";
import { type ChaosRedis, createRedis } from "./redis.ts";
import { createStandby, leading, type Standby } from "./replication.ts";
import { ask } from "./sql.ts";

const PROVISION_MS = 120_000;
const PROVISIONED_AT_ONCE = 1_000;
const API_SOCKETS = 64;

export interface RigOptions {
  readonly nodes: number;
  readonly seed: number;
  readonly redis?: boolean;
  /** Three masters with a replica each, instead of one Redis. */
  readonly redisCluster?: boolean;
  /** Filters the traffic between the gateways and Redis. */
  readonly redisFilter?: () => ByteFilter;
  /** Filters the traffic between the gateways and PostgreSQL. */
  readonly databaseFilter?: ProxyOptions["filter"];
  readonly postgresSettings?: PostgresSettings;
  /** Adds a second server that replicates the first. */
  readonly standby?: "sync" | "async";
  /** Without a proxy: `both` names the leader and its standby to the nodes, `leader` only the leader. */
  readonly direct?: "both" | "leader" | undefined;
  /** SQL that sabotages the database for a control; see sabotage.ts. */
  readonly sabotage?: string | undefined;
  /** The package whose gateway migrates the database and runs first; this one's unless named. */
  readonly root?: string | undefined;
  readonly env?: PostgresSettings;
  /** More for one node, by its place. */
  readonly envOf?: (node: number) => PostgresSettings;
}

export interface Rig {
  readonly postgres: Postgres;
  readonly standby: Standby | null;
  readonly redis: ChaosRedis | null;
  readonly redisCluster: RedisClusterServers | null;
  readonly nodes: readonly Node[];
  /** The proxy that agents connect to. */
  readonly agentProxy: FaultProxy;
  /** The proxy that scripts call. */
  readonly apiProxy: FaultProxy;
  /** The proxy between the gateways and PostgreSQL. */
  readonly databaseProxy: FaultProxy;
  /** The proxy between the gateways and Redis. */
  readonly redisProxy: FaultProxy | null;
  /** Opens another proxy to the gateways, with its own faults. */
  openProxy(options?: Partial<Pick<ProxyOptions, "filter" | "targets">>): Promise<FaultProxy>;
  /** Points the gateways to the standby, or to another server. */
  failOver(to?: Postgres): void;
  /** Runs the gateway's command line and returns what it says. */
  cli(...words: readonly string[]): Promise<string>;
  readonly credentials: TenantCredentials;
  readonly http: Http;
  readonly portal: Portal;
  provision(count: number): Promise<readonly PairedDevice[]>;
  /** Creates another tenant with an API key, an owner's token and an enrollment token. */
  tenant(): Promise<Bootstrapped>;
  close(): Promise<void>;
}

export const urlOf = ({ port }: { readonly port: number }): string => `http://127.0.0.1:${port}`;

/** Steps to undo, last first; a step that fails does not stop the others. */
const createUndo = () => {
  const steps: (() => Promise<unknown> | unknown)[] = [];
  return {
    add: (step: () => Promise<unknown> | unknown) => void steps.push(step),
    run: async (): Promise<void> => {
      const failures: unknown[] = [];
      for (let step = steps.pop(); step; step = steps.pop()) await Promise.resolve(step()).catch((error: unknown) => failures.push(error));
      if (failures.length > 0) throw new AggregateError(failures, "some parts of the rig could not be stopped");
    },
  };
};
type Undo = ReturnType<typeof createUndo>;
type MakeProxy = (options: Omit<ProxyOptions, "random">) => Promise<FaultProxy>;

/** The servers below the gateways and the proxies to them. */
const buildGround = async (options: RigOptions, { folder, makeProxy, undo }: { folder: string; makeProxy: MakeProxy; undo: Undo }) => {
  const { redis: wantsRedis = false, redisFilter, databaseFilter, postgresSettings = {}, standby: kind, sabotage, direct } = options;
  const common = await origin(options.root);
  const postgres = await createPostgres({ folder, from: common.database, settings: { ...(kind ? leading(kind) : {}), ...postgresSettings } });
  undo.add(postgres.stop);
  await postgres.start();
  if (sabotage) await ask(postgres, sabotage);
  const state = { current: postgres };
  const follow = async (): Promise<Standby> => {
    const inner = join(folder, "standby");
    await mkdir(inner, { mode: 0o755 });
    const standby = await createStandby({ folder: inner, origin: common, leader: postgres, line: await makeProxy({ targets: () => [postgres.port] }) });
    undo.add(standby.postgres.stop);
    return standby;
  };
  const standby = kind ? await follow() : null;
  const redis = wantsRedis ? await createRedis(folder) : null;
  if (redis) undo.add(redis.stop);
  await redis?.start();
  const redisCluster = options.redisCluster === true ? await startRedisCluster() : null;
  if (redisCluster) undo.add(redisCluster.close);
  const databaseProxy = await makeProxy({ targets: () => [state.current.port], ...(databaseFilter ? { filter: databaseFilter } : {}) });
  const redisProxy = redis ? await makeProxy({ targets: () => [redis.port], ...(redisFilter ? { filter: redisFilter } : {}) }) : null;
  const failOver = (to = standby?.postgres ?? postgres): void => {
    state.current = to;
  };
  const databaseUrlOf = (): string => {
    if (direct === undefined) return postgres.url(databaseProxy.port);
    const leader = postgres.url(postgres.port);
    return direct === "leader" || standby === null ? leader : leader.replace(/(127\.0\.0\.1:)\d+/, `$&,$1${standby.postgres.port}`);
  };
  const env = {
    DATA_DIR: join(folder, "data"),
    MASTER_KEY: common.masterKey,
    DATABASE_URL: databaseUrlOf(),
    ...(redisProxy ? { REDIS_URL: `redis://127.0.0.1:${redisProxy.port}` } : {}),
    ...(redisCluster ? { REDIS_URL: redisCluster.urlOf("", redisCluster.password) } : {}),
  };
  return { postgres, standby, redis, redisCluster, databaseProxy, redisProxy, failOver, env, credentials: common.credentials };
};

const build = async (options: RigOptions, undo: Undo): Promise<Rig> => {
  const folder = makeFolder("rig");
  undo.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
  const random = createRandom(options.seed + 7_919);
  const makeProxy: MakeProxy = async (wanted) => {
    const made = await createProxy({ ...wanted, random });
    undo.add(made.close);
    return made;
  };
  const { env, credentials, ...ground } = await buildGround(options, { folder, makeProxy, undo });
  const nodes: Node[] = [];
  for (let n = 0; n < options.nodes; n += 1) {
    const node = await createNode(`node-${n + 1}`, { ...COMMON_ENV, ...options.env, ...env, ...options.envOf?.(n) }, options.root);
    undo.add(node.stop);
    nodes.push(node);
  }
  await Promise.all(nodes.map((node) => node.start()));
  const ports = (): readonly number[] => nodes.map(({ port }) => port);
  const [agentProxy, apiProxy] = [await makeProxy({ targets: ports }), await makeProxy({ targets: ports })];
  const programEnv = { ...plainEnv(), ...COMMON_ENV, ...options.env, ...env };
  const tenant = (): Promise<Bootstrapped> => bootstrap({ name: "Chaos", slug: `chaos-${randomUUID().slice(0, 8)}` }, programEnv);
  const cli = async (...words: readonly string[]): Promise<string> => {
    const program = join(options.root ?? OWN_ROOT, "dist", "server", "cli.js");
    return (await promisify(execFile)(process.execPath, [program, ...words], { env: programEnv, timeout: PROVISION_MS })).stdout;
  };
  const http = createHttp(urlOf(apiProxy), API_SOCKETS);
  undo.add(http.close);
  const portal = createPortal(http, credentials);
  const provision = async (size: number): Promise<readonly PairedDevice[]> => {
    const fingerprints = Array.from({ length: size }, (_, n) => `chaos-${randomUUID().slice(0, 8)}-${n}`);
    const members: PairedDevice[] = [];
    for (let from = 0; from < size; from += PROVISIONED_AT_ONCE) {
      const some = fingerprints.slice(from, from + PROVISIONED_AT_ONCE);
      members.push(...(await portal.provision(some, randomUUID(), { time, random, untilMs: time.elapsedMs() + PROVISION_MS })));
    }
    return members;
  };
  const openProxy: Rig["openProxy"] = (wanted = {}) => makeProxy({ targets: ports, ...wanted });
  return { ...ground, nodes, agentProxy, apiProxy, openProxy, credentials, http, portal, provision, tenant, cli, close: undo.run };
};

/** Builds a rig and, if that fails half-way, stops what it has started. */
export const createRig = async (options: RigOptions): Promise<Rig> => {
  const undo = createUndo();
  try {
    return await build(options, undo);
  } catch (error) {
    await undo.run();
    throw error;
  }
};

/** Runs `use` on a new rig and closes it. */
export const withRig = async <T>(options: RigOptions, use: (rig: Rig) => Promise<T>): Promise<T> => {
  const rig = await createRig(options);
  try {
    return await use(rig);
  } finally {
    await rig.close();
  }
};
