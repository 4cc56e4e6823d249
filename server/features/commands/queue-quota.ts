// A tenant's quota of open commands without a count per creation: far below the bound, a tenant may use a share of the free places for a moment.
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";

export interface QueueQuota {
  /** Takes one place for each new command, and answers the tenants that have to be counted before more is admitted. */
  near(tenantIds: readonly string[]): readonly string[];
  /** `tenantIds` as `near` got them: these commands come on top of the count. */
  counted(open: ReadonlyMap<string, number>, tenantIds: readonly string[]): void;
}

const FOR_MS = 1_000;
const MAX_TENANTS = 10_000;
/** The share of the free places that one node may use up before the next count: at least 16 nodes do so without passing the bound. */
const SHARE = 1 / 16;

/** `max` null: there is no bound and nothing to count. */
export const createQueueQuota = (max: number | null): QueueQuota => {
  const free = createBoundedCache<{ left: number }>(MAX_TENANTS, { ttl: FOR_MS });
  return {
    near: (tenantIds) => {
      if (max === null) return [];
      const near = new Set<string>();
      for (const tenantId of tenantIds) {
        const share = free.get(tenantId);
        if (share === undefined || share.left < 1) near.add(tenantId);
        else share.left -= 1;
      }
      return [...near];
    },
    counted: (open, tenantIds) => {
      if (max === null) return;
      for (const [tenantId, count] of open) {
        const coming = tenantIds.filter((id) => id === tenantId).length;
        free.set(tenantId, { left: Math.floor((max - count - coming) * SHARE) });
      }
    },
  };
};
