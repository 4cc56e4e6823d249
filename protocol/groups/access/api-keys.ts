// API keys for scripts and third parties. The gateway shows a key once, stores its hash, and never lets it exceed its creator's current role.
import { z } from "zod";
import { Version } from "../../kit/bounds.ts";
import { DeviceSelector } from "../../kit/device-selector.ts";
import { event } from "../../kit/event.ts";
import { KeyId, ref, TenantId } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";
import { listQuery, paged } from "../../kit/page.ts";
import { ROLES } from "../../kit/permissions.ts";
import { Actor } from "../../records/actor.ts";

const Timestamp = z.iso.datetime();
export const ApiKey = z.object({
  keyId: KeyId,
  tenantId: TenantId,
  name: z.string(),
  role: z.enum(ROLES),
  scopes: z.array(z.string()).describe("The only permissions of its role that the key has. Empty: all of them."),
  selector: DeviceSelector.nullable().describe("The only devices that the key sees. `null`: all that its creator sees."),
  prefix: z.string(),
  last4: z.string(),
  /** `expiring`: it still works, for at most seven days more. */
  status: z.enum(["active", "expiring", "expired", "revoked"]),
  ipAllowlist: z.array(z.string()),
  createdBy: z.string(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  expiresAt: Timestamp.nullable(),
  lastUsedAt: Timestamp.nullable(),
  lastUsedIp: z.string().nullable(),
});
export type ApiKey = z.infer<typeof ApiKey>;
const WithCreator = ApiKey.extend({ actor: Actor.describe("Who created it.") });
const WithSecret = ApiKey.extend({ apiKey: z.string().describe("The key itself. It is shown only in this response.") });

const Name = z.string().trim().min(1).max(100);
const Scopes = z.array(z.string().max(64)).max(200).describe("The only permissions of its role that the key gets. Empty: all of them.");
const Cidr = z.union([z.cidrv4(), z.cidrv6()]);
const KeyEvent = z.object({ keyId: KeyId, name: z.string() });
const one = z.strictObject({ keyId: ref("key") });

// Only signed-in users manage keys: a key that could create keys would outlive its own revocation.
export const apiKeys = group({
  tag: "Account",
  operations: {
    list: query({
      summary: "List API keys",
      rest: ["GET /api-keys"],
      auth: ["user"],
      permission: "api_key:read",
      list: "page",
      input: listQuery({ sort: ["createdAt", "name", "lastUsedAt", "expiresAt"], by: "-createdAt" }),
      output: paged(WithCreator),
    }),
    get: query({
      summary: "Get an API key",
      rest: ["GET /api-keys/{keyId}"],
      auth: ["user"],
      permission: "api_key:read",
      input: one,
      output: WithCreator,
      errors: ["API_KEY_NOT_FOUND"],
    }),
    create: mutation({
      summary: "Create an API key",
      rest: ["POST /api-keys"],
      auth: ["user"],
      permission: "api_key:write",
      status: 201,
      location: "/api-keys/{keyId}",
      input: z.strictObject({
        name: Name,
        role: z.enum(ROLES).default("operator"),
        scopes: Scopes.default([]),
        selector: DeviceSelector.nullable().default(null),
        expiresInDays: z.int().min(1).max(365).nullable().default(90),
        ipAllowlist: z.array(Cidr).max(20).default([]),
      }),
      output: WithSecret,
      errors: ["PERMISSION_UNKNOWN", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND", "PRIVILEGE_ESCALATION", "PLAN_LIMIT_EXCEEDED"],
    }),
    update: mutation({
      summary: "Change an API key's name, scopes, devices or allowed addresses",
      rest: ["PATCH /api-keys/{keyId}"],
      auth: ["user"],
      permission: "api_key:write",
      input: one.extend({
        name: Name.optional(),
        scopes: Scopes.optional(),
        selector: DeviceSelector.nullable().optional(),
        ipAllowlist: z.array(Cidr).max(20).optional(),
        version: Version.optional(),
      }),
      output: ApiKey,
      errors: ["API_KEY_NOT_FOUND", "PERMISSION_UNKNOWN", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND", "PRIVILEGE_ESCALATION", "VERSION_CONFLICT"],
    }),
    rotate: mutation({
      summary: "Rotate an API key",
      rest: ["POST /api-keys/{keyId}/rotate"],
      auth: ["user"],
      permission: "api_key:write",
      input: one.extend({ graceSeconds: z.int().min(0).max(604_800).default(0) }),
      output: WithSecret,
      errors: ["API_KEY_NOT_FOUND", "PRIVILEGE_ESCALATION"],
    }),
    revoke: mutation({
      summary: "Revoke an API key",
      rest: ["DELETE /api-keys/{keyId}"],
      auth: ["user"],
      permission: "api_key:write",
      status: 204,
      input: one,
      output: z.null(),
      errors: ["API_KEY_NOT_FOUND", "PRIVILEGE_ESCALATION"],
    }),
  },
  events: {
    created: event("api_key.created", KeyEvent, "An API key was created"),
    rotated: event("api_key.rotated", KeyEvent, "An API key was rotated"),
    revoked: event("api_key.revoked", KeyEvent, "An API key was revoked"),
    expiring: event("api_key.expiring", KeyEvent.extend({ expiresAt: Timestamp }), "An API key expires within seven days, and again within one day"),
  },
});
