// What the service says of itself: version, limits, changelog, error catalogue, how to sign in, who the caller is.
import { z } from "zod";
import { ERROR_CODES } from "../kit/errors.ts";
import { ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { ROLES } from "../kit/permissions.ts";

const Timestamp = z.iso.datetime();
const open = { auth: ["public"], permission: "public", tenancy: "none", limit: "anonymous" } as const;
const ErrorEntry = z.object({ code: z.enum(ERROR_CODES), status: z.int(), retryable: z.boolean(), message: z.string(), operations: z.array(z.string()) });

export const general = group({
  tag: "General",
  operations: {
    info: query({
      ...open,
      summary: "Name, version, limits",
      rest: ["GET /", "GET /info"],
      input: z.strictObject({}),
      output: z.object({
        name: z.string(),
        version: z.string(),
        apiVersion: z.literal("v1"),
        environment: z.string(),
        commit: z.string(),
        docsUrl: z.string(),
        limits: z.object({ standard: z.int(), pairing: z.object({ min: z.int(), max: z.int() }), heartbeat: z.int() }),
        features: z.array(z.string()),
      }),
    }),
    changelog: query({
      ...open,
      summary: "What changed, newest first",
      rest: ["GET /changelog"],
      list: "plain",
      input: z.strictObject({ since: z.string().max(40).optional().describe("a version or an ISO date") }),
      output: z.object({ items: z.array(z.object({ version: z.string(), date: z.string(), type: z.string(), title: z.string() })) }),
    }),
    deprecations: query({
      ...open,
      summary: "Every operation that is on its way out",
      rest: ["GET /deprecations"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(z.object({ operation: z.string(), since: z.string(), sunset: z.string(), successor: z.string().nullable() })) }),
    }),
    errors: query({
      ...open,
      summary: "The catalogue of error codes",
      rest: ["GET /errors"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(ErrorEntry) }),
    }),
    error: query({
      ...open,
      summary: "One error code",
      rest: ["GET /errors/{code}"],
      input: z.strictObject({ code: z.string().max(64).describe("as in an error's `code`") }),
      output: ErrorEntry,
      errors: ["ERROR_CODE_NOT_FOUND"],
    }),
    authConfig: query({
      ...open,
      summary: "Where tokens come from",
      rest: ["GET /auth/config"],
      input: z.strictObject({}),
      output: z.object({ issuer: z.string(), audience: z.string(), jwksUri: z.string(), algorithms: z.array(z.string()), local: z.boolean() }),
    }),
    me: query({
      summary: "Who is calling, with which role",
      rest: ["GET /auth/me"],
      auth: ["user", "apiKey", "agent"],
      permission: "self",
      tenancy: "none",
      input: z.strictObject({}),
      output: z.object({
        credential: z.enum(["user", "apiKey", "agent"]),
        subject: z.string(),
        tenantId: z.string().nullable(),
        role: z.enum(ROLES).nullable(),
        permissions: z.array(z.string()),
        memberships: z.array(z.object({ tenantId: ref("ten"), role: z.enum(ROLES) })),
      }),
    }),
    streamTicket: mutation({
      summary: "A single-use ticket for a browser's event stream",
      rest: ["POST /auth/stream-ticket"],
      auth: ["user"],
      permission: "event:read",
      status: 201,
      idempotency: "none",
      input: z.strictObject({}),
      output: z.object({ ticket: z.string(), expiresAt: Timestamp }),
    }),
    rateLimit: query({
      summary: "The caller's buckets; asking is free",
      rest: ["GET /rate-limit"],
      auth: ["user", "apiKey", "agent"],
      permission: "self",
      limit: "none",
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(z.object({ bucket: z.string(), limit: z.int().nullable(), remaining: z.int().nullable(), resetAt: Timestamp })) }),
    }),
  },
});
