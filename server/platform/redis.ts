// The one file that knows the Redis client: connections that end when they go silent, come back by themselves, and never let anybody wait without end.
// The client's own reconnection is switched off: it queues without a bound, and it waits for ever for a server that accepts but does not answer.
import { createHash } from "node:crypto";
import { createClient } from "redis";

export interface RedisSettings {
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly retryBaseMs: number;
  readonly retryCapMs: number;
  /** Commands that may wait for an answer; more are refused at once. */
  readonly maxWaiting: number;
}

export const REDIS_SETTINGS: RedisSettings = { connectTimeoutMs: 5_000, commandTimeoutMs: 2_000, retryBaseMs: 100, retryCapMs: 2_000, maxWaiting: 10_000 };

export interface RedisDeps {
  readonly url: string;
  /** Shown in CLIENT LIST. */
  readonly name: string;
  readonly settings?: Partial<RedisSettings> | undefined;
  /** A connection was lost or could not be made. Told once per row of attempts. */
  readonly onError: (error: unknown) => void;
}

/** Atomic on the server; sent by its digest, and whole when the server does not know it yet. */
export interface Script {
  readonly source: string;
  readonly digest: string;
}
export const script = (source: string): Script => ({ source, digest: createHash("sha1").update(source).digest("hex") });

export interface Redis {
  readonly connected: boolean;
  /** Rejects at once while there is no connection. Without an answer in time the connection counts as lost. Commands of one turn of the event loop travel together. */
  command(...words: readonly string[]): Promise<unknown>;
  run(script: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown>;
  /** Hears of every connection from now on, the first included. */
  onConnected(hook: () => void): void;
  close(): Promise<void>;
}

export interface Subscriber {
  readonly connected: boolean;
  /** Resolves when it holds, or at once while there is no connection: it is made good with the next one. */
  subscribe(channel: string): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /** Gives the connection up for a new one. */
  renew(cause: Error): void;
  /** All subscriptions hold again. */
  onConnected(hook: () => void): void;
  close(): Promise<void>;
}

type Client = ReturnType<typeof createClient>;

interface Link {
  readonly live: Client | null;
  lose(client: Client, cause: unknown): void;
  close(): void;
}

/** Keeps one connection: `prepare` belongs to connecting and is bounded with it, `ready` says that it lives. */
const openLink = (
  { url, name, onError, settings }: RedisDeps & { readonly settings: RedisSettings },
  { prepare, ready }: { prepare: (client: Client) => Promise<void>; ready: () => void },
): Link => {
  const { connectTimeoutMs, maxWaiting, retryBaseMs, retryCapMs } = settings;
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
    if (state.closed) return;
    if (state.failures === 0) onError(cause);
    const pauseMs = Math.min(retryCapMs, retryBaseMs * 2 ** state.failures);
    state.failures = Math.min(state.failures + 1, 10);
    // Half fixed, half random, so that nodes do not come back in step.
    state.timer = setTimeout(connect, pauseMs * (0.5 + Math.random() * 0.5));
  };

  const connect = (): void => {
    const client: Client = createClient({
      url,
      name,
      disableOfflineQueue: true,
      commandsQueueMaxLength: maxWaiting,
      maintNotifications: "disabled",
      // Our own timer bounds each command; the client's would cost an AbortSignal for each.
      commandOptions: { timeout: 0 },
      socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: false },
    });
    state.current = client;
    client.on("error", (error: unknown) => lose(client, error));
    client.on("end", () => lose(client, new Error("the connection to Redis ended")));
    const late = setTimeout(() => lose(client, new Error(`Redis was not ready within ${connectTimeoutMs} ms`)), connectTimeoutMs);
    const arrive = async (): Promise<void> => {
      await client.connect();
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
    return Promise.race([client.sendCommand([...words]), late]).finally(() => clearTimeout(timer));
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
    close: async () => link.close(),
  };
};

/** A connection of its own: one that listens can do nothing else. */
export const openSubscriber = (deps: RedisDeps & { readonly onMessage: (channel: string, text: string) => void }): Subscriber => {
  const channels = new Set<string>();
  const hooks: (() => void)[] = [];
  const hear = (text: string, channel: string): void => deps.onMessage(channel, text);
  const link = openLink(
    { ...deps, settings: { ...REDIS_SETTINGS, ...deps.settings } },
    {
      prepare: async (client) => {
        if (channels.size > 0) await client.subscribe([...channels], hear);
      },
      ready: () => {
        // Those that were asked for while the connection was being made.
        for (const channel of channels) void add(channel);
        for (const hook of hooks) hook();
      },
    },
  );
  // The client knows what it has subscribed to; asking twice adds nothing.
  const add = async (channel: string): Promise<void> => {
    const client = link.live;
    if (client === null) return;
    await client.subscribe(channel, hear).catch((error: unknown) => link.lose(client, error));
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
