// Bounds the open streams per tenant and per user or key.
import { actorOf, type TenantScope } from "../../core/scope.ts";

export interface StreamBounds {
  readonly streamsPerTenant: number;
  readonly streamsPerCredential: number;
}

export type Refused = { readonly per: "tenant" | "credential"; readonly limit: number };

export const createStreamCount = ({ streamsPerTenant, streamsPerCredential }: StreamBounds) => {
  const open = new Map<string, number>();
  const add = (key: string, count: 1 | -1): void => {
    const now = (open.get(key) ?? 0) + count;
    if (now === 0) open.delete(key);
    else open.set(key, now);
  };
  /** Takes a place and returns the function that gives it back; call that once. Returns the bound instead if it is reached. */
  return ({ tenantId, principal }: Pick<TenantScope, "tenantId" | "principal">): (() => void) | Refused => {
    const keys = { tenant: tenantId, credential: `${tenantId} ${actorOf(principal)}` };
    if ((open.get(keys.credential) ?? 0) >= streamsPerCredential) return { per: "credential", limit: streamsPerCredential };
    if ((open.get(keys.tenant) ?? 0) >= streamsPerTenant) return { per: "tenant", limit: streamsPerTenant };
    for (const key of Object.values(keys)) add(key, 1);
    return () => {
      for (const key of Object.values(keys)) add(key, -1);
    };
  };
};
