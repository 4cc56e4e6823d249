// Tenants: create, list, get and update them. The creator becomes the owner.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";

const Timestamp = z.iso.datetime();
export const PLANS = ["free", "starter", "pro", "team", "business"] as const;
export const Plan = z.enum(PLANS);
export type Plan = z.infer<typeof Plan>;
export const Slug = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{1,38}[a-z0-9])$/, "must be 3 to 40 characters of a-z, 0-9 and -, and must not begin or end with -")
  .describe("3 to 40 characters. Names that could pass for the platform itself, such as admin, api and www, are reserved.");
const Name = z.string().trim().min(1).max(100);

export const Tenant = z.object({
  tenantId: TenantId,
  name: z.string(),
  slug: z.string(),
  plan: Plan,
  status: z.string(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  durableObjectId: z.string(),
  deploymentCount: z.int(),
  appCount: z.int(),
  tunnelCount: z.int(),
});
export type Tenant = z.infer<typeof Tenant>;

export const tenants = group({
  tag: "Tenants",
  operations: {
    create: mutation({
      summary: "Create a tenant owned by the caller",
      rest: ["POST /tenants"],
      auth: ["user"],
      permission: "self",
      tenancy: "none",
      status: 201,
      location: "/tenants/{tenantId}",
      input: z.strictObject({ name: Name, slug: Slug, userId: z.string().min(1).max(255).describe("The owner; must be the caller.") }),
      output: z.object({ tenantId: TenantId, durableObjectId: z.string(), name: z.string(), slug: z.string(), owner: z.string() }),
      errors: ["TENANT_SLUG_TAKEN", "TENANT_LIMIT_REACHED", "FORBIDDEN"],
    }),
    list: query({
      summary: "List the caller's tenants",
      rest: ["GET /tenants"],
      auth: ["user"],
      permission: "self",
      tenancy: "none",
      list: "page",
      input: listQuery({}),
      output: paged(Tenant),
    }),
    get: query({
      summary: "Get a tenant",
      rest: ["GET /tenants/{tenantId}"],
      auth: ["user", "apiKey"],
      permission: "tenant:read",
      input: z.strictObject({ tenantId: ref("ten") }),
      output: Tenant,
      errors: ["TENANT_NOT_FOUND"],
    }),
    update: mutation({
      summary: "Update a tenant",
      rest: ["PATCH /tenants/{tenantId}"],
      auth: ["user", "apiKey"],
      permission: "tenant:update",
      input: z.strictObject({ tenantId: ref("ten"), name: Name.optional(), slug: Slug.optional(), plan: Plan.optional(), version: Version.optional() }),
      output: Tenant,
      errors: ["TENANT_NOT_FOUND", "TENANT_SLUG_TAKEN", "PLAN_CHANGE_REQUIRES_BILLING", "VERSION_CONFLICT"],
    }),
  },
  events: {
    created: event("tenant.created", z.object({ tenantId: TenantId, slug: z.string() }), "A tenant was created"),
    updated: event("tenant.updated", z.object({ tenantId: TenantId, slug: z.string() }), "A tenant was updated"),
  },
});
