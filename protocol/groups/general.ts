// Facts about the service and the caller: version, limits, changelog, error catalog, sign-in, identity.
import { z } from "zod";
import { DeviceSelector } from "../kit/device-selector.ts";
import { ERROR_CODES } from "../kit/errors.ts";
import { ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { Announcement } from "./installation/announcements.ts";
import { Impersonation } from "./installation/impersonations.ts";

const Timestamp = z.iso.datetime();
const PAYMENTS = ["none", "stripe"] as const;
const open = { auth: ["public"], permission: "public", tenancy: "none", limit: "anonymous" } as const;
const ImpersonationInMe = Impersonation.pick({ impersonationId: true, adminId: true, readOnly: true, expiresAt: true });
const ErrorEntry = z.object({ code: z.enum(ERROR_CODES), status: z.int(), retryable: z.boolean(), message: z.string(), operations: z.array(z.string()) });

export const general = group({
  tag: "General",
  operations: {
    info: query({
      ...open,
      summary: "Get the service's name, version and limits",
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
        announcements: z.array(Announcement).describe("What the people who run the installation announce now, the most severe first."),
        payments: z.enum(PAYMENTS).describe("Who takes payments for plans. `none`: plans cost nothing here, and no client should show prices or invoices."),
      }),
    }),
    changelog: query({
      ...open,
      summary: "List changes, newest first",
      rest: ["GET /changelog"],
      list: "plain",
      input: z.strictObject({ since: z.string().max(40).optional().describe("Only entries after this version or ISO date.") }),
      output: z.object({ items: z.array(z.object({ version: z.string(), date: z.string(), type: z.string(), title: z.string() })) }),
    }),
    changelogFeed: query({
      ...open,
      summary: "Get the releases as an Atom feed, newest first",
      rest: ["GET /changelog.atom"],
      plain: { type: "application/atom+xml; charset=utf-8" },
      input: z.strictObject({}),
      output: z.string(),
    }),
    deprecations: query({
      ...open,
      summary: "List deprecated operations",
      rest: ["GET /deprecations"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(z.object({ operation: z.string(), since: z.string(), sunset: z.string(), successor: z.string().nullable() })) }),
    }),
    errors: query({
      ...open,
      summary: "List the error codes",
      rest: ["GET /errors"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(ErrorEntry) }),
    }),
    error: query({
      ...open,
      summary: "Get an error code",
      rest: ["GET /errors/{code}"],
      input: z.strictObject({ code: z.string().max(64).describe("The `code` of an error response.") }),
      output: ErrorEntry,
      errors: ["ERROR_CODE_NOT_FOUND"],
    }),
    authConfig: query({
      ...open,
      summary: "Get the sign-in settings",
      rest: ["GET /auth/config"],
      input: z.strictObject({}),
      output: z.object({
        issuer: z.string(),
        audience: z.string(),
        jwksUri: z.string(),
        algorithms: z.array(z.string()),
        local: z.boolean(),
        signIn: z
          .enum(["oidc", "link"])
          .nullable()
          .describe("How people sign in: at the identity provider, or by a link of the operator's; null if they cannot."),
        loginUrl: z.string().nullable().describe("Where a browser begins to sign in."),
        clientId: z.string().nullable().describe("This gateway's id at the identity provider."),
        scopes: z.array(z.string()),
        authorizationEndpoint: z.string().nullable().describe("The identity provider's; null while it cannot be reached."),
        csrf: z.object({ cookie: z.string(), header: z.string() }).describe("With a session's cookie, a change sends the value of this cookie in this header."),
      }),
    }),
    me: query({
      summary: "Get the caller's identity and permissions",
      rest: ["GET /auth/me"],
      whileImpersonated: true,
      auth: ["user", "apiKey", "agent"],
      permission: "self",
      tenancy: "optional",
      input: z.strictObject({}),
      output: z.object({
        credential: z.enum(["user", "apiKey", "agent"]),
        subject: z.string(),
        tenantId: z.string().nullable(),
        role: z.string().nullable().describe("Key of the role: `viewer`, `operator`, `admin`, `owner` or one of the tenant's own."),
        permissions: z.array(z.string()).describe("What the caller may do here: for a key never more than its creator."),
        selector: DeviceSelector.nullable().describe(
          "The only devices that the caller sees. `null`: all. A key also sees no device that its creator does not see.",
        ),
        features: z.array(z.string()).describe("The feature flags that are on for the caller's tenant."),
        memberships: z.array(z.object({ tenantId: ref("ten"), role: z.string() })),
        announcements: z
          .array(Announcement)
          .describe("What is announced now and the caller has not dismissed, the most severe first; empty for keys and agents."),
        administrator: z.boolean().describe("Whether the caller is an administrator of this installation."),
        impersonation: ImpersonationInMe.nullable().describe("Set while an administrator of the installation acts as the caller."),
      }),
    }),
    streamTicket: mutation({
      summary: "Create a single-use ticket for an event stream",
      rest: ["POST /auth/stream-ticket"],
      whileImpersonated: true,
      auth: ["user"],
      permission: "event:read",
      status: 201,
      idempotency: "none",
      input: z.strictObject({}),
      output: z.object({ ticket: z.string(), expiresAt: Timestamp }),
    }),
    rateLimit: query({
      summary: "List the caller's rate limits",
      rest: ["GET /rate-limit"],
      whileImpersonated: true,
      auth: ["user", "apiKey", "agent"],
      permission: "self",
      limit: "none",
      list: "plain",
      input: z.strictObject({}),
      output: z.object({
        items: z.array(z.object({ bucket: z.string(), limit: z.int().nullable(), remaining: z.int().nullable(), windowSeconds: z.int(), resetAt: Timestamp })),
      }),
    }),
  },
});
