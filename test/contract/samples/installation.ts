// What only the people who run the installation do, for samples. Announcements belong to no tenant: each is the sample's own.
import { newId } from "../../../server/core/ids.ts";
import type { Stock } from "../stock.ts";

const nothing = async () => ({});

/** Straight into the table, which the API bounds. */
const newAnnouncement = async ({ world }: Pick<Stock, "world">): Promise<string> => {
  const announcementId = newId("ann");
  await world.sql.query(
    `insert into announcements (announcement_id, severity, title, body, starts_at, created_by)
     values ($1, 'warning', 'Maintenance', '', now() - interval '1 minute', 'user:usr_x')`,
    [announcementId],
  );
  return announcementId;
};
const anAnnouncement =
  (more: Record<string, unknown> = {}) =>
  async (stock: Stock) => ({ announcementId: await newAnnouncement(stock), ...more });

const newImpersonation = async ({ world, tenant }: Pick<Stock, "world" | "tenant">) => {
  const impersonationId = newId("imp");
  await world.sql.query(
    `insert into impersonations (impersonation_id, tenant_id, hash, user_id, admin_id, reason, read_only, started_at, expires_at)
     values ($1, $2, sha256(convert_to($1, 'utf8')), 'usr_x', 'operator', 'a sample', true, now(), now() + interval '10 minutes')`,
    [impersonationId, tenant.tenantId],
  );
  return { impersonationId };
};

export const INSTALLATION_SAMPLES = {
  "admin.listNodes": nothing,
  "admin.listTenants": nothing,
  "admin.getTenant": async ({ tenant }: Pick<Stock, "tenant">) => ({ tenantId: tenant.tenantId }),
  "admin.suspendTenant": async ({ world }: Stock) => ({ tenantId: (await world.tenant()).tenantId, reason: "unpaid" }),
  "admin.reactivateTenant": async ({ world }: Stock) => {
    const { tenantId } = await world.tenant();
    await world.sql.query("update tenants set status = 'suspended' where tenant_id = $1", [tenantId]);
    return { tenantId };
  },
  "admin.updateTenant": async ({ world }: Stock) => ({ tenantId: (await world.tenant()).tenantId, limitOverrides: { hosts: 7 }, notes: "partner" }),
  "admin.stats": nothing,
  "admin.listUsers": nothing,
  "admin.listDevices": async ({ device }: Stock) => ({ fingerprint: device.fingerprint }),
  "admin.disconnectDevice": async ({ device }: Stock) => ({ deviceId: device.deviceId }),
  "admin.listFlags": nothing,
  "admin.setFlag": async ({ world }: Stock) => ({ key: "loadTests", enabled: true, tenantId: (await world.tenant()).tenantId }),
  "admin.listJobs": nothing,
  "admin.runJob": async () => ({ name: "nodes.forget" }),
  "admin.listStuck": nothing,
  "announcements.list": nothing,
  "announcements.get": anAnnouncement(),
  "announcements.create": async ({ world }: Stock) => {
    await world.sql.query("delete from announcements");
    return { title: "Maintenance", severity: "warning" };
  },
  "announcements.update": anAnnouncement({ body: "From two to three." }),
  "announcements.remove": anAnnouncement(),
  "announcements.dismiss": anAnnouncement(),
  "impersonations.start": async ({ tenant }: Pick<Stock, "tenant">) => ({ tenantId: tenant.tenantId, reason: "a sample" }),
  "impersonations.listAll": nothing,
  "impersonations.get": newImpersonation,
  "impersonations.endAny": newImpersonation,
  "impersonations.list": nothing,
  "impersonations.end": newImpersonation,
};
