// Subscriptions to channels of one Redis, over a connection of their own: one with subscriptions accepts no other commands.
import { type Client, openLink, REDIS_SETTINGS, type RedisDeps } from "./redis-link.ts";

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

export type OnMessage = (channel: string, text: string) => void;

export interface SubscriberDeps extends RedisDeps {
  readonly onMessage: OnMessage;
  /** The channels are those of a cluster: each lives in a slot. */
  readonly sharded?: boolean;
}

/** Somebody else probes the subscriptions to a Redis that stands alone. */
const SHARD_IDLE = { pingInterval: 5_000, socketTimeout: 15_000 } as const;

export const openSubscriber = ({ sharded = false, ...deps }: SubscriberDeps): RedisSubscriber => {
  const channels = new Set<string>();
  const hooks: (() => void)[] = [];
  const receive = (text: string, channel: string): void => deps.onMessage(channel, text);
  const subscribe = (client: Client, names: string[]): Promise<unknown> =>
    // One sharded subscription names channels of one slot only.
    sharded ? Promise.all(names.map((channel) => client.sSubscribe(channel, receive))) : client.subscribe(names, receive);
  const link = openLink(
    { ...deps, settings: { ...REDIS_SETTINGS, ...deps.settings } },
    {
      ...(sharded && { idle: SHARD_IDLE }),
      prepare: async (client) => {
        if (channels.size > 0) await subscribe(client, [...channels]);
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
    await subscribe(client, [channel]).catch((error: unknown) => link.lose(client, error));
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
      if (client === null) return;
      await (sharded ? client.sUnsubscribe(channel) : client.unsubscribe(channel)).catch((error: unknown) => link.lose(client, error));
    },
    renew: (cause) => {
      if (link.live !== null) link.lose(link.live, cause);
    },
    onConnected: (hook) => void hooks.push(hook),
    close: async () => link.close(),
  };
};
