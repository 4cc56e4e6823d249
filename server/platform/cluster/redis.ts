// Redis connections, and the only file that imports the client: each closes when Redis goes silent, reconnects by itself and bounds every wait.
// We turn off the client's own reconnection: its queue has no bound, and it waits for ever for a server that accepts but does not answer.
import { createHash } from "node:crypto";
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

/** A Lua script. We send its digest, and its source when Redis does not know it yet. */
export interface Script {
  readonly source: string;
  readonly digest: string;
}
export const script = (source: string): Script => ({ source, digest: createHash("sha1").update(source).digest("hex") });

export interface Redis {
  readonly connected: boolean;
  /** Rejects at once without a connection. A late answer counts as a lost connection. The commands of one turn of the event loop share a packet. */
  command(...words: readonly string[]): Promise<unknown>;
  run(script: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown>;
  /** Calls the hook after every connect, the first one too. */
  onConnected(hook: () => void): void;
  close(): Promise<void>;
}

export interface RedisSubscriber {
  readonly connected: boolean;
  /** Resolves when the subscription is active, or at once without a connection: the next one subscribes again. */
  subscribe(channel: string): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /** Drops the connection for a new one. */
  renew(cause: Error): void;
  /** Calls the hook when all subscriptions are active again. */
  onConnected(hook: () => void): void;
  close(): Promise<void>;
}

type Client = ReturnType<typeof createClient>;

interface Link {
  readonly live: Client | null;
  lose(client: Client, cause: unknown): void;
  close(): void;
}

/** A sentinel answers at once or is away, and the others are asked after it. */
const SENTINEL_MS = 1_000;

const askSentinel = async (url: string, master: string): Promise<readonly string[] | null> => {
  const client = createClient({ url, disableOfflineQueue: true, socket: { connectTimeout: SENTINEL_MS, reconnectStrategy: false } });
  client.on("error", () => undefined);
  const late = setTimeout(() => client.isOpen && client.destroy(), SENTINEL_MS);
  try {
    await client.connect();
    const answer: unknown = await client.sendCommand(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master]);
    return Array.isArray(answer) ? answer.map(String) : null;
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
      const [name, port] = (await askSentinel(sentinel, master)) ?? [];
      if (name !== undefined && port !== undefined) return at(name, port);
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

/** Keeps one connection open. `prepare` is part of connecting and shares its time limit; `ready` runs once the connection works. */
const openLink = (
  { url, name, onError, settings }: RedisDeps & { readonly settings: RedisSettings },
  { prepare, ready }: { prepare: (client: Client) => Promise<void>; ready: () => void },
): Link => {
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
      socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: false },
    });
    state.current = client;
    client.on("error", (error: unknown) => lose(client, error));
    client.on("end", () => lose(client, new Error("the connection to Redis ended")));
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

const away = (): Error => new Error("Redis is away");
const DIAL_AGAIN_MS = 5_000;
/** It has become a replica. */
const refusesWrites = (error: unknown): boolean => error instanceof Error && error.message.startsWith("READONLY");
const isUnknownScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith("NOSCRIPT");

export const openRedis = (deps: RedisDeps): Redis => {
  const settings = { ...REDIS_SETTINGS, ...deps.settings };
  const hooks: (() => void)[] = [];
  const link = openLink(
    { ...deps, settings },
    {
      prepare: async () => undefined,
      ready: () => {
        for (const hook of hooks) hook();
      },
    },
  );

  // Behind a proxy or sentinels another one takes writes now. If not, the next attempts find the same.
  let dialed: NodeJS.Timeout | undefined;
  const dialAnew = (client: Client, error: unknown): void => {
    if (dialed !== undefined) return;
    dialed = setTimeout(() => {
      dialed = undefined;
    }, DIAL_AGAIN_MS).unref();
    link.lose(client, error);
  };
  const command = async (...words: readonly string[]): Promise<unknown> => {
    const client = link.live;
    if (client === null) throw away();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`Redis did not answer within ${settings.commandTimeoutMs} ms`);
        reject(error);
        link.lose(client, error);
      }, settings.commandTimeoutMs);
    });
    try {
      return await Promise.race([client.sendCommand([...words]), late]);
    } catch (error) {
      if (refusesWrites(error)) dialAnew(client, error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    get connected() {
      return link.live !== null;
    },
    command,
    run: async ({ source, digest }, keys, values) => {
      const rest = [String(keys.length), ...keys, ...values.map(String)];
      try {
        return await command("EVALSHA", digest, ...rest);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return command("EVAL", source, ...rest);
      }
    },
    onConnected: (hook) => void hooks.push(hook),
    close: async () => {
      clearTimeout(dialed);
      link.close();
    },
  };
};

/** Opens a connection of its own: one with subscriptions accepts no other commands. */
export const openSubscriber = (deps: RedisDeps & { readonly onMessage: (channel: string, text: string) => void }): RedisSubscriber => {
  const channels = new Set<string>();
  const hooks: (() => void)[] = [];
  const receive = (text: string, channel: string): void => deps.onMessage(channel, text);
  const link = openLink(
    { ...deps, settings: { ...REDIS_SETTINGS, ...deps.settings } },
    {
      prepare: async (client) => {
        if (channels.size > 0) await client.subscribe([...channels], receive);
      },
      ready: () => {
        // Channels that were requested while the connection was opening.
        for (const channel of channels) void add(channel);
        for (const hook of hooks) hook();
      },
    },
  );
  // The client ignores a second subscription to the same channel.
  const add = async (channel: string): Promise<void> => {
    const client = link.live;
    if (client === null) return;
    await client.subscribe(channel, receive).catch((error: unknown) => link.lose(client, error));
  };
  return {
    get connected() {
      return link.live !== null;
    },
    subscribe: async (channel) => {
      channels.add(channel);
      await add(channel);
    },
    unsubscribe: async (channel) => {
      channels.delete(channel);
      const client = link.live;
      if (client !== null) await client.unsubscribe(channel).catch((error: unknown) => link.lose(client, error));
    },
    renew: (cause) => {
      if (link.live !== null) link.lose(link.live, cause);
    },
    onConnected: (hook) => void hooks.push(hook),
    close: async () => link.close(),
  };
};
