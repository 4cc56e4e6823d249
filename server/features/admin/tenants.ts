// Tenants as administrators of the installation see them: all of them, to suspend and to reactivate.
import type { AdminTenant, contract, TenantId } from "../../../protocol/index.ts";
import { toWindow } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { Afterwards, Handlers } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";

/** What the tenants feature lets administrators do. */
export interface AnyTenant {
  find(tx: Tx, scope: SystemScope): Promise<AdminTenant | null>;
  page(filter: TenantFilter): Promise<{ readonly items: AdminTenant[]; readonly total: number }>;
  /** Both throw TENANT_NOT_FOUND and INVALID_STATE_TRANSITION. */
  suspend(tx: Tx, afterwards: Afterwards, tenantId: TenantId, reason: string): Promise<void>;
  reactivate(tx: Tx, afterwards: Afterwards, tenantId: TenantId): Promise<void>;
}
interface TenantFilter {
  readonly plan?: AdminTenant["plan"] | undefined;
  readonly status?: string | undefined;
  readonly named?: string | undefined;
  readonly limit: number;
  readonly offset: number;
}

type Names = "listTenants" | "getTenant" | "suspendTenant" | "reactivateTenant";

/** For a LIKE pattern that takes what was typed literally: Prisma escapes nothing. */
const literal = (text: string): string => text.replace(/[\\%_]/g, (sign) => `\\${sign}`);

export const createTenantHandlers = ({ db, anyTenant }: { readonly db: Tx; readonly anyTenant: AnyTenant }): Pick<Handlers<typeof contract.admin>, Names> => {
  const found = async (tx: Tx, tenantId: TenantId, fail: () => Error): Promise<AdminTenant> => {
    const tenant = await anyTenant.find(tx, { tenantId });
    if (tenant === null) throw fail();
    return tenant;
  };
  return {
    listTenants: (_call, { plan, status, q, ...window }) =>
      anyTenant.page({ plan, status, named: q === undefined ? undefined : literal(q), ...toWindow(window) }),
    getTenant: ({ fail }, { tenantId }) => found(db, tenantId, () => fail("TENANT_NOT_FOUND", { tenantId })),
    suspendTenant: ({ fail, commit }, { tenantId, reason }) =>
      commit(async (tx, afterwards) => {
        await anyTenant.suspend(tx, afterwards, tenantId, reason);
        return found(tx, tenantId, () => fail("TENANT_NOT_FOUND", { tenantId }));
      }),
    reactivateTenant: ({ fail, commit }, { tenantId }) =>
      commit(async (tx, afterwards) => {
        await anyTenant.reactivate(tx, afterwards, tenantId);
        return found(tx, tenantId, () => fail("TENANT_NOT_FOUND", { tenantId }));
      }),
  };
};
