// Guide to custom domains.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, shownWithActors } from "./records.ts";

const domainId = "dom_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const hostname = "shop.example.com";
const resolver = "system";
const txt = "svc-domain-verification=4c1f0f6b2d8e4a719b35c2d07e6a8f14";
const cnameTarget = "domains.tunnels.example.org";
const target = { kind: "app", id: IDS.appId };
const claimed = {
  domainId,
  tenantId: IDS.tenantId,
  hostname,
  displayName: hostname,
  target,
  status: "pending_verification",
  statusSince: AT,
  failure: null,
  routingEndsAt: null,
  verification: { method: "TXT", name: `_svc-verify.${hostname}`, value: txt, verifiedAt: null },
  dns: { recordType: "CNAME", name: hostname, value: cnameTarget },
  certificate: { status: "none", source: null, issuer: null, notBefore: null, notAfter: null, lastError: null, nextRenewalAt: null },
  checks: {
    txt: { status: "fail", expected: txt, found: ["svc-domain-verification=of-another-tenant"], at: LATER, resolver },
    cname: { status: "pass", expected: cnameTarget, found: [cnameTarget], at: LATER, resolver },
    caa: { status: "pass", expected: "letsencrypt.org", found: [], at: LATER, resolver },
    http: { status: "unknown", expected: null, found: [], at: null, resolver: null },
  },
  verificationErrors: [`Set the TXT record _svc-verify.${hostname} to ${txt}.`],
  lastCheckedAt: LATER,
  nextCheckAt: "2026-11-21T09:31:00.000Z",
  createdBy: `user:${IDS.userId}`,
  version: 1,
  createdAt: AT,
  updatedAt: LATER,
};
const active = {
  ...claimed,
  status: "active",
  statusSince: LATER,
  verification: { ...claimed.verification, verifiedAt: LATER },
  certificate: {
    status: "active",
    source: "acme",
    issuer: "Let's Encrypt",
    notBefore: AT,
    notAfter: "2027-02-19T09:30:00.000Z",
    lastError: null,
    nextRenewalAt: "2027-01-18T09:30:00.000Z",
  },
  checks: { ...claimed.checks, txt: { ...claimed.checks.txt, status: "pass", found: [txt] } },
  verificationErrors: [],
  version: 4,
};
const chain = "-----BEGIN CERTIFICATE-----\nMIIBpTCCAUugAwIB...\n-----END CERTIFICATE-----\n";

export const domains: Guide<"domains"> = {
  list: {
    description: "Lists the tenant's custom domains, newest first.",
    input: { status: "active" },
    output: { items: [shownWithActors(active)], total: 1 },
  },
  get: {
    description: "Returns the domain with what its owner has to set, what was found instead, and when the gateway looks again.",
    input: { domainId },
    output: shownWithActors(claimed),
  },
  create: {
    description:
      "Claims a name. Several tenants may claim the same name: the one whose TXT record is found first has it, and the claims of the others become `failed`. A name that another tenant has verified is refused with 409 `DOMAIN_TAKEN`. The target is a tunnel, or an app or a deployment with a tunnel; otherwise 422 `DOMAIN_TARGET_INVALID` offers the call that makes one. Without a target you can prove the ownership already. Set the record in `verification`, then that in `dns`. The gateway looks after 1, 2, 5, 10 and 30 minutes, then every hour for seven days.",
    input: { hostname, target },
    output: claimed,
  },
  update: {
    description: "Lets the domain lead to another target, at once and without a new check. `null`: visitors are told that nothing is here yet.",
    input: { domainId, target },
    output: active,
  },
  remove: {
    description: "Removes the domain with its certificate. Take its CNAME out of the DNS too, so that it leads to nobody.",
    input: { domainId },
  },
  verify: {
    description:
      "Looks at the DNS now, at most once a minute for each domain (429 `DOMAIN_CHECK_TOO_SOON`). That a record is missing is no error: `checks` says what was expected and found. A failed or expired domain starts again.",
    input: { domainId },
    output: claimed,
  },
  dns: {
    description: "Lists the records to set. Those that are not required stand instead of the CNAME, at the top of a zone for instance.",
    input: { domainId },
    output: {
      domainId,
      hostname,
      records: [
        { purpose: "ownership", required: true, recordType: "TXT", name: `_svc-verify.${hostname}`, value: txt },
        { purpose: "routing", required: true, recordType: "CNAME", name: hostname, value: cnameTarget },
        { purpose: "routing", required: false, recordType: "A", name: hostname, value: "203.0.113.10" },
      ],
    },
  },
  certificate: {
    description: "Returns the certificate that visitors see, with its chain.",
    input: { domainId },
    output: { domainId, hostname, source: "acme", chain, fingerprint: "3F:7A:1C:90" },
  },
  putCertificate: {
    description:
      "Uses a certificate of your own from the next handshake on; the gateway does not renew it. It must name the domain, be valid now and fit the key. The key is encrypted at rest and never shown. Before the domain is verified the call is refused with 409 `INVALID_STATE_TRANSITION`. An installation whose edge speaks no TLS refuses with 409 `CERTIFICATE_NOT_CONFIGURED`.",
    input: { domainId, certificate: chain, privateKey: "-----BEGIN PRIVATE KEY-----\nMIGHAgEA...\n-----END PRIVATE KEY-----\n" },
    output: { ...active, certificate: { ...active.certificate, source: "own", issuer: "Example CA", nextRenewalAt: null } },
  },
  removeCertificate: {
    description: "Forgets the certificate that somebody uploaded. If the installation orders certificates, it orders one now.",
    input: { domainId },
    output: { ...active, certificate: claimed.certificate },
  },
  renewCertificate: {
    description:
      "Orders a certificate now instead of at `nextRenewalAt` or after a failure. The old one stays in use until the new one is there. At most once an hour for each domain (503 `CERTIFICATE_RATE_LIMITED`).",
    input: { domainId },
    output: active,
  },
};
