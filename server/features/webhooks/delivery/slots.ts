// How many requests a node has under way: at most so many for each tenant, and in all.
export interface SlotLimits {
  readonly perTenant: number;
  readonly perNode: number;
}

export const createSlots = ({ perTenant, perNode }: SlotLimits) => {
  const taken = new Map<string, number>();
  let total = 0;
  const isFree = (tenantId: string): boolean => total < perNode && (taken.get(tenantId) ?? 0) < perTenant;
  return {
    total: () => total,
    isFree,
    take: (tenantId: string): boolean => {
      if (!isFree(tenantId)) return false;
      taken.set(tenantId, (taken.get(tenantId) ?? 0) + 1);
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
