// Spares most creations the counting of their tenant's open commands: far below its bound, a tenant may add some for a moment before it is counted again.
import { LRUCache } from "lru-cache";

export interface Headroom {
  /** Those of these tenants, one entry for each new command, that have to be counted before more is admitted. The others' room is taken. */
  near(tenantIds: readonly string[]): readonly string[];
  /** `tenantIds` as they were given to `near`: what was counted, these come on top of. */
  counted(open: ReadonlyMap<string, number>, tenantIds: readonly string[]): void;
}

const FOR_MS = 1_000;
const MAX_TENANTS = 10_000;
/** Of what was free at the last count. Nodes do not know of each other's: so many nodes at least may take theirs without passing the bound. */
const SHARE = 1 / 16;

/** `max` null: there is no bound and nothing to count. */
export const createHeadroom = (max: number | null): Headroom => {
  const free = new LRUCache<string, { left: number }>({ max: MAX_TENANTS, ttl: FOR_MS });
  return {
    near: (tenantIds) => {
      if (max === null) return [];
      const near = new Set<string>();
      for (const tenantId of tenantIds) {
        const room = free.get(tenantId);
        if (room === undefined || room.left < 1) near.add(tenantId);
        else room.left -= 1;
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
