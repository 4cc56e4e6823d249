// Session owners over Redis. While Redis is away or empty no owner is known, so no nudges are sent and the sweep delivers instead.
// One script writes all changes of one turn of the event loop, in their order.
import type { SessionOwners } from "../../core/ports/agent-sessions.ts";
import { createBatch } from "../database/batch.ts";
import { type Redis, script } from "./redis.ts";
import { sessionKey } from "./redis-keys.ts";
import { bySlot } from "./redis-slots.ts";

export interface RedisSessionOwnersDeps {
  readonly redis: Redis;
  /** The lifetime of an entry that is not renewed. */
  readonly ttlMs?: number;
}

const TTL_MS = 180_000;

/** Per key: the device's node, or '' to remove the entry, and the epoch. An entry that cannot be changed fails alone. */
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

/** One batch at a time keeps the order. A failed batch is lost: splitting it would only add load to a Redis in trouble. */
const BOUNDS = { work: "agents", maxSize: 500, maxConcurrent: 1, maxWaiting: 50_000, neverSplit: true } as const;

export const openRedisSessionOwners = ({ redis, ttlMs = TTL_MS }: RedisSessionOwnersDeps): SessionOwners => {
  // Presence and the sweep work without the entry.
  const hint = async (work: Promise<unknown>): Promise<void> => {
    await work.catch(() => undefined);
  };
  const change = createBatch(async (changes: readonly Change[]) => {
    await bySlot({ redis, keyOf: ({ deviceId }) => sessionKey(deviceId) }, changes, async (some, keys) => {
      await redis.run(CHANGE, keys, [ttlMs, ...some.flatMap(({ nodeId, epoch }) => [nodeId, epoch])]);
      return [];
    });
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
  };
};
