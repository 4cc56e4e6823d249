// The directory over Redis. Away or empty, it knows nobody: hints are not sent then, and the sweep finds what is due.
import type { Directory } from "./bus.ts";
import { type Redis, script } from "./redis.ts";
import { sessionKey } from "./redis-keys.ts";

export interface RedisDirectoryDeps {
  readonly redis: Redis;
  /** An entry that nobody refreshes is gone by then. */
  readonly ttlMs?: number;
}

const TTL_MS = 120_000;

const CLAIM = script(`
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and tonumber(epoch) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'node', ARGV[1], 'epoch', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`);

const removeIf = (field: "epoch" | "node") =>
  script(`
if redis.call('HGET', KEYS[1], '${field}') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`);
const RELEASE = removeIf("epoch");
const DISOWN = removeIf("node");

export const openRedisDirectory = ({ redis, ttlMs = TTL_MS }: RedisDirectoryDeps): Directory => {
  // A hint that cannot be kept is a hint lost; presence and sweep do not need it.
  const hint = async (work: Promise<unknown>): Promise<void> => {
    await work.catch(() => undefined);
  };
  return {
    owner: async (deviceId) => {
      const nodeId = await redis.command("HGET", sessionKey(deviceId), "node").catch(() => null);
      return typeof nodeId === "string" ? nodeId : null;
    },
    claim: (deviceId, nodeId, epoch) => hint(redis.run(CLAIM, [sessionKey(deviceId)], [nodeId, epoch, ttlMs])),
    release: (deviceId, epoch) => hint(redis.run(RELEASE, [sessionKey(deviceId)], [epoch])),
    disown: (deviceId, nodeId) => hint(redis.run(DISOWN, [sessionKey(deviceId)], [nodeId])),
    close: async () => undefined,
  };
};
