// Redis connections, and the only file that imports the client: each closes when Redis goes silent, reconnects by itself and bounds every wait.
// We turn off the client's own reconnection: its queue has no bound, and it waits for ever for a server that accepts but does not answer.
import { createClient } from "redis";
import { type RedisPlace, redisPlaceOf } from "./redis-urls.ts";

export interface RedisSettings {
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly retryBaseMs: number;
  readonly retryCapMs: number;
  /** How many commands may wait for an answer; the next one fails at once. */
  readonly maxWaiting: number;
}

export const REDIS_SETTINGS: RedisSettings = { connectTimeoutMs: 5_000, commandTimeoutMs: 2_000, retryBaseMs: 100, retryCapMs: 2_000, maxWaiting: 10_000 };

export interface RedisDeps {
  readonly url: string;
  /** Shown in CLIENT LIST. */
  readonly name: string;
  readonly settings?: Partial<RedisSettings> | undefined;
  /** A connection was lost or failed. Called once until the next success. */
  readonly onError: (error: unknown) => void;
}

export type Client = ReturnType<typeof createClient>;

export interface RedisLink {
  readonly live: Client | null;
  lose(client: Client, cause: unknown): void;
  close(): void;
}

/** A server that is asked for another one's address answers at once or is away, and the next is asked after it. */
const ASK_MS = 1_000;

/** Asks over a connection of its own. */
export const askRedis = async (url: string, words: readonly string[], withinMs = ASK_MS): Promise<unknown> => {
  const client = createClient({ url, disableOfflineQueue: true, socket: { connectTimeout: withinMs, reconnectStrategy: false } });
  client.on("error", () => undefined);
  const late = setTimeout(() => client.isOpen && client.destroy(), withinMs);
  try {
    await client.connect();
    return await client.sendCommand([...words]);
  } finally {
    clearTimeout(late);
    if (client.isOpen) client.destroy();
  }
};

/** Where the Redis is that takes writes. */
const findRedis = async ({ sentinels, master, at }: RedisPlace): Promise<string> => {
  if (sentinels.length === 0) return at("", "");
  const reasons: string[] = [];
  for (const sentinel of sentinels) {
    const { host } = new URL(sentinel);
    try {
      const answer = await askRedis(sentinel, ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master]);
      if (Array.isArray(answer) && answer.length === 2) return at(String(answer[0]), String(answer[1]));
      reasons.push(`${host} knows no master ${master}`);
    } catch (error) {
      reasons.push(`${host}: ${String(error)}`);
    }
  }
  throw new Error(`no sentinel names the Redis: ${reasons.join("; ")}`);
};

/** A sentinel may name a master that is none any more, or not yet. */
const demandMaster = async (client: Client, { sentinels }: RedisPlace): Promise<void> => {
  if (sentinels.length === 0) return;
  const role: unknown = await client.sendCommand(["ROLE"]);
  if (!Array.isArray(role) || String(role[0]) !== "master")
    throw new Error(`the Redis that the sentinels name is no master but a ${String(role)}`.slice(0, 200));
};

export interface LinkHooks {
  /** Part of connecting; shares its time limit. */
  readonly prepare: (client: Client) => Promise<void>;
  /** Runs once the connection works. */
  readonly ready: () => void;
  /** Asks an idle connection whether it still carries anything; by default nobody does. */
  readonly idle?: { readonly pingInterval: number; readonly socketTimeout: number };
}

/** Keeps one connection open. */
export const openLink = (
  { url, name, onError, settings }: RedisDeps & { readonly settings: RedisSettings },
  { prepare, ready, idle }: LinkHooks,
): RedisLink => {
  const { connectTimeoutMs, maxWaiting, retryBaseMs, retryCapMs } = settings;
  const place = redisPlaceOf(url);
  const state: { current: Client | null; live: Client | null; failures: number; closed: boolean; timer?: NodeJS.Timeout } = {
    current: null,
    live: null,
    failures: 0,
    closed: false,
  };

  const lose = (client: Client, cause: unknown): void => {
    if (client !== state.current) return;
    state.current = null;
    state.live = null;
    client.destroy();
    again(cause);
  };
  const again = (cause: unknown): void => {
    if (state.closed) return;
    if (state.failures === 0) onError(cause);
    const pauseMs = Math.min(retryCapMs, retryBaseMs * 2 ** state.failures);
    state.failures = Math.min(state.failures + 1, 10);
    // Half fixed, half random, so that nodes do not reconnect in step.
    state.timer = setTimeout(connect, pauseMs * (0.5 + Math.random() * 0.5));
  };

  const connect = (): void => void findRedis(place).then(dial, again);
  const dial = (found: string): void => {
    if (state.closed) return;
    const client: Client = createClient({
      url: found,
      name,
      disableOfflineQueue: true,
      commandsQueueMaxLength: maxWaiting,
      maintNotifications: "disabled",
      // Our own timer bounds each command; the client's would allocate an AbortSignal for each.
      commandOptions: { timeout: 0 },
      ...(idle && { pingInterval: idle.pingInterval }),
      socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: false, ...(idle && { socketTimeout: idle.socketTimeout }) },
    });
    state.current = client;
    client.on("error", (error: unknown) => lose(client, error));
    client.on("end", () => lose(client, new Error("the connection to Redis ended")));
    client.on("sharded-channel-moved", () => lose(client, new Error("a channel has moved to another Redis")));
    const late = setTimeout(() => lose(client, new Error(`Redis was not ready within ${connectTimeoutMs} ms`)), connectTimeoutMs);
    const arrive = async (): Promise<void> => {
      await client.connect();
      await demandMaster(client, place);
      await prepare(client);
      if (client !== state.current) return client.destroy();
      state.live = client;
      state.failures = 0;
      ready();
    };
    arrive()
      .catch((error: unknown) => lose(client, error))
      .finally(() => clearTimeout(late));
  };

  connect();
  return {
    get live() {
      return state.live;
    },
    lose,
    close: () => {
      state.closed = true;
      clearTimeout(state.timer);
      if (state.current !== null) lose(state.current, null);
    },
  };
};
