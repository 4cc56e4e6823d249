// What other features may rely on: a tenant has one default deployment, and no id of another tenant's passes for its own.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TenantId } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { deploymentGroups } from "../../../server/features/deployments/index.ts";
import { openTenancy, type Tenancy } from "../tenants/tenancy-kit.ts";

let tenancy: Tenancy;
let [own, other]: { readonly tenantId: TenantId }[] = [];
beforeAll(async () => {
  tenancy = await openTenancy();
  [own, other] = [await tenancy.newTenant(), await tenancy.newTenant()];
});
afterAll(() => tenancy.close());

test("a tenant has one default deployment, however often it is asked for", async () => {
  const { db } = tenancy;
  if (own === undefined || other === undefined) throw new Error("two tenants are made first");
  await Promise.all([1, 2, 3].map(() => deploymentGroups.ensureDefault(db, { tenantId: own?.tenantId as TenantId })));
  expect(await deploymentGroups.countByTenant(db, [own.tenantId, other.tenantId, newId("ten")])).toEqual(
    new Map([own, other].map(({ tenantId }) => [tenantId, 1])),
  );
});

test("a device falls into the default deployment, and another tenant's id is as unknown as any", async () => {
  const { db } = tenancy;
  if (own === undefined || other === undefined) throw new Error("two tenants are made first");
  const { standard: foreign } = await deploymentGroups.findForDevices(db, other, []);
  const { standard, own: known } = await deploymentGroups.findForDevices(db, own, [foreign, "dep_unknown"]);
  expect([...known]).toEqual([standard]);
  expect(standard).not.toBe(foreign);
  expect([await deploymentGroups.has(db, own, standard), await deploymentGroups.has(db, own, foreign)]).toEqual([true, false]);
});
