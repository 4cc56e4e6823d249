// A Redis for commands, over one connection.
import { createHash } from "node:crypto";
import { type Client, openLink, REDIS_SETTINGS, type RedisDeps } from "./redis-link.ts";

/** A Lua script. We send its digest, and its source when Redis does not know it yet. */
export interface Script {
  readonly source: string;
  readonly digest: string;
}
export const script = (source: string): Script => ({ source, digest: createHash("sha1").update(source).digest("hex") });

export interface Redis {
  readonly connected: boolean;
  /**
   * The word after the command's name is its key. Rejects at once without a connection. A late answer counts as a lost connection. The commands of one
   * turn of the event loop share a packet.
   */
  command(...words: readonly string[]): Promise<unknown>;
  /** All keys must have the same slot. */
  run(script: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown>;
  /** Resolves with the number of receivers. */
  publish(channel: string, text: string): Promise<number>;
  /** Where the key lives in a cluster; the same for all keys of a Redis that is none. */
  slotOf(key: string): number;
  /** Calls the hook after every connect, the first one too. */
  onConnected(hook: () => void): void;
  close(): Promise<void>;
}

const away = (): Error => new Error("Redis is away");
const DIAL_AGAIN_MS = 5_000;
/** It has become a replica. */
const refusesWrites = (error: unknown): boolean => error instanceof Error && error.message.startsWith("READONLY");
const isUnknownScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith("NOSCRIPT");

/** Sends the digest of a script; its source follows if Redis does not know it. */
export const evalScript = async (
  send: (...words: readonly string[]) => Promise<unknown>,
  { source, digest }: Script,
  keys: readonly string[],
  values: readonly (string | number)[],
): Promise<unknown> => {
  const rest = [String(keys.length), ...keys, ...values.map(String)];
  try {
    return await send("EVALSHA", digest, ...rest);
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return send("EVAL", source, ...rest);
  }
};

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
    run: (given, keys, values) => evalScript(command, given, keys, values),
    publish: async (channel, text) => Number(await command("PUBLISH", channel, text)),
    slotOf: () => 0,
    onConnected: (hook) => void hooks.push(hook),
    close: async () => {
      clearTimeout(dialed);
      link.close();
    },
  };
};
