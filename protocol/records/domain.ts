// The records of custom domains: what their owner has to set in the DNS, what was found there, and the certificate.
import { z } from "zod";
import { DomainId, TenantId } from "../kit/ids.ts";

const Timestamp = z.iso.datetime();

export const DOMAIN_STATUSES = ["pending_verification", "verified", "issuing_certificate", "active", "degraded", "failed", "expired"] as const;
export const DomainStatus = z
  .enum(DOMAIN_STATUSES)
  .describe(
    "`pending_verification`: the TXT record is not there yet. `verified`: the name is the tenant's. `issuing_certificate`: a certificate is ordered. `active`: visitors are served. `degraded`: a record went away; visitors are served for seven more days. `failed`: another tenant has verified the name, or its records stayed away. `expired`: nobody set the record within seven days. `POST .../verify` starts a failed or expired one again.",
  );
export type DomainStatus = z.infer<typeof DomainStatus>;

export const TARGET_KINDS = ["tunnel", "app", "deployment"] as const;
export const DomainTarget = z
  .object({ kind: z.enum(TARGET_KINDS), id: z.string() })
  .describe("What visitors reach. An app or a deployment stands for the tunnel to it.");
export type DomainTarget = z.infer<typeof DomainTarget>;

export const DomainCheck = z.object({
  status: z
    .enum(["pass", "fail", "unknown"])
    .describe("`unknown`: nobody could tell, for instance because a name server did not answer. It never counts as a miss."),
  expected: z.string().nullable().describe("The record that passes. `null`: any passes."),
  found: z.array(z.string()).describe("What was there, or why nobody could tell; at most ten lines."),
  at: Timestamp.nullable().describe("`null`: not checked yet."),
  resolver: z.string().nullable().describe("Who was asked: the addresses of the name servers, `system`, or the certificate authority."),
});
export type DomainCheck = z.infer<typeof DomainCheck>;

export const CHECK_NAMES = ["txt", "cname", "caa", "http"] as const;
export type CheckName = (typeof CHECK_NAMES)[number];
export const DomainChecks = z.object({
  txt: DomainCheck.describe("Whether the name is the tenant's."),
  cname: DomainCheck.describe("Whether the name leads here."),
  caa: DomainCheck.describe("Whether the name's CAA records allow the certificate authority."),
  http: DomainCheck.describe("Whether the certificate authority reached the name by HTTP when a certificate was last ordered."),
});
export type DomainChecks = z.infer<typeof DomainChecks>;

export const CERTIFICATE_STATUSES = ["none", "pending", "active", "failed", "expiring"] as const;
export const DomainCertificate = z.object({
  status: z
    .enum(CERTIFICATE_STATUSES)
    .describe("`none`: there is none, and none is ordered. `failed`: there is none, because `lastError`. `expiring`: it ends within seven days, or has ended."),
  source: z.enum(["acme", "own"]).nullable().describe("`acme`: the gateway ordered it and renews it. `own`: somebody uploaded it."),
  issuer: z.string().nullable(),
  notBefore: Timestamp.nullable(),
  notAfter: Timestamp.nullable(),
  lastError: z.string().nullable().describe("Why the last order failed. `null` after a success."),
  nextRenewalAt: Timestamp.nullable().describe("When the gateway orders the next one. `null`: it will not."),
});

export const DnsRecord = z.object({ recordType: z.enum(["TXT", "CNAME", "A", "AAAA"]), name: z.string(), value: z.string() });

export const DomainVerification = z.object({
  method: z.literal("TXT"),
  name: z.string(),
  value: z.string(),
  verifiedAt: Timestamp.nullable(),
});

export const CustomDomain = z.object({
  domainId: DomainId,
  tenantId: TenantId,
  hostname: z.string().describe("In ASCII, as the DNS knows it."),
  displayName: z.string().describe("With the letters that people write."),
  target: DomainTarget.nullable().describe("`null`: visitors are told that nothing is here yet."),
  status: DomainStatus,
  statusSince: Timestamp,
  failure: z.string().nullable().describe("Why it is `failed` or `degraded`, such as `DOMAIN_TAKEN` or `DNS_MISMATCH`."),
  routingEndsAt: Timestamp.nullable().describe("When visitors of a `degraded` domain are no longer served."),
  verification: DomainVerification,
  dns: DnsRecord.describe("The record that leads visitors here. If no CNAME can stand at the name, use ALIAS, or the addresses that `GET .../dns` lists."),
  certificate: DomainCertificate,
  checks: DomainChecks,
  verificationErrors: z.array(z.string()).describe("What is still missing, in words."),
  lastCheckedAt: Timestamp.nullable(),
  nextCheckAt: Timestamp.nullable(),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type CustomDomain = z.infer<typeof CustomDomain>;

export const DomainDns = z.object({
  domainId: DomainId,
  hostname: z.string(),
  records: z.array(
    DnsRecord.extend({ purpose: z.enum(["ownership", "routing"]), required: z.boolean().describe("`false`: instead of a record that is required.") }),
  ),
});

export const CertificateChain = z.object({
  domainId: DomainId,
  hostname: z.string(),
  source: z.enum(["acme", "own"]),
  chain: z.string().describe("PEM, the certificate of the name first. The private key never leaves the gateway."),
  fingerprint: z.string().describe("SHA-256 of the first certificate, in hexadecimal digits with colons."),
});
export type DomainDns = z.infer<typeof DomainDns>;
