// Every tenant and its members, whoever they are, for administrators of the installation.
import { type AdminTenant, type AdminUser, contract, type Page, type Tenant, type TenantId } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Afterwards } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import {
  countByStatus,
  findForAdmin,
  type OperatorChange,
  pageForAdmin,
  pageOfUsers,
  type TenantsQuery,
  type UsersQuery,
  updateForAdmin,
} from "./store/any-tenant.ts";
import type { StoredTenant } from "./store/tenants.ts";

/** What the tenants feature lets administrators do. */
export interface AnyTenant {
  find(tx: Tx, scope: SystemScope): Promise<AdminTenant | null>;
  page(query: TenantsQuery): Promise<Page<AdminTenant>>;
  /** Both throw TENANT_NOT_FOUND and INVALID_STATE_TRANSITION. */
  suspend(tx: Tx, afterwards: Afterwards, tenantId: TenantId, reason: string): Promise<void>;
  reactivate(tx: Tx, afterwards: Afterwards, tenantId: TenantId): Promise<void>;
  /** Throws TENANT_NOT_FOUND and VERSION_CONFLICT. */
  change(tx: Tx, afterwards: Afterwards, scope: SystemScope, change: OperatorChange): Promise<void>;
  users(query: UsersQuery): Promise<Page<AdminUser>>;
  countByStatus(): Promise<Record<string, number>>;
}

interface Deps extends Pick<AnyTenant, "suspend" | "reactivate"> {
  readonly db: Db;
  readonly emit: Emit;
  readonly forgetTenant: (tenantId: string) => void;
  readonly counted: (tenant: StoredTenant, clients?: Tx) => Promise<Tenant>;
  readonly countedAll: (tenants: readonly StoredTenant[]) => Promise<readonly Tenant[]>;
}

export const createAnyTenant = ({ db, emit, forgetTenant, counted, countedAll, suspend, reactivate }: Deps): AnyTenant => ({
  find: async (tx, scope) => {
    const tenant = await findForAdmin(tx, scope);
    return tenant === null ? null : { ...tenant, ...(await counted(tenant, tx)) };
  },
  page: async (query) => {
    const { items, ...page } = await pageForAdmin(db, query);
    const records = await countedAll(items);
    return { items: items.map((item, index) => ({ ...records[index], ...item }) as Tenant & typeof item), ...page }; // as: one record for each
  },
  suspend,
  reactivate,
  change: async (tx, afterwards, scope, change) => {
    const { tenantId } = scope;
    const changed = await updateForAdmin(tx, scope, change);
    if (changed === null) {
      const now = await findForAdmin(tx, scope);
      if (now === null) throw new AppError("TENANT_NOT_FOUND", { details: { tenantId } });
      throw new AppError("VERSION_CONFLICT", { details: { currentVersion: now.version } });
    }
    await emit(tx, [happened(scope, contract.tenants.events.updated, tenantId, { tenantId, slug: changed.slug })]);
    afterwards(() => forgetTenant(tenantId));
  },
  users: (query) => pageOfUsers(db, query),
  countByStatus: () => countByStatus(db),
});
