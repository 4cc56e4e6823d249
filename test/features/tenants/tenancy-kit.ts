// The operations of tenants, API keys and pairing, called without a transport on a node that does not listen.
import { randomUUID } from "node:crypto";
import { contract, type TenantId } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { callable } from "../../kit/gateway/call.ts";
import { createQuietNode } from "../../kit/gateway/world.ts";
import { readEvents } from "../../kit/stores/events.ts";

export const PORTAL = "https://portal.example";

export const openTenancy = async () => {
  const { app, close } = await createQuietNode({ PUBLIC_URL: "https://api.example", PORTAL_URL: PORTAL, RETURN_HOSTS: "app.example" });
  const { db, features } = app;
  return {
    ...features,
    db,
    close,
    events: (subjectId?: string) => readEvents(db, subjectId),
    call: {
      tenants: callable(contract.tenants, features.tenants.handlers, db),
      apiKeys: callable(contract.apiKeys, features.apiKeys.handlers, db),
      pairing: callable(contract.pairing, features.pairing.handlers, db),
    },
    /** A fresh tenant with its owner; plan limits hold. */
    newTenant: async (): Promise<{ tenantId: TenantId; userId: string; email: string; slug: string }> => {
      const userId = `u-${randomUUID()}`;
      const email = `${userId}@users.example`;
      const { tenantId, slug } = await features.tenants.ensureTenant({ name: "Test", slug: `t-${randomUUID().slice(0, 13)}`, userId, email, unlimited: true });
      await db.query("update tenants set limit_overrides = '{}' where tenant_id = $1", [tenantId]);
      return { tenantId, userId, email, slug };
    },
    join: async (tenantId: TenantId, role: string) => {
      const userId = `u-${randomUUID()}`;
      await db.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, $4)", [newId("mem"), tenantId, userId, role]);
      return userId;
    },
  };
};
export type Tenancy = Awaited<ReturnType<typeof openTenancy>>;
