// Tenants as administrators of the installation see them: all of them, to suspend and to reactivate.
import type { AdminTenant, contract, TenantId } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import type { Overrides } from "../../core/scope.ts";
import type { GrantPlan } from "../billing/index.ts";
import type { AnyTenant, Plan } from "../tenants/index.ts";

type Names = "listTenants" | "getTenant" | "suspendTenant" | "reactivateTenant" | "updateTenant";

export interface TenantHandlersDeps {
  readonly db: Tx;
  readonly anyTenant: AnyTenant;
  readonly plan: Pick<Plan, "table">;
  readonly grantPlan: GrantPlan;
}

export const createTenantHandlers = ({ db, anyTenant, plan, grantPlan }: TenantHandlersDeps): Pick<Handlers<typeof contract.admin>, Names> => {
  const found = async (tx: Tx, tenantId: TenantId, fail: () => Error): Promise<AdminTenant> => {
    const tenant = await anyTenant.find(tx, { tenantId });
    if (tenant === null) throw fail();
    return tenant;
  };
  return {
    listTenants: (_call, query) => anyTenant.page(query),
    getTenant: ({ fail }, { tenantId }) => found(db, tenantId, () => fail("TENANT_NOT_FOUND", { tenantId })),
    suspendTenant: ({ fail, commit }, { tenantId, reason }) =>
      commit(async (tx, afterwards) => {
        await anyTenant.suspend(tx, afterwards, tenantId, reason);
        return found(tx, tenantId, () => fail("TENANT_NOT_FOUND", { tenantId }));
      }),
    updateTenant: ({ fail, commit }, { tenantId, plan: wanted, notes, limitOverrides, rateLimitOverrides, version }) =>
      commit(async (tx, afterwards) => {
        checkResources(plan, limitOverrides);
        const scope = { tenantId };
        const operatorNotes = notes === "" ? null : notes;
        await anyTenant.change(tx, afterwards, scope, { limitOverrides, rateLimitOverrides, operatorNotes, version });
        if (wanted !== undefined) await grantPlan(tx, scope, wanted);
        return found(tx, tenantId, () => fail("TENANT_NOT_FOUND", { tenantId }));
      }),
    reactivateTenant: ({ fail, commit }, { tenantId }) =>
      commit(async (tx, afterwards) => {
        await anyTenant.reactivate(tx, afterwards, tenantId);
        return found(tx, tenantId, () => fail("TENANT_NOT_FOUND", { tenantId }));
      }),
  };
};

const checkResources = ({ table }: Pick<Plan, "table">, given: Overrides = {}): void => {
  const unknown = Object.keys(given).filter((name) => name !== "*" && !Object.hasOwn(table.free, name));
  if (unknown.length === 0) return;
  const issues = unknown.map((name) => ({ path: `limitOverrides.${name}`, code: "custom", message: "is no resource of the plan" }));
  throw new AppError("VALIDATION_FAILED", { details: { issues } });
};
