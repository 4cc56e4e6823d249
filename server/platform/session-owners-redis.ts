// The directory over Redis. Away or empty, it knows nobody: hints are not sent then, and the sweep finds what is due.
// Who comes and who leaves within one turn of the event loop is told in one script, in the order in which it happened.
import type { SessionOwnerDirectory } from "../core/session-owner-directory.ts";
import { createBatch } from "./batch.ts";
import { type Redis, script } from "./redis.ts";
import { sessionKey } from "./redis-keys.ts";

export interface RedisSessionOwnersDeps {
  readonly redis: Redis;
  /** An entry that nobody refreshes is gone by then. */
  readonly ttlMs?: number;
}

const TTL_MS = 120_000;

/** Per key: the node that has the device, or nothing for one that it left, and the epoch. An entry that cannot be changed fails alone. */
const CHANGE = script(`
local function change(key, node, epoch)
  local known = redis.call('HGET', key, 'epoch')
  if node == '' then
    if known == epoch then redis.call('DEL', key) end
  elseif not known or tonumber(known) <= tonumber(epoch) then
    redis.call('HSET', key, 'node', node, 'epoch', epoch)
    redis.call('PEXPIRE', key, ARGV[1])
  end
end
for at = 1, #KEYS do
  pcall(change, KEYS[at], ARGV[2 * at], ARGV[2 * at + 1])
end`);

const DISOWN = script(`
if redis.call('HGET', KEYS[1], 'node') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`);

interface Change {
  readonly deviceId: string;
  readonly nodeId: string;
  readonly epoch: number;
}

/** One after another, so that they arrive in order. A hint that fails is lost; trying it by itself would only load a Redis that is unwell. */
const BOUNDS = { maxSize: 500, maxConcurrent: 1, maxWaiting: 50_000, splitOn: () => false };

export const openRedisSessionOwners = ({ redis, ttlMs = TTL_MS }: RedisSessionOwnersDeps): SessionOwnerDirectory => {
  // A hint that cannot be kept is a hint lost; presence and sweep do not need it.
  const hint = async (work: Promise<unknown>): Promise<void> => {
    await work.catch(() => undefined);
  };
  const change = createBatch(async (changes: readonly Change[]) => {
    await redis.run(
      CHANGE,
      changes.map(({ deviceId }) => sessionKey(deviceId)),
      [ttlMs, ...changes.flatMap(({ nodeId, epoch }) => [nodeId, epoch])],
    );
    return changes.map(() => undefined);
  }, BOUNDS);
  return {
    owner: async (deviceId) => {
      const nodeId = await redis.command("HGET", sessionKey(deviceId), "node").catch(() => null);
      return typeof nodeId === "string" ? nodeId : null;
    },
    claim: (deviceId, nodeId, epoch) => hint(change({ deviceId, nodeId, epoch })),
    release: (deviceId, epoch) => hint(change({ deviceId, nodeId: "", epoch })),
    disown: (deviceId, nodeId) => hint(redis.run(DISOWN, [sessionKey(deviceId)], [nodeId])),
    close: async () => undefined,
  };
};
