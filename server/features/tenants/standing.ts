// What billing may read and change of a tenant, in its own transaction: the plan, and whether the tenant is suspended.
import type { Plan } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { SystemScope, TenantFacts } from "../../core/scope.ts";
import { findFacts, writePlan } from "./store/tenants.ts";

export interface TenantStanding {
  /** Read from the database, never from a cache. */
  facts(db: Clients, scope: SystemScope): Promise<TenantFacts | null>;
  /** Hold the plan's lock, so that no addition is judged by the old plan. */
  setPlan(tx: Tx, scope: SystemScope, plan: Plan): Promise<void>;
  /** False when the tenant is not active. */
  suspend(tx: Tx, scope: SystemScope, reason: string): Promise<boolean>;
  /** False when the tenant is not suspended, or for another reason. */
  reactivate(tx: Tx, scope: SystemScope, reason: string): Promise<boolean>;
  /** Call it after the commit. Other nodes notice within five seconds. */
  forget(tenantId: string): void;
}

interface Life {
  readonly trySuspend: TenantStanding["suspend"];
  readonly tryReactivate: TenantStanding["reactivate"];
}

export const createStanding = ({ trySuspend, tryReactivate }: Life, forget: (tenantId: string) => void): TenantStanding => ({
  facts: (db, { tenantId }) => findFacts(db, tenantId),
  setPlan: writePlan,
  suspend: trySuspend,
  reactivate: tryReactivate,
  forget,
});
