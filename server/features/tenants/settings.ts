// A tenant's settings. A tenant that never changed any has no row, and its version is 1.
import { contract, TenantSettings } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { given, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import { orNull } from "../../platform/database/db-errors.ts";

export interface SettingsDeps {
  readonly db: Db;
  readonly emit: Emit;
  readonly forgetTenant: (tenantId: string) => void;
}

const { updated } = contract.tenants.events;

const find = async (db: Clients, scope: SystemScope) =>
  recordOf(TenantSettings, (await db.for(scope).tenantSettings.findFirst()) ?? (await defaults(db, scope)));

const defaults = async (db: Clients, scope: SystemScope) => {
  const { createdAt } = await db.for(scope).tenant.findFirstOrThrow({ select: { createdAt: true } });
  return {
    tenantId: scope.tenantId,
    offlineAfterSeconds: null,
    defaultTimezone: "UTC",
    allowedReturnHosts: [],
    setupHidden: false,
    version: 1,
    updatedAt: createdAt,
  };
};

/** The time zone of what the tenant schedules without naming one. */
export const timezoneOf = async (db: Clients, scope: SystemScope): Promise<string> => (await find(db, { tenantId: scope.tenantId })).defaultTimezone;

/** Whether nobody of the tenant wants to see the list of first steps any more. */
export const isSetupHidden = async (db: Clients, { tenantId }: SystemScope): Promise<boolean> => (await find(db, { tenantId })).setupHidden;

export const createSettings = ({ db, emit, forgetTenant }: SettingsDeps): Pick<Handlers<typeof contract.tenants>, "settings" | "updateSettings"> => ({
  settings: async ({ scope, fail }, { tenantId }) => {
    if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
    return find(db, scope);
  },

  updateSettings: ({ scope, fail, commit }, { tenantId, version, ...change }) =>
    commit(async (tx, afterwards) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      const { tenantSettings } = tx.for(scope);
      await tenantSettings.createMany({ data: [{}], skipDuplicates: true });
      const row = await orNull(tenantSettings.update({ where: given({ version }), data: { ...given(change), version: { increment: 1 } } }));
      if (row === null) throw fail("VERSION_CONFLICT", { currentVersion: (await find(tx, scope)).version });
      await emit(tx, [happened(scope, updated, tenantId, { tenantId, slug: scope.tenant.slug })]);
      afterwards(() => forgetTenant(tenantId));
      return recordOf(TenantSettings, row);
    }),
});
