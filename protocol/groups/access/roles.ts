// Roles and members: the permissions, the roles built from them, and who has which role for which devices.
import { z } from "zod";
import { Version } from "../../kit/bounds.ts";
import { DeviceSelector } from "../../kit/device-selector.ts";
import { event } from "../../kit/event.ts";
import { MemberId, RoleId, ref, TenantId } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";
import { listQuery, paged } from "../../kit/page.ts";
import { named } from "../../records/actor.ts";

const Timestamp = z.iso.datetime();

export const PermissionRecord = z.object({
  key: z.string(),
  resource: z.string(),
  action: z.string(),
  description: z.string(),
  risk: z.enum(["low", "medium", "high"]),
  reach: z.enum(["device", "tenant"]).describe("`tenant`: a member who is limited to some devices never has it, whatever the role says."),
});
export type PermissionRecord = z.infer<typeof PermissionRecord>;

export const RoleRecord = z.object({
  roleId: RoleId,
  tenantId: TenantId,
  key: z.string().describe("Short name in lower case. It never changes."),
  name: z.string(),
  description: z.string(),
  builtIn: z.boolean(),
  permissions: z.array(z.string()),
  memberCount: z.int(),
  version: z.int(),
  createdBy: z.string().optional(),
  createdAt: Timestamp.optional(),
  updatedAt: Timestamp.optional(),
});
export type RoleRecord = z.infer<typeof RoleRecord>;

export const Member = z.object({
  memberId: MemberId,
  tenantId: TenantId,
  userId: z.string(),
  email: z.string().nullable(),
  role: z.string().describe("Key of the role."),
  roleId: RoleId,
  selector: DeviceSelector.nullable().describe("The only devices that the member sees. `null`: all."),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Member = z.infer<typeof Member>;

const Name = z.string().trim().min(1).max(100);
const Description = z.string().trim().max(500);
const Permissions = z.array(z.string().max(64)).min(1).max(200).describe("Keys of permissions, none that the caller does not hold.");
const UserId = z.string().min(1).max(255);

const oneRole = z.strictObject({ roleId: ref("rol") });
const oneMember = z.strictObject({ memberId: ref("mem") });
const RoleEvent = z.object({ roleId: RoleId, key: z.string(), name: z.string() });
const MemberEvent = z.object({ memberId: MemberId, userId: z.string(), role: z.string() });

const read = { auth: ["user", "apiKey"] } as const;
// A key that managed members could outlive its creator's rights.
const write = { auth: ["user"] } as const;

export const roles = group({
  tag: "Roles",
  operations: {
    permissions: query({
      ...read,
      summary: "List all permissions",
      rest: ["GET /permissions"],
      permission: "role:read",
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(PermissionRecord) }),
    }),
    list: query({
      ...read,
      summary: "List the roles",
      rest: ["GET /roles"],
      permission: "role:read",
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(named(RoleRecord)) }),
    }),
    get: query({
      ...read,
      summary: "Get a role",
      rest: ["GET /roles/{roleId}"],
      permission: "role:read",
      input: oneRole,
      output: named(RoleRecord),
      errors: ["ROLE_NOT_FOUND"],
    }),
    create: mutation({
      ...write,
      summary: "Create a role",
      rest: ["POST /roles"],
      permission: "role:write",
      status: 201,
      location: "/roles/{roleId}",
      input: z.strictObject({ name: Name, description: Description.default(""), permissions: Permissions }),
      output: RoleRecord,
      errors: ["ROLE_NAME_RESERVED", "PERMISSION_UNKNOWN", "PRIVILEGE_ESCALATION", "PLAN_LIMIT_EXCEEDED"],
    }),
    update: mutation({
      ...write,
      summary: "Update a role",
      rest: ["PATCH /roles/{roleId}"],
      permission: "role:write",
      input: oneRole.extend({ name: Name.optional(), description: Description.optional(), permissions: Permissions.optional(), version: Version.optional() }),
      output: RoleRecord,
      errors: ["ROLE_NOT_FOUND", "ROLE_IMMUTABLE", "ROLE_NAME_RESERVED", "PERMISSION_UNKNOWN", "PRIVILEGE_ESCALATION", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      ...write,
      summary: "Delete a role",
      rest: ["DELETE /roles/{roleId}"],
      permission: "role:write",
      status: 204,
      input: oneRole,
      output: z.null(),
      errors: ["ROLE_NOT_FOUND", "ROLE_IMMUTABLE", "ROLE_IN_USE", "PRIVILEGE_ESCALATION"],
    }),
    listMembers: query({
      ...read,
      summary: "List the members",
      rest: ["GET /members"],
      permission: "member:read",
      list: "page",
      input: listQuery({ sort: ["createdAt", "role"], by: "createdAt" }),
      output: paged(Member),
    }),
    getMember: query({
      ...read,
      summary: "Get a member",
      rest: ["GET /members/{memberId}"],
      permission: "member:read",
      input: oneMember,
      output: Member,
      errors: ["MEMBER_NOT_FOUND"],
    }),
    updateMember: mutation({
      ...write,
      summary: "Change a member's role or limit the member to some devices",
      rest: ["PATCH /members/{memberId}"],
      permission: "member:write",
      input: oneMember.extend({ roleId: ref("rol").optional(), selector: DeviceSelector.nullable().optional(), version: Version.optional() }),
      output: Member,
      errors: ["MEMBER_NOT_FOUND", "ROLE_NOT_FOUND", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND", "PRIVILEGE_ESCALATION", "LAST_OWNER", "VERSION_CONFLICT"],
    }),
    removeMember: mutation({
      ...write,
      summary: "Remove a member, or leave the tenant",
      rest: ["DELETE /members/{memberId}"],
      permission: "self",
      status: 204,
      input: oneMember,
      output: z.null(),
      errors: ["MEMBER_NOT_FOUND", "PRIVILEGE_ESCALATION", "LAST_OWNER"],
    }),
    transferOwnership: mutation({
      ...write,
      summary: "Make another member the owner",
      rest: ["POST /tenants/{tenantId}/transfer-ownership"],
      permission: "tenant:transfer",
      input: z.strictObject({ tenantId: ref("ten"), userId: UserId.describe("The new owner, who must be a member.") }),
      output: z.object({ tenantId: TenantId, owner: z.string(), previousOwner: z.string() }),
      errors: ["TENANT_NOT_FOUND", "MEMBER_NOT_FOUND"],
    }),
  },
  events: {
    created: event("role.created", RoleEvent, "A role was created"),
    updated: event("role.updated", RoleEvent, "A role was updated"),
    deleted: event("role.deleted", RoleEvent, "A role was deleted"),
    memberChanged: event("member.role_changed", MemberEvent.extend({ previous: z.string() }), "A member's role or devices changed"),
    memberRemoved: event("member.removed", MemberEvent, "A member was removed or left"),
    ownershipTransferred: event(
      "tenant.ownership_transferred",
      z.object({ tenantId: TenantId, userId: z.string(), previousUserId: z.string() }),
      "Another member became the owner",
    ),
  },
  records: { Permission: PermissionRecord, Role: RoleRecord, Member },
});
