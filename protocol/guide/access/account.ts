// Guide to one's own account.
import type { Guide } from "../guide.ts";
import { AT, IDS } from "../records.ts";

const { tenantId, userId } = IDS;
const preferences = { theme: "dark", filters: { devices: [{ name: "Lisbon", tag: "site:lisbon" }] } };
const shown = {
  userId,
  email: "kim@example.com",
  emailVerified: true,
  name: "Kim",
  locale: "pt-PT",
  timezone: "Europe/Lisbon",
  preferences,
  defaultTenantId: tenantId,
  memberships: [{ tenantId, role: "owner" }],
  deleteAfter: null,
  version: 2,
  updatedAt: AT,
};
const tenant = { tenantId, role: "owner", name: "Acme", slug: "acme", status: "active", isDefault: true };
const notification = { event: "invite.accepted", email: true, inApp: true };

export const account: Guide<"account"> = {
  get: { description: "`email` comes from the token; all else is what the user has set.", input: {}, output: shown },
  update: {
    description: "Changes only the fields that you send; `null` clears a field. `preferences` replaces the stored object as a whole.",
    input: { name: "Kim", timezone: "Europe/Lisbon", preferences },
    output: shown,
  },
  tenants: { description: "The tenants that the caller is a member of, oldest membership first.", input: {}, output: { items: [tenant] } },
  switchTenant: {
    description:
      "The default tenant is the one in which a call takes place if neither the token nor `x-svc-tenant-id` nor the request names one. Who has chosen none and is a member of one tenant needs no default.",
    input: { tenantId },
    output: tenant,
  },
  notifications: {
    description: "Every event that the installation can tell people of, with the defaults where the user has chosen nothing.",
    input: {},
    output: { items: [notification] },
  },
  updateNotifications: {
    description: "Events that the list leaves out get their defaults again. `email` needs an installation with a mail server; `inApp` is for consoles.",
    input: { items: [notification] },
    output: { items: [notification] },
  },
  export: {
    description: "Profile, memberships, preferences, and the newest 1,000 changes that the caller made.",
    input: {},
    output: {
      exportedAt: AT,
      account: shown,
      tenants: [tenant],
      notifications: [notification],
      auditRecords: [
        {
          tenantId,
          at: AT,
          action: "apiKeys.create",
          resource: { type: "api-keys", id: IDS.keyId },
          outcome: "success",
          ip: "203.0.113.7",
          userAgent: "curl/8.5.0",
        },
      ],
    },
  },
  remove: {
    description:
      "After 30 days the account is deleted, with its memberships. Until then the account works, and the next sign-in or `POST /account/restore` restores it. The sign-in must be of the last 10 minutes: that of the session, or the token's `auth_time`. The last owner of a tenant transfers or deletes it first.",
    input: {},
    output: { ...shown, deleteAfter: "2026-12-21T09:30:00.000Z" },
  },
  restore: { description: "Changes nothing if no deletion is scheduled.", input: {}, output: shown },
};
