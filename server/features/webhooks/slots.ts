// How many requests a node has under way: at most so many for each tenant, and in all.
export interface SlotLimits {
  readonly perTenant: number;
  readonly perNode: number;
}

export const createSlots = ({ perTenant, perNode }: SlotLimits) => {
  const taken = new Map<string, number>();
  let total = 0;
  return {
    total: () => total,
    take: (tenantId: string): boolean => {
      const own = taken.get(tenantId) ?? 0;
      if (total >= perNode || own >= perTenant) return false;
      taken.set(tenantId, own + 1);
      total += 1;
      return true;
    },
    free: (tenantId: string): void => {
      const own = (taken.get(tenantId) ?? 1) - 1;
      if (own > 0) taken.set(tenantId, own);
      else taken.delete(tenantId);
      total -= 1;
    },
  };
};
