// For the operator's command line: finds the tenant by its slug or creates it, lifts its limits and makes the named user its owner. Repeating it changes nothing.
import type { TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import { type AuditTrail, operatorTx } from "../../core/ports/audit.ts";
import type { Db } from "../../platform/database/db.ts";
import type { DeploymentGroups } from "../deployments/index.ts";
import { DEFAULT_PLAN } from "./plan-table.ts";
import { findIdBySlug, insertTenant, liftLimits, upsertMember } from "./store/tenants.ts";

export interface EnsureTenant {
  readonly name: string;
  readonly slug: string;
  readonly userId: string;
  readonly email?: string | undefined;
  /** Lifts the rate limits too; the plan limits of an operator's own tenant are always lifted. */
  readonly unlimited: boolean;
}

export interface EnsuredTenant {
  readonly tenantId: TenantId;
  readonly slug: string;
  readonly userId: string;
}

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
  readonly audit: AuditTrail;
  readonly deployments: Pick<DeploymentGroups, "ensureDefault">;
  readonly forgetTenant: (tenantId: string) => void;
  readonly forgetMember: (tenantId: string, userId: string) => void;
}

export const createEnsureTenant =
  ({ db, clock, audit, deployments, forgetTenant, forgetMember }: Deps) =>
  async ({ name, slug, userId, email, unlimited }: EnsureTenant): Promise<EnsuredTenant> => {
    const tenantId = await operatorTx(db, audit)("cli.bootstrap", async (tx) => {
      const fresh = newId("ten");
      const known = await findIdBySlug(tx, slug, clock.now());
      const created =
        known === null && (await insertTenant(tx, { tenantId: fresh, name, slug, plan: DEFAULT_PLAN, ownerUserId: userId, durableObjectId: newId("dob") }));
      const id = created ? fresh : (known ?? (await findIdBySlug(tx, slug, clock.now())));
      if (id === null) throw new Error(`tenant ${slug} was deleted during bootstrap`);
      await upsertMember(tx, { tenantId: id }, { memberId: newId("mem"), userId, email: email ?? null, role: "owner" });
      await deployments.ensureDefault(tx, { tenantId: id });
      await liftLimits(tx, { tenantId: id }, { rates: unlimited });
      return id;
    });
    forgetTenant(tenantId);
    forgetMember(tenantId, userId);
    return { tenantId, slug, userId };
  };
