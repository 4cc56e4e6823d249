// Custom domains: names of the tenant's own under which visitors reach its tunnels, with proof of ownership, DNS checks and certificates.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { DomainId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import { CertificateChain, CustomDomain, DomainDns, DomainStatus } from "../records/domain.ts";

const Timestamp = z.iso.datetime();
const MAX_PEM = 65_536;

export const DomainTargetInput = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("tunnel"), id: ref("tun") }),
    z.strictObject({ kind: z.literal("app"), id: ref("app") }),
    z.strictObject({ kind: z.literal("deployment"), id: ref("dep") }),
  ])
  .nullable()
  .describe("What visitors reach. An app or a deployment needs a tunnel to it.");
export type DomainTargetInput = z.infer<typeof DomainTargetInput>;

const one = z.strictObject({ domainId: ref("dom") });
const read = { auth: ["user", "apiKey"], permission: "domain:read" } as const;
const write = { auth: ["user", "apiKey"], permission: "domain:write" } as const;
const certify = { auth: ["user", "apiKey"], permission: "domain:certificate" } as const;

const DomainEvent = z.object({ domainId: DomainId, hostname: z.string() });
const CertificateEvent = DomainEvent.extend({ notAfter: Timestamp });

export const domains = group({
  tag: "Custom Domains",
  records: { CustomDomain, DomainDns, CertificateChain },
  operations: {
    list: query({
      ...read,
      summary: "List custom domains",
      rest: ["GET /custom-domains", "GET /domains"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "hostname"],
        by: "-createdAt",
        filters: {
          status: DomainStatus.optional().describe("Only domains with this status."),
          q: z.string().min(1).max(253).optional().describe("Only domains whose name contains this text."),
        },
      }),
      output: paged(named(CustomDomain)),
    }),
    get: query({
      ...read,
      summary: "Get a custom domain",
      rest: ["GET /custom-domains/{domainId}", "GET /domains/{domainId}"],
      input: one,
      output: named(CustomDomain),
      errors: ["DOMAIN_NOT_FOUND"],
    }),
    create: mutation({
      ...write,
      summary: "Add a custom domain",
      rest: ["POST /custom-domains", "POST /domains"],
      status: 201,
      location: "/custom-domains/{domainId}",
      input: z.strictObject({
        hostname: z
          .string()
          .min(1)
          .max(1_024)
          .describe("Such as `www.example.com`. Capitals, a dot at the end and letters beyond ASCII are written as the DNS knows them."),
        target: DomainTargetInput.default(null),
      }),
      output: CustomDomain,
      errors: ["DOMAIN_INVALID", "DOMAIN_TAKEN", "DOMAIN_TARGET_INVALID", "PLAN_LIMIT_EXCEEDED"],
    }),
    update: mutation({
      ...write,
      summary: "Change what a custom domain leads to",
      rest: ["PATCH /custom-domains/{domainId}", "PATCH /domains/{domainId}"],
      input: one.extend({ target: DomainTargetInput.optional(), version: Version.optional() }),
      output: CustomDomain,
      errors: ["DOMAIN_NOT_FOUND", "DOMAIN_TARGET_INVALID", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      auth: ["user", "apiKey"],
      permission: "domain:delete",
      summary: "Remove a custom domain",
      rest: ["DELETE /custom-domains/{domainId}", "DELETE /domains/{domainId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["DOMAIN_NOT_FOUND"],
    }),
    verify: mutation({
      ...write,
      summary: "Check a custom domain now",
      rest: ["POST /custom-domains/{domainId}/verify", "POST /domains/{domainId}/verify"],
      input: one,
      output: CustomDomain,
      errors: ["DOMAIN_NOT_FOUND", "DOMAIN_TAKEN", "DOMAIN_CHECK_TOO_SOON"],
    }),
    dns: query({
      ...read,
      summary: "List the DNS records that a custom domain needs",
      rest: ["GET /custom-domains/{domainId}/dns", "GET /domains/{domainId}/dns"],
      input: one,
      output: DomainDns,
      errors: ["DOMAIN_NOT_FOUND"],
    }),
    certificate: query({
      ...read,
      summary: "Get the certificate of a custom domain",
      rest: ["GET /custom-domains/{domainId}/certificate", "GET /domains/{domainId}/certificate"],
      input: one,
      output: CertificateChain,
      errors: ["DOMAIN_NOT_FOUND", "CERTIFICATE_NOT_FOUND"],
    }),
    putCertificate: mutation({
      ...certify,
      summary: "Use a certificate of your own",
      rest: ["PUT /custom-domains/{domainId}/certificate", "PUT /domains/{domainId}/certificate"],
      input: one.extend({
        certificate: z.string().min(1).max(MAX_PEM).describe("PEM: the certificate of the name, then its chain."),
        privateKey: z.string().min(1).max(MAX_PEM).describe("PEM, without a passphrase: RSA of 2,048 bits or more, or EC."),
      }),
      output: CustomDomain,
      errors: ["DOMAIN_NOT_FOUND", "CERTIFICATE_INVALID", "INVALID_STATE_TRANSITION"],
    }),
    removeCertificate: mutation({
      ...certify,
      summary: "Stop using a certificate of your own",
      rest: ["DELETE /custom-domains/{domainId}/certificate", "DELETE /domains/{domainId}/certificate"],
      input: one,
      output: CustomDomain,
      errors: ["DOMAIN_NOT_FOUND", "CERTIFICATE_NOT_FOUND"],
    }),
    renewCertificate: mutation({
      ...certify,
      summary: "Order a new certificate now",
      rest: ["POST /custom-domains/{domainId}/certificate/renew", "POST /domains/{domainId}/certificate/renew"],
      input: one,
      output: CustomDomain,
      errors: ["DOMAIN_NOT_FOUND", "CERTIFICATE_NOT_CONFIGURED", "CERTIFICATE_RATE_LIMITED", "INVALID_STATE_TRANSITION"],
    }),
  },
  events: {
    created: event("domain.created", DomainEvent, "Somebody added a custom domain"),
    verified: event("domain.verified", DomainEvent, "The TXT record of a custom domain was found: the name is the tenant's"),
    active: event("domain.active", DomainEvent, "A custom domain serves visitors, for the first time or again"),
    degraded: event(
      "domain.degraded",
      DomainEvent.extend({ reason: z.string() }),
      "Three checks in a row did not find a record of a custom domain that was there before",
    ),
    failed: event(
      "domain.failed",
      DomainEvent.extend({ reason: z.string() }),
      "A custom domain serves nobody any more: another tenant verified the name, or its records stayed away for seven days",
    ),
    expired: event("domain.expired", DomainEvent, "Nobody set the TXT record of a custom domain within seven days"),
    certificateRenewed: event("domain.certificate_renewed", CertificateEvent, "A custom domain has a new certificate"),
    certificateFailed: event(
      "domain.certificate_failed",
      DomainEvent.extend({ reason: z.string() }),
      "The certificate authority refused a certificate, or did not answer",
    ),
    certificateExpiring: event("domain.certificate_expiring", CertificateEvent, "The certificate of a custom domain ends within seven days"),
    removed: event("domain.removed", DomainEvent, "Somebody removed a custom domain"),
  },
});
