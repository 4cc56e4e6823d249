// Two gateways on one database and one Redis, and what tests do with both.
import { expect } from "vitest";
import { type AgentSocket, online } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, type Device, startWorld, type TestTenant, type World, type WorldOptions } from "../kit/gateway/world.ts";
import { startDeafProxy, startRedis, type TestRedis } from "../kit/stores/redis.ts";

export const TWO_NODES_ENV = { ACCEPT_PER_SECOND: "1000", RATE_LIMIT_CONNECT: "off", RATE_LIMIT_FAILED_AUTH: "off" };
/** As in production, except for the periods of a node's self-checks; the sweep keeps its own. */
export const TWO_NODES_SETTINGS: NonNullable<WorldOptions["settings"]> = {
  cluster: { redis: { connectTimeoutMs: 1_000, retryBaseMs: 20, retryCapMs: 200 }, bus: { probeEveryMs: 1_000 } },
  admin: { beatEveryMs: 200 },
  // Two gateways, their agents and a Redis share this process: what its event loop is late by says nothing here.
  channel: { flushEveryMs: 500, overload: { loopDelayMs: 60_000, lateForMs: 60_000, claimWaitMs: 60_000, calmForMs: 60_000 } },
  // Long enough that whatever wakes a waiting call sooner was a hint.
  commands: { waitRecheckEveryMs: 30_000 },
};
/** The sweep finds only older commands, so anything faster was a hint. */
export const BY_HINT_MS = 1_500;

/** Where an agent connects. */
export const at = ({ url }: World) => ({ url: url.replace(/^http/, "ws"), clock: { now: () => new Date() } });

export const redisCheck = async (world: World): Promise<[boolean, string | undefined]> => {
  const { body } = await world.call(anonymous, "GET", "/v1/health/ready");
  return [body.data.ready, body.data.checks.find(({ name }: { name: string }) => name === "redis")?.status];
};

export interface TwoNodes {
  readonly a: World;
  readonly b: World;
  readonly tenant: TestTenant;
  readonly redis: TestRedis;
  /** Between node b and Redis. */
  readonly proxy: Awaited<ReturnType<typeof startDeafProxy>>;
  join(world: World, device: Device, more?: object): Promise<AgentSocket>;
  /** Ends the socket with the test. */
  keep(socket: AgentSocket): void;
  queue(world: World, device: Device): Promise<string>;
  /** Queues on one node and waits for the frame on the other. */
  delivered(world: World, device: Device, socket: AgentSocket, withinMs: number): Promise<void>;
  degraded(world: World): Promise<void>;
  /** Waits until both nodes are healthy again. */
  whole(): Promise<void>;
  /** Ends a test: its sockets, and its disturbances. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export const openTwoNodes = async (): Promise<TwoNodes> => {
  const redis = await startRedis();
  const proxy = await startDeafProxy(redis.port);
  const a = await startWorld({ ...TWO_NODES_ENV, REDIS_URL: redis.url, NODE_ID: "node-a" }, { settings: TWO_NODES_SETTINGS });
  const b = await startWorld({ ...TWO_NODES_ENV, REDIS_URL: proxy.url, NODE_ID: "node-b" }, { settings: TWO_NODES_SETTINGS, beside: a });
  const tenant = await a.tenant();
  const sockets: AgentSocket[] = [];
  const queue: TwoNodes["queue"] = async (world, { deviceId }) => {
    const { status, body } = await world.call(tenant.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } });
    if (status !== 201) throw new Error(JSON.stringify(body));
    return body.data.commandId;
  };
  const whole = (): Promise<void> =>
    eventually(
      async () =>
        expect([await redisCheck(a), await redisCheck(b)]).toEqual([
          [true, "healthy"],
          [true, "healthy"],
        ]),
      15_000,
    );
  return {
    a,
    b,
    tenant,
    redis,
    proxy,
    join: async (world, device, more = {}) => {
      const socket = await online(at(world), device, more);
      sockets.push(socket);
      return socket;
    },
    keep: (socket) => void sockets.push(socket),
    queue,
    delivered: async (world, device, socket, withinMs) => {
      const commandId = await queue(world, device);
      const isThere = () => socket.frames.some((frame) => frame.op === "command" && frame.data.command.commandId === commandId);
      await eventually(() => expect(isThere()).toBe(true), withinMs);
      socket.say("ack", { commandId, status: "succeeded" });
    },
    degraded: (world) => eventually(async () => expect(await redisCheck(world)).toEqual([true, "degraded"])),
    whole,
    settle: async () => {
      for (const socket of sockets.splice(0)) socket.end();
      await whole();
    },
    close: async () => {
      await b.close();
      await a.close();
      await proxy.close();
      await redis.close();
    },
  };
};
