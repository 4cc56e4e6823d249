// Bounds the open streams per tenant and per user or key.
import { AppError } from "../../core/errors.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";

export interface StreamBounds {
  readonly streamsPerTenant: number;
  readonly streamsPerCredential: number;
}

/** A guess: a place becomes free when somebody closes a stream. */
const RETRY_SECONDS = 30;
const refused = (per: "tenant" | "credential", limit: number): AppError =>
  new AppError("STREAM_LIMIT_REACHED", { details: { per, limit }, retryAfter: RETRY_SECONDS });

export const createStreamCount = ({ streamsPerTenant, streamsPerCredential }: StreamBounds) => {
  const open = new Map<string, number>();
  const add = (key: string, count: 1 | -1): void => {
    const now = (open.get(key) ?? 0) + count;
    if (now === 0) open.delete(key);
    else open.set(key, now);
  };
  /** Takes a place and returns the function that gives it back; call that once. Throws STREAM_LIMIT_REACHED. */
  return ({ tenantId, principal }: Pick<TenantScope, "tenantId" | "principal">): (() => void) => {
    const keys = { tenant: tenantId, credential: `${tenantId} ${actorOf(principal)}` };
    if ((open.get(keys.credential) ?? 0) >= streamsPerCredential) throw refused("credential", streamsPerCredential);
    if ((open.get(keys.tenant) ?? 0) >= streamsPerTenant) throw refused("tenant", streamsPerTenant);
    for (const key of Object.values(keys)) add(key, 1);
    return () => {
      for (const key of Object.values(keys)) add(key, -1);
    };
  };
};
