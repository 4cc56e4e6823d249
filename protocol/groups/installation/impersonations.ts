// Impersonations: an administrator of the installation sees a tenant as one of its members sees it, for a while and with a reason.
import { z } from "zod";
import { event } from "../../kit/event.ts";
import { id, ref, TenantId } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";
import { listQuery, paged } from "../../kit/page.ts";

const Timestamp = z.iso.datetime();
export const MAX_IMPERSONATION_MINUTES = 60;

const User = z.string().describe("Id of the user.");
export const Impersonation = z.object({
  impersonationId: id("imp"),
  tenantId: TenantId,
  userId: User.describe("The member in whose name the administrator acts."),
  adminId: User.describe("The administrator of the installation."),
  reason: z.string(),
  readOnly: z.boolean().describe("Nothing can be changed in it."),
  startedAt: Timestamp,
  expiresAt: Timestamp,
  endedAt: Timestamp.nullable().describe("`null`: it goes on."),
  endedBy: z.string().nullable().describe("Who has ended it; `system`: its time was over."),
});
export type Impersonation = z.infer<typeof Impersonation>;

/** With the credential, which no other response shows. */
const StartedImpersonation = Impersonation.extend({ token: z.string().describe("Send it as `Authorization: Bearer`. It works until the impersonation ends.") });

const one = z.strictObject({ impersonationId: ref("imp") });
const operators = { auth: ["user"], permission: "platform", tenancy: "none" } as const;
const filters = { open: z.boolean().optional().describe("`true`: only those that go on; `false`: only those that have ended.") };
const sorted = { sort: ["startedAt"], by: "-startedAt" } as const;
const told = Impersonation.omit({ tenantId: true, endedAt: true, endedBy: true });

export const impersonations = group({
  tag: "Impersonations",
  records: { Impersonation, StartedImpersonation },
  operations: {
    start: mutation({
      ...operators,
      summary: "Act as a member of a tenant",
      rest: ["POST /admin/impersonations"],
      status: 201,
      location: "/admin/impersonations/{impersonationId}",
      input: z.strictObject({
        tenantId: ref("ten"),
        userId: z.string().min(1).max(255).optional().describe("Id of the member. Default: an owner."),
        reason: z.string().trim().min(3).max(500).describe("The tenant's administrators see it."),
        minutes: z.int().min(1).max(MAX_IMPERSONATION_MINUTES).default(15),
        readOnly: z.boolean().default(true),
      }),
      output: StartedImpersonation,
      errors: ["TENANT_NOT_FOUND", "MEMBER_NOT_FOUND", "REAUTHENTICATION_REQUIRED"],
    }),
    listAll: query({
      ...operators,
      summary: "List the impersonations of all tenants",
      rest: ["GET /admin/impersonations"],
      list: "page",
      input: listQuery({ ...sorted, filters: { ...filters, tenant: ref("ten").optional().describe("Only in this tenant.") } }),
      output: paged(Impersonation),
    }),
    get: query({
      ...operators,
      summary: "Get an impersonation",
      rest: ["GET /admin/impersonations/{impersonationId}"],
      input: one,
      output: Impersonation,
      errors: ["IMPERSONATION_NOT_FOUND"],
    }),
    endAny: mutation({
      ...operators,
      summary: "End any impersonation",
      rest: ["POST /admin/impersonations/{impersonationId}/end"],
      input: one,
      output: Impersonation,
      errors: ["IMPERSONATION_NOT_FOUND"],
    }),
    list: query({
      auth: ["user", "apiKey"],
      permission: "audit:read",
      summary: "List the impersonations of the tenant's members",
      rest: ["GET /impersonations"],
      list: "page",
      input: listQuery({ ...sorted, filters }),
      output: paged(Impersonation),
    }),
    end: mutation({
      auth: ["user"],
      permission: "member:write",
      summary: "End an impersonation in the tenant",
      rest: ["POST /impersonations/{impersonationId}/end"],
      input: one,
      output: Impersonation,
      errors: ["IMPERSONATION_NOT_FOUND"],
    }),
  },
  events: {
    started: event("impersonation.started", told, "An administrator of the installation began to act as a member"),
    ended: event("impersonation.ended", told.extend({ endedBy: z.string() }), "An impersonation ended: by somebody, or because its time was over"),
  },
});
