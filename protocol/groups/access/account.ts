// The signed-in user's own account: profile, tenants, notification preferences, export of one's data, deletion.
import { z } from "zod";
import { Version } from "../../kit/bounds.ts";
import { event } from "../../kit/event.ts";
import { ref, TenantId } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";
import { TimeZone } from "./tenants.ts";

const Timestamp = z.iso.datetime();
const RoleKey = z.string().describe("Key of the role.");
const MAX_PREFERENCES = 16_384;

/** What people can be told of by mail. */
export const NOTICES = [
  "invite.accepted",
  "invite.declined",
  "member.joined",
  "tenant.suspended",
  "tenant.deletion_scheduled",
  "billing.payment_failed",
  "api_key.expiring",
  "webhook.disabled",
  "impersonation.started",
] as const;
export type Notice = (typeof NOTICES)[number];

const isLocale = (text: string): boolean => {
  try {
    return Intl.getCanonicalLocales(text).length === 1;
  } catch {
    return false;
  }
};
const Locale = z.string().max(35).refine(isLocale, "must be a language tag, such as pt-PT");
const Name = z.string().trim().min(1).max(100);
const depthOf = (value: unknown): number => (typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0);
const Preferences = z
  .record(z.string().max(64), z.unknown())
  .refine((value) => JSON.stringify(value).length <= MAX_PREFERENCES, `must be at most ${MAX_PREFERENCES} characters of JSON`)
  .refine((value) => depthOf(value) <= 10, "must be at most 10 levels deep")
  .describe("Free-form, for consoles: saved filters, a theme. At most 16 KiB and 10 levels.");

const Membership = z.object({ tenantId: TenantId, role: RoleKey });
export const Account = z.object({
  userId: z.string(),
  email: z.string().nullable().describe("From the token."),
  emailVerified: z.boolean(),
  name: z.string().nullable(),
  locale: z.string().nullable(),
  timezone: z.string().nullable(),
  preferences: z.record(z.string(), z.unknown()),
  defaultTenantId: TenantId.nullable(),
  memberships: z.array(Membership),
  deleteAfter: Timestamp.nullable().describe("When an account that is about to be deleted is deleted for good."),
  version: z.int(),
  updatedAt: Timestamp.nullable(),
});
export type Account = z.infer<typeof Account>;

const AccountTenant = Membership.extend({ name: z.string(), slug: z.string(), status: z.string(), isDefault: z.boolean() });
const Notification = z.object({ event: z.enum(NOTICES), email: z.boolean(), inApp: z.boolean() });
export type Notification = z.infer<typeof Notification>;
const Notifications = z.object({ items: z.array(Notification) });
const OwnRecord = z.object({
  tenantId: z.string().nullable(),
  at: Timestamp,
  action: z.string(),
  resource: z.object({ type: z.string(), id: z.string().nullable() }),
  outcome: z.string(),
  ip: z.string().nullable(),
  userAgent: z.string().nullable(),
});

const own = { auth: ["user"], permission: "self", tenancy: "none" } as const;
const nothing = z.strictObject({});

export const account = group({
  tag: "Account",
  records: { Account, AccountTenant, Notification },
  operations: {
    get: query({ ...own, summary: "Get one's own account", rest: ["GET /account"], whileImpersonated: true, input: nothing, output: Account }),
    update: mutation({
      ...own,
      summary: "Update one's own account",
      rest: ["PATCH /account"],
      input: z.strictObject({
        name: Name.nullable().optional(),
        locale: Locale.nullable().optional(),
        timezone: TimeZone.nullable().optional(),
        preferences: Preferences.optional(),
        version: Version.optional(),
      }),
      output: Account,
      errors: ["VERSION_CONFLICT"],
    }),
    tenants: query({
      ...own,
      summary: "List one's own tenants",
      rest: ["GET /account/tenants"],
      whileImpersonated: true,
      list: "plain",
      input: nothing,
      output: z.object({ items: z.array(AccountTenant) }),
    }),
    switchTenant: mutation({
      ...own,
      summary: "Choose one's default tenant",
      rest: ["POST /account/switch-tenant"],
      input: z.strictObject({ tenantId: ref("ten") }),
      output: AccountTenant,
      errors: ["TENANT_NOT_FOUND"],
    }),
    notifications: query({
      ...own,
      summary: "List one's notification preferences",
      rest: ["GET /account/notifications"],
      list: "plain",
      input: nothing,
      output: Notifications,
    }),
    updateNotifications: mutation({
      ...own,
      summary: "Set one's notification preferences",
      rest: ["PUT /account/notifications"],
      list: "plain",
      input: z.strictObject({ items: z.array(z.strictObject(Notification.shape)).max(NOTICES.length) }),
      output: Notifications,
    }),
    export: query({
      ...own,
      summary: "Export one's own data",
      rest: ["GET /account/export"],
      input: nothing,
      output: z.object({
        exportedAt: Timestamp,
        account: Account,
        tenants: z.array(AccountTenant),
        notifications: z.array(Notification),
        auditRecords: z.array(OwnRecord).describe("The newest 1,000 changes by oneself, in the tenants that one belongs to and outside of tenants."),
      }),
    }),
    remove: mutation({
      ...own,
      summary: "Schedule one's account for deletion",
      rest: ["DELETE /account"],
      input: nothing,
      output: Account,
      errors: ["REAUTHENTICATION_REQUIRED", "LAST_OWNER"],
    }),
    restore: mutation({ ...own, summary: "Cancel the deletion of one's account", rest: ["POST /account/restore"], input: nothing, output: Account }),
  },
  events: {
    deletionScheduled: event(
      "account.deletion_scheduled",
      z.object({ userId: z.string(), deleteAfter: Timestamp }),
      "A member scheduled the deletion of their account",
    ),
    restored: event("account.restored", z.object({ userId: z.string() }), "A member canceled the deletion of their account"),
    deleted: event("account.deleted", z.object({ userId: z.string() }), "A member's account was deleted, and with it the membership"),
  },
});
