// A Redis Cluster as one Redis: a connection to each master for commands, and another for subscriptions. The client's own cluster is not used, because it
// reconnects with queues and waits that have no bound.
import { evalScript, openRedis, type Redis } from "./redis.ts";
import type { RedisDeps } from "./redis-link.ts";
import { clusterSlotOf } from "./redis-slots.ts";
import { type OnMessage, openSubscriber, type RedisSubscriber } from "./redis-subscriber.ts";
import { type MasterAddress, openTopology, type RedisTopology } from "./redis-topology.ts";
import { redisPlaceOf } from "./redis-urls.ts";

export interface RedisCluster {
  readonly redis: Redis;
  readonly openSubscriber: (onMessage: OnMessage) => RedisSubscriber;
}

const nobody = (): Error => new Error("no master of the Redis Cluster is known for this key");

/** Where a member says that the key is: for good, or while its slot moves. */
const redirectOf = (error: unknown): { readonly to: MasterAddress; readonly moves: boolean } | null => {
  const [, kind, to] = /^(MOVED|ASK) \d+ (\S+:\d+)$/.exec(error instanceof Error ? error.message : "") ?? [];
  // A member without a name says only the port; the topology knows more.
  return to === undefined || to.startsWith(":") ? null : { to, moves: kind === "ASK" };
};

/** The member does not serve the slot, or the cluster does not serve. */
const isOutdated = (error: unknown): boolean => error instanceof Error && /^(MOVED|CLUSTERDOWN)/.test(error.message);

interface Link {
  readonly connected: boolean;
  onConnected(hook: () => void): void;
  close(): Promise<void>;
}

/** One connection to each master, opened and closed as masters come and go. */
const openLinks = <L extends Link>(topology: RedisTopology, open: (address: MasterAddress) => L) => {
  const links = new Map<MasterAddress, L>();
  const hooks: (() => void)[] = [];
  const tell = (): void => {
    for (const hook of hooks) hook();
  };
  const to = (address: MasterAddress): L => {
    const known = links.get(address);
    if (known !== undefined) return known;
    const link = open(address);
    link.onConnected(tell);
    links.set(address, link);
    return link;
  };
  topology.onChanged(() => {
    for (const [address, link] of links) {
      if (topology.masters.has(address)) continue;
      links.delete(address);
      void link.close();
    }
    for (const address of topology.masters) to(address);
  });
  return {
    to,
    get connected() {
      return topology.masters.size > 0 && [...topology.masters].every((address) => to(address).connected);
    },
    onConnected: (hook: () => void): void => void hooks.push(hook),
    /** Calls the hooks as if a connection were new. */
    tell,
    close: async (): Promise<void> => {
      await Promise.all([...links.values()].map((link) => link.close()));
    },
    each: (run: (link: L) => void): void => links.forEach(run),
  };
};

interface ClusterPart {
  readonly topology: RedisTopology;
  /** For one master. */
  readonly depsOf: (address: MasterAddress) => RedisDeps;
}

const openCommands = ({ topology, depsOf }: ClusterPart): Redis => {
  const masters = openLinks(topology, (address) => openRedis(depsOf(address)));

  const follow = async (error: unknown, words: readonly string[]): Promise<unknown> => {
    const redirect = redirectOf(error);
    if (redirect === null) throw error;
    const link = masters.to(redirect.to);
    // Both leave in one packet, in this order.
    const asking = redirect.moves ? link.command("ASKING") : null;
    const answer = link.command(...words);
    await Promise.all([asking, answer]);
    return answer;
  };
  const send = async (key: string, words: readonly string[]): Promise<unknown> => {
    const address = topology.masterOf(key);
    if (address === null) throw nobody();
    const link = masters.to(address);
    try {
      return await link.command(...words);
    } catch (error) {
      if (!link.connected || isOutdated(error)) topology.refresh();
      return follow(error, words);
    }
  };

  return {
    get connected() {
      return masters.connected;
    },
    command: (...words) => send(words[1] ?? "", words),
    run: (given, keys, values) => evalScript((...words) => send(keys[0] ?? "", words), given, keys, values),
    publish: async (channel, text) => Number(await send(channel, ["SPUBLISH", channel, text])),
    slotOf: clusterSlotOf,
    onConnected: masters.onConnected,
    close: async () => {
      topology.close();
      await masters.close();
    },
  };
};

const openSubscriptions = ({ topology, depsOf }: ClusterPart, onMessage: OnMessage): RedisSubscriber => {
  const ears = openLinks(topology, (address) => openSubscriber({ ...depsOf(address), onMessage, sharded: true }));
  /** The master that each channel is subscribed at; null while none is known. */
  const places = new Map<string, MasterAddress | null>();
  const place = async (channel: string): Promise<void> => {
    const [before, now] = [places.get(channel) ?? null, topology.masterOf(channel)];
    if (before === now) return;
    places.set(channel, now);
    if (before !== null && topology.masters.has(before)) void ears.to(before).unsubscribe(channel);
    if (now !== null) await ears.to(now).subscribe(channel);
  };
  topology.onChanged(() => {
    // A channel that moved may have missed something.
    void Promise.all([...places.keys()].map(place)).then(ears.tell);
  });

  return {
    get connected() {
      return ears.connected && ![...places.values()].includes(null);
    },
    subscribe: async (channel) => {
      if (!places.has(channel)) places.set(channel, null);
      await place(channel);
    },
    unsubscribe: async (channel) => {
      const address = places.get(channel) ?? null;
      places.delete(channel);
      if (address !== null) await ears.to(address).unsubscribe(channel);
    },
    renew: (cause) => ears.each((ear) => ear.renew(cause)),
    onConnected: ears.onConnected,
    close: ears.close,
  };
};

/** One Redis as a cluster is one: commands and subscriptions over connections of their own. Opens at once, also while nobody answers. */
export const openRedisCluster = (deps: RedisDeps): RedisCluster => {
  const topology = openTopology({ place: redisPlaceOf(deps.url), onError: deps.onError });
  const depsOf = (address: MasterAddress): RedisDeps => ({
    ...deps,
    url: topology.urlOf(address),
    onError: (error) => {
      topology.refresh();
      deps.onError(error);
    },
  });
  const part = { topology, depsOf };
  return { redis: openCommands(part), openSubscriber: (onMessage) => openSubscriptions(part, onMessage) };
};

/** What the URL names: a cluster, or one Redis. */
export const openRedisPlace = (deps: RedisDeps): RedisCluster =>
  redisPlaceOf(deps.url).members.length > 0
    ? openRedisCluster(deps)
    : { redis: openRedis(deps), openSubscriber: (onMessage) => openSubscriber({ ...deps, onMessage }) };
